"""The simulated clock keeps to what can be computed by hand, and one simulated worker is a serial training."""

import numpy as np
import pytest

from bochner.gp.members import Members
from bochner.gp.reparameterization import ClippedGradients, DrawWeights
from bochner.inference.objectives import Predictive
from bochner.posteriors.hyperparameters import VariationalTheta
from bochner.training import KLWeight, Plan
from experiments.simulated_workers import Simulated, SimulatedWorkers, Times, Timetable
from tests import examples
from tests.training import problems


def times(gradient=1.0, apply=0.001, transport=0.0):
    return Times((transport / 2,), (gradient,), (transport / 2,), (apply,))


@pytest.mark.parametrize("n_workers", [1, 4, 10])
def test_workers_that_compute_most_of_the_time_share_the_work(n_workers):
    timetable = Timetable(n_workers, times(), seed=0)
    for _ in range(1000):
        timetable.next()
    assert timetable.seconds == pytest.approx(1000 / n_workers * 1.001, rel=0.02)


def test_a_server_is_the_limit_once_its_updates_take_all_the_time():
    timetable = Timetable(100, times(gradient=1.0, apply=0.1), seed=0)
    for _ in range(1000):
        timetable.next()
    assert timetable.seconds == pytest.approx(1000 * 0.1, rel=0.02)


@pytest.mark.parametrize("n_workers", [1, 3])
def test_staleness_is_one_less_than_the_workers_where_all_are_alike(n_workers):
    engine = SimulatedWorkers(Simulated(n_workers, times()))
    problems.short_training(engine=engine)
    counts = engine.report["staleness"]
    assert sum(counts.values()) == 60
    assert counts[str(n_workers - 1)] >= 60 - n_workers


def test_one_simulated_worker_gives_the_result_of_a_serial_training():
    serial = problems.short_training()
    simulated = problems.short_training(engine=SimulatedWorkers(Simulated(1, times())))
    for left, right in zip(problems.leaves(serial), problems.leaves(simulated), strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-4, atol=1e-5)


def test_workers_rebuild_members_and_what_else_a_model_may_hold():
    models = [
        examples.shaken(problems.model(2, width=2, theta=VariationalTheta), seed)
        for seed in range(2)
    ]
    settings = {
        "started": Members.of(models),
        "objective": Predictive(),
        "kl_weight": KLWeight(0.5),
        "plan": Plan(n_mc=2, n_mc_final=2),
        "max_steps": 20,
    }
    serial = problems.short_training(**settings)
    simulated = problems.short_training(**settings, engine=SimulatedWorkers(Simulated(1, times())))
    for left, right in zip(problems.leaves(serial), problems.leaves(simulated), strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-3, atol=1e-4)


def test_workers_clip_gradients_as_a_serial_training_does():
    settings = {
        "started": problems.model(30, width=2, lengthscale=0.7),
        "reparameterization": ClippedGradients(DrawWeights()),
        "max_steps": 3,
    }
    serial = problems.short_training(**settings)
    simulated = problems.short_training(**settings, engine=SimulatedWorkers(Simulated(1, times())))
    for left, right in zip(problems.leaves(serial), problems.leaves(simulated), strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("settings", [{"averaging": 0.9}, {"kl_weight": KLWeight(1.0, 0.5)}])
def test_what_workers_cannot_do_is_refused(settings):
    with pytest.raises(ValueError, match="neither `averaging` nor `kl_warmup`"):
        problems.short_training(engine=SimulatedWorkers(Simulated(1, times())), **settings)
