import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

import experiments.__main__ as command
from experiments.runner import Experiment, run_experiment

ROOT = Path(__file__).parents[2]


def run(*arguments):
    app = typer.Typer()
    app.command()(command.main)
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def squares():
    """An experiment that squares numbers, and the jobs it has run."""
    ran, reported = [], []

    def run_job(job):
        ran.append(job["number"])
        return {"square": job["number"] ** 2}

    def jobs(quick):
        return [{"number": number} for number in range(2 if quick else 4)]

    experiment = Experiment(
        "squares", jobs, run_job, lambda records, folder: reported.append(records)
    )
    experiment_run = ran, reported
    return experiment, *experiment_run


def test_the_module_lists_its_experiments():
    done = subprocess.run(
        [sys.executable, "-m", "experiments"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert "toy" in done.stdout


def test_an_unknown_name_suggests_the_nearest():
    result = run("toi")
    assert result.exit_code == 2
    assert "Did you mean 'toy'?" in " ".join(result.output.replace("│", " ").split())


def test_a_second_run_computes_nothing_and_reports_all(squares, tmp_path):
    experiment, ran, reported = squares
    path = run_experiment("squares", experiment, tmp_path, quick=False)
    run_experiment("squares", experiment, tmp_path, quick=False)
    assert ran == [0, 1, 2, 3]
    assert [[record["result"]["square"] for record in records] for records in reported] == [
        [0, 1, 4, 9]
    ] * 2
    assert len(path.read_text().splitlines()) == 4


def test_a_line_cut_off_by_a_crash_is_computed_again(squares, tmp_path):
    experiment, ran, reported = squares
    path = run_experiment("squares", experiment, tmp_path, quick=False)
    whole = path.read_text()
    path.write_text(whole[:-20])
    run_experiment("squares", experiment, tmp_path, quick=False)
    assert ran == [0, 1, 2, 3, 3]
    assert [json.loads(line)["job"]["number"] for line in path.read_text().splitlines()] == [
        0, 1, 2, 3,
    ]  # fmt: skip
    assert [record["job"]["number"] for record in reported[1]] == [0, 1, 2, 3]


def test_an_interrupted_run_keeps_what_it_finished(squares, tmp_path):
    experiment, ran, _ = squares
    run_job = experiment.run

    def interrupted(job):
        if job["number"] == 2:
            raise KeyboardInterrupt
        return run_job(job)

    broken = Experiment("squares", experiment.jobs, interrupted, experiment.report)
    with pytest.raises(KeyboardInterrupt):
        run_experiment("squares", broken, tmp_path, quick=False)
    run_experiment("squares", experiment, tmp_path, quick=False)
    assert ran == [0, 1, 2, 3]


def test_quick_results_are_kept_apart_from_full_ones(squares, tmp_path):
    experiment, ran, _ = squares
    quick = run_experiment("squares", experiment, tmp_path, quick=True)
    full = run_experiment("squares", experiment, tmp_path, quick=False)
    assert quick != full
    assert ran == [0, 1, 0, 1, 2, 3]


def test_the_toy_runs_quickly_and_resumes(tmp_path):
    result = run("toy", "--quick", "--out", tmp_path)
    assert result.exit_code == 0, result.output
    path = tmp_path / "toy-quick.jsonl"
    records = [json.loads(line) for line in path.read_text().splitlines()]
    assert {(r["job"]["function"], r["job"]["n_layers"]) for r in records} == {
        ("composed", 1), ("composed", 2), ("step", 1), ("step", 2),
    }  # fmt: skip
    for record in records:
        assert {"rmse", "mnll", "crps", "coverage_90", "elbo"} <= set(record["result"])
        assert record["seconds"] > 0
        assert "cores" in record["machine"]
    before = path.read_bytes()
    again = run("toy", "--quick", "--out", tmp_path)
    assert again.exit_code == 0
    assert path.read_bytes() == before
    assert "composed" in again.output


def inverse(job):
    return {"inverse": 1 / job["number"], "cores": sorted(os.sched_getaffinity(0))}


def test_processes_share_the_cores_and_a_failed_job_lets_the_others_end(tmp_path):
    experiment = Experiment(
        "inverses",
        lambda quick: [{"number": number} for number in (0, 1, 2, 4)],
        inverse,
        lambda records, folder: None,
    )
    with pytest.raises(ZeroDivisionError):
        run_experiment("inverses", experiment, tmp_path, quick=False, processes=2)
    records = [json.loads(line) for line in (tmp_path / "inverses.jsonl").open()]
    assert {r["job"]["number"]: r["result"]["inverse"] for r in records} == {1: 1, 2: 0.5, 4: 0.25}
    shares = {tuple(record["result"]["cores"]) for record in records}
    whole = sorted(os.sched_getaffinity(0))
    if len(whole) > 1:
        assert all(len(share) < len(whole) for share in shares)


def killed_or_square(job):
    if job["number"] == 0:
        os._exit(3)
    return {"square": job["number"] ** 2}


def test_a_killed_process_costs_its_own_job_only(tmp_path):
    experiment = Experiment(
        "squares",
        lambda quick: [{"number": number} for number in range(4)],
        killed_or_square,
        lambda records, folder: None,
    )
    with pytest.raises(BrokenProcessPool):
        run_experiment("squares", experiment, tmp_path, quick=False, processes=2)
    records = [json.loads(line) for line in (tmp_path / "squares.jsonl").open()]
    assert sorted(record["job"]["number"] for record in records) == [1, 2, 3]


_INTERRUPTED = """
import signal, sys, time
from pathlib import Path

# What runs in the background inherits that it is ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)

from experiments.runner import Experiment, run_experiment

def slow(job):
    time.sleep(0.1 if job["number"] == 0 else 60)
    return {}

if __name__ == "__main__":
    jobs = lambda quick: [{"number": number} for number in range(4)]
    experiment = Experiment("slow", jobs, slow, lambda records, folder: None)
    run_experiment("slow", experiment, Path(sys.argv[1]), quick=False, processes=2)
"""


def test_an_interrupt_ends_all_processes_and_keeps_what_is_finished(tmp_path):
    script, results = tmp_path / "interrupted.py", tmp_path / "slow.jsonl"
    script.write_text(_INTERRUPTED)
    running = subprocess.Popen(
        [sys.executable, script, tmp_path],
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"},
        start_new_session=True,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 50
    while not (results.exists() and results.read_text()) and time.monotonic() < deadline:
        time.sleep(0.2)
    os.killpg(running.pid, signal.SIGINT)
    assert running.wait(timeout=20) != 0
    assert len(results.read_text().splitlines()) == 1


def test_records_are_reported_in_the_order_of_the_jobs(squares, tmp_path):
    experiment, _, reported = squares
    path = run_experiment("squares", experiment, tmp_path, quick=False)
    path.write_text("".join(reversed(path.open().readlines())))
    run_experiment("squares", experiment, tmp_path, quick=False)
    assert [record["job"]["number"] for record in reported[1]] == [0, 1, 2, 3]


def test_a_selection_without_jobs_says_what_there_is(tmp_path):
    result = run("toy", "--quick", "--out", tmp_path, "--select", "function=stp")
    assert result.exit_code == 2
    assert "there is composed, step" in " ".join(result.output.replace("│", " ").split())


def test_an_experiment_without_its_extra_says_so_and_the_list_still_shows(monkeypatch):
    monkeypatch.setitem(sys.modules, "experiments.mcmc", None)
    result = run("mcmc", "--quick")
    assert result.exit_code == 1
    assert "mcmc cannot run" in result.output
    assert "toy" in run().output


def test_values_after_a_comma_are_alternatives(tmp_path):
    chosen = ("--select", "n_layers=1,7", "--select", "n_layers=8")
    result = run("toy", "--quick", "--out", tmp_path, *chosen)
    assert result.exit_code == 0, result.output
    records = [json.loads(line) for line in (tmp_path / "toy-quick.jsonl").open()]
    assert {record["job"]["n_layers"] for record in records} == {1}
