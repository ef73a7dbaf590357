"""The tables of quality: what a quick run must leave alone."""

import pytest

from benchmarks import precision, quality, splits

SCORES = {"rmse": 1.0, "mnll": 2.0, "coverage_90": 0.9, "fit_seconds": 3.0}


@pytest.mark.parametrize("quick", [False, True])
def test_quick_numbers_never_become_the_table_of_quality(quick, tmp_path):
    job = {"data": "yacht", "split": 10, "system": "bochner"} | ({"max_steps": 5} if quick else {})
    quality.report([{"job": job, "result": SCORES}], tmp_path)
    assert (tmp_path / "quality.md").exists() != quick


def test_a_system_with_fewer_splits_is_shown_and_not_ranked(tmp_path):
    def record(system, split, mnll):
        return {
            "job": {"data": "yacht", "split": split, "system": system},
            "result": {**SCORES, "mnll": mnll},
        }

    records = [record("bochner", 10, 2.0), record("bochner", 11, 2.0), record("LightGBM", 10, 1.0)]
    quality.report(records, tmp_path)
    line = (tmp_path / "quality.md").read_text().splitlines()[2]
    assert line == "| yacht | **-2.000 ± 0.000** | -1.000 (1 of 2 splits) |"


def test_seconds_on_an_accelerator_are_shown_and_not_ranked(tmp_path):
    def record(system, machine, seconds):
        return {
            "job": {"data": "yacht", "split": 10, "system": system},
            "result": {**SCORES, "fit_seconds": seconds},
            "machine": machine,
        }

    records = [
        record("bochner", "x86_64, 2 cores, cpu, JAX 0.10.2", 9.0),
        record("bochner, paper", "x86_64, 6 of 16 cores, NVIDIA H200, JAX 0.11.2", 9.0),
    ]
    quality.report(records, tmp_path)
    lines = (tmp_path / "quality.md").read_text().splitlines()
    (at,) = (number for number, line in enumerate(lines) if line.startswith("| Seconds"))
    assert lines[at + 2] == "| yacht | **9.000** | 9.000 (NVIDIA H200) |"


def test_some_fits_on_an_accelerator_are_counted(tmp_path):
    machines = ("x86_64, 2 cores, cpu, JAX 0.10.2", "x86_64, 16 cores, NVIDIA H200, JAX 0.11.2")
    records = [
        {
            "job": {"data": "yacht", "split": 10 + number, "system": "bochner"},
            "result": SCORES,
            "machine": machine,
        }
        for number, machine in enumerate(machines)
    ]
    quality.report(records, tmp_path)
    assert (
        "| yacht | 3.000 ± 0.000 (1 of 2 on NVIDIA H200) |" in (tmp_path / "quality.md").read_text()
    )


@pytest.mark.parametrize("quick", [False, True])
def test_collapses_are_counted_on_all_splits(quick, tmp_path, capsys):
    found = [{**SCORES, "mnll_of_constant": constant} for constant in (1.5, 2.5, 1.0)]
    job = {"data": "yacht", "seed": 0, "n_splits": 3} | ({"max_steps": 5} if quick else {})
    result = {"splits": found, "mnll": 2.0, "training_seconds": 1.0}
    splits.report([{"job": job, "result": result}], tmp_path)
    assert (tmp_path / "splits.md").exists() != quick
    if not quick:
        cells = (tmp_path / "splits.md").read_text().splitlines()[-1].split(" | ")
        assert cells[1] == "3"
        assert cells[-2] == "2"


def test_differences_of_precision_are_between_fits_with_the_same_seed(tmp_path):
    def record(path, seed, mnll):
        job = {"data": "powerplant", "path": path, "seed": seed, "max_steps": 20_000}
        return {"job": job, "result": {"mnll": mnll}}

    records = [record(precision.REFERENCE, seed, 2.0 + seed) for seed in range(3)]
    records += [record("tf32", seed, 2.0 + seed + 0.001 * (seed - 2)) for seed in (1, 2)]
    precision.report(records, tmp_path)
    cells = (tmp_path / "precision.md").read_text().splitlines()[-1].split(" | ")
    assert cells[1:] == ["tf32", "3.4995", "-0.0005", "0.0005", "2 |"]


def test_quick_numbers_never_become_the_table_of_precision(tmp_path):
    (job,) = precision.jobs(quick=True)
    precision.report([{"job": job, "result": {"mnll": 1.0}}], tmp_path)
    assert not list(tmp_path.iterdir())
