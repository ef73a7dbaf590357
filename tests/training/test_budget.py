import jax.numpy as jnp
import numpy as np
import pytest

from bochner.training import SCHEDULES, Budget, Constant, Cosine


def test_the_share_used_is_that_of_steps_or_seconds_whichever_is_larger():
    both = Budget(max_steps=100, max_seconds=10.0)
    assert both.fraction(step=50, seconds=1.0) == 0.5
    assert both.fraction(step=50, seconds=8.0) == 0.8
    assert Budget(max_seconds=10.0).fraction(step=10**9, seconds=5.0) == 0.5
    assert Budget(max_steps=100).fraction(step=25, seconds=1e9) == 0.25


def test_the_share_used_ends_at_one():
    assert Budget(max_steps=100).fraction(step=101, seconds=0.0) == 1.0
    assert Budget(max_seconds=1.0).fraction(step=0, seconds=3.0) == 1.0


def test_a_budget_of_nothing_is_refused():
    with pytest.raises(ValueError, match="`max_steps`, `max_seconds` or both; got neither"):
        Budget()


@pytest.mark.parametrize("max_steps", [1, 3, 7, 10, 64, 999])
def test_steps_to_a_share_are_the_fewest_that_reach_it(max_steps):
    budget = Budget(max_steps=max_steps)
    for moment in np.arange(1, 101) / 100:
        steps = budget.steps_to(moment, step=0)
        assert budget.fraction(steps, 0.0) >= moment - 1e-9
        assert budget.fraction(steps - 1, 0.0) < moment
        assert budget.steps_to(moment, step=steps) == 0
    assert Budget(max_seconds=1.0).steps_to(0.5, step=0) is None


def test_a_constant_schedule_is_one_throughout():
    assert [float(Constant()(jnp.asarray(f))) for f in (0.0, 0.3, 1.0)] == [1.0, 1.0, 1.0]


def test_a_cosine_schedule_rises_shortly_then_falls_to_zero():
    schedule = Cosine(warmup=0.1)
    values = np.array([float(schedule(jnp.asarray(f))) for f in np.linspace(0, 1, 101)])
    assert values[0] == pytest.approx(0.02)
    assert values[5] == pytest.approx(0.5)
    assert values[10] == pytest.approx(1.0)
    assert (np.diff(values[:11]) > 0).all()
    assert (np.diff(values[10:]) < 0).all()
    assert values[55] == pytest.approx(0.5, abs=1e-6)
    assert values[-1] == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("name", SCHEDULES)
def test_factors_lie_between_zero_and_one(name):
    for fraction in np.linspace(0, 1, 21):
        assert 0.0 <= float(SCHEDULES[name](jnp.asarray(fraction))) <= 1.0
