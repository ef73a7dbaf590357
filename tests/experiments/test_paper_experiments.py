"""The experiments of the paper: their quick versions, and the pieces they are made of."""

import json
import os

import jax.numpy as jnp
import numpy as np
import pytest

from bochner.gp.model import DeepGP, collapsed_weights
from bochner.likelihoods import Gaussian
from experiments import comparison, depth, lowrank, records
from experiments.__main__ import EXPERIMENTS, load
from experiments.baselines import Observer
from experiments.compilation import CompilationClock
from experiments.runner import read_records, run_experiment
from experiments.watched import N_LOOKS, RandomFeatureClassifier, RandomFeatureRegressor
from tests.experiments.test_experiments import ROOT, run

needs_data = pytest.mark.skipif(
    not os.environ.get("BOCHNER_DATA"),
    reason="the environment variable BOCHNER_DATA does not name the folder of data files",
)
RESULTS = ROOT / "experiments" / "results"
LONGEST = ("comparison", "large", "depth", "async", "records")
PAPER = ("omega", "comparison", "large", "depth", "lowrank", "digits", "async", "records")


@needs_data
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow if name in LONGEST else ()) for name in PAPER],
)
def test_the_quick_version_runs_and_is_not_run_twice(name, tmp_path):
    result = run(name, "--quick", "--out", tmp_path)
    assert result.exit_code == 0, result.output
    path = tmp_path / f"{name}-quick.jsonl"
    found = [json.loads(line) for line in path.read_text().splitlines()]
    assert len(found) == len(list(load(name).jobs(True)))
    for record in found:
        numbers = [v for v in record["result"].values() if isinstance(v, int | float)]
        assert numbers
        assert np.all(np.isfinite(numbers))
        assert "cores" in record["machine"]
        assert 0 <= record["result"].get("error_rate", 0.0) < 0.95
    before = path.read_bytes()
    run_experiment(name, load(name), tmp_path, quick=True)
    assert path.read_bytes() == before


@pytest.mark.parametrize("name", EXPERIMENTS)
@pytest.mark.parametrize("quick", [False, True])
def test_no_job_is_listed_twice(name, quick):
    jobs = [json.dumps(dict(job), sort_keys=True) for job in load(name).jobs(quick)]
    assert len(set(jobs)) == len(jobs) > 0


def test_selected_jobs_alone_are_run(tmp_path):
    selection = ("--select", "function=step", "--select", "n_layers=1")
    result = run("toy", "--quick", "--out", tmp_path, *selection)
    assert result.exit_code == 0, result.output
    found = [json.loads(line) for line in (tmp_path / "toy-quick.jsonl").open()]
    assert [(r["job"]["function"], r["job"]["n_layers"]) for r in found] == [("step", 1)]


def test_a_selection_without_a_value_is_refused():
    result = run("toy", "--quick", "--select", "function")
    assert result.exit_code == 2
    assert "name=value" in result.output


def test_the_clock_of_a_race_stops_for_compilation_and_for_looks(monkeypatch):
    now = {"time": 0.0}
    monkeypatch.setattr("time.monotonic", lambda: now["time"])
    clock = CompilationClock()

    def compile_for(seconds):
        now["time"] += seconds
        clock._add("/jax/core/compile/backend_compile_duration", seconds)

    def look(predictor):
        compile_for(50.0)
        now["time"] += 7.0
        return {"error_rate": 0.5}

    with clock:
        compile_for(3.0)
        watch = records.Watch(clock, look)
        watch.start(1_000)
        compile_for(20.0)
        clock._add("/jax/core/compile/jaxpr_trace_duration", 5.0)  # inside what was just compiled
        now["time"] += 2.0
        watch.see(100, None)
        now["time"] += 1.0
        watch.see(200, None)
    assert [record["seconds"] for record in watch.records] == [2.0, 3.0]
    assert clock.seconds == pytest.approx(3 + 20 + 2 * 50)


def test_an_observer_looks_at_its_moments_and_its_clock_stops_meanwhile(monkeypatch):
    clock = {"now": 0.0}
    monkeypatch.setattr("time.monotonic", lambda: clock["now"])

    def look(predictor):
        clock["now"] += 100.0  # a slow look
        return {"seen": predictor}

    observer = Observer(look, n_looks=3)
    observer.start(10_000)
    for step in range(1, 10_001):
        clock["now"] += 0.01
        if observer.is_due(step):
            observer.see(step, step)
    assert [record["seen"] for record in observer.records] == [100, 1000, 10_000]
    assert [record["seconds"] for record in observer.records] == pytest.approx([1, 10, 100])
    assert observer.steps_to_next(99) == 1


@pytest.mark.parametrize("classification", [False, True])
def test_looking_at_a_training_does_not_change_it(classification):
    generator = np.random.default_rng(0)
    X = generator.normal(size=(60, 2))
    y = (X[:, 0] > 0).astype(int) if classification else X[:, 0] + 0.1 * generator.normal(size=60)
    kind = RandomFeatureClassifier if classification else RandomFeatureRegressor
    settings = {"n_random_features": 10, "max_steps": 100, "theta_from": 20, "n_mc_predict": 20}
    method = kind("paper", settings, many_samples_from=95)
    seen = Observer(lambda predictor: {"one": 1.0})
    watched, alone = method.fit(X, y, seed=0, observer=seen)(X), method.fit(X, y, seed=0)(X)
    if not classification:
        watched, alone = watched.log_density(y), alone.log_density(y)  # pyright: ignore[reportAttributeAccessIssue]
    np.testing.assert_array_equal(watched, alone)
    assert [record["step"] for record in seen.records] == list(range(5, 101, 100 // N_LOOKS))


def test_a_full_matrix_takes_the_place_of_the_low_rank_product(key):
    for width, n_weights in ((3, 200 * 3 + 3 * 100), (lowrank.FULL, 200 * 100)):
        model = DeepGP.start(
            lowrank._layers(width, 1), Gaussian.start(1), d_in=2, feed_inputs=False, key=key
        )
        assert lowrank.n_weights_between(model) == n_weights
        assert collapsed_weights(model, 0).shape == (200, 100)
    first, second = model.layers
    np.testing.assert_array_equal(
        second.features.spectrum.Omega(second.features.kernel), jnp.eye(100)
    )
    np.testing.assert_array_equal(collapsed_weights(model, 0), first.q_W.mean)


def test_depths_from_before_there_was_a_choice_of_gradients_were_clipped_from_ten_layers_on():
    stored = read_records(RESULTS / "depth.jsonl")
    jobs = list(depth.EXPERIMENT.jobs(False))
    assert all(record["job"] in jobs for record in stored)
    old = [record for record in stored if "gradients" not in record["job"]]
    for record in old:
        many = record["job"]["n_layers"] >= 10
        assert depth.gradients_of(record["job"]) == ("clipped" if many else "exact")
    assert {gradients for *_, gradients in depth.grouped(old)} == {"clipped"}
    assert {"exact", "clipped"} == set(map(depth.gradients_of, jobs))
    exact = [{"job": job} for job in jobs if job.get("gradients") == "exact"]
    groups = depth.grouped([*old, *exact])
    for settings in (("airline", 40_000, "constant"), ("airline_nyc2013", 40_000, "constant")):
        by_kind = [groups[*settings, gradients] for gradients in ("clipped", "exact")]
        found = [sorted(record["job"]["n_layers"] for record in group) for group in by_kind]
        assert found == [sorted([2, 10, 20, 30] * 3)] * 2


def test_baselines_are_asked_for_the_settings_of_the_paper():
    job = {"part": "paper", "data": "mnist", "n_hidden": 2, "fold": 0}
    assert comparison.settings({**job, "method": "dnn"})["units"] == 800
    assert comparison.settings({**job, "method": "dgp-ep"})["n_inducing"] == 500
    uci = comparison.settings({**job, "data": "eeg", "method": "dgp-ep"})
    assert uci["n_layers"] == 3
    assert uci["preprocessing"] == "none"
