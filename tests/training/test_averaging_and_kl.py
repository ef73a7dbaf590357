import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from bochner.training import Budget, KLWeight
from tests.training import problems


def test_the_average_keeps_its_share_of_what_was_before():
    # Runs of one, two and three steps share their beginning, since each step's noise has a key of its own.
    start = problems.leaves(problems.short_training(max_steps=1, learning_rate=1e-9))
    after = [problems.leaves(problems.short_training(max_steps=steps)) for steps in (1, 2, 3)]
    averaged = problems.leaves(problems.short_training(max_steps=3, averaging=0.75))
    for first, one, two, three, found in zip(start, *after, averaged, strict=True):
        expected = first
        for now in (one, two, three):
            expected = 0.75 * expected + 0.25 * now
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_a_resumed_training_goes_on_with_its_average(tmp_path):
    from bochner.training import Checkpoints

    def trained(steps, resume):
        checkpoints = Checkpoints(tmp_path / "c", {}, resume=resume, seconds_between=0)
        return problems.short_training(max_steps=steps, averaging=0.9, checkpoints=checkpoints)

    trained(30, resume=False)
    again = problems.leaves(trained(30, resume=True))
    whole = problems.leaves(problems.short_training(max_steps=30, averaging=0.9))
    for found, expected in zip(again, whole, strict=True):
        np.testing.assert_array_equal(found, expected)


def test_the_weight_multiplies_the_gradient_of_the_kl():
    model = problems.model()
    arrays, rest = eqx.partition(model, eqx.is_inexact_array)
    by_kl = jax.grad(lambda arrays: eqx.combine(arrays, rest).kl())(arrays)

    def moved(weight):
        return problems.short_training(
            max_steps=1, optimizer=optax.sgd(1.0), learning_rate=0.01, kl_weight=KLWeight(weight)
        ).model

    n_rows = problems.table().n_rows
    for full, half, gradient in zip(
        jax.tree.leaves(moved(1.0)),
        jax.tree.leaves(moved(0.5)),
        jax.tree.leaves(by_kl),
        strict=True,
    ):
        change = np.asarray(half, float) - np.asarray(full, float)
        expected = 0.5 * 0.01 * np.asarray(gradient) / n_rows
        if np.any(change):  # what is not trained does not move
            np.testing.assert_allclose(change, expected, atol=3e-6)


@pytest.mark.parametrize(("fraction", "expected"), [(0.0, 0.0), (0.1, 1.0), (0.5, 2.0), (1.0, 2.0)])
def test_the_weight_rises_to_its_value(fraction, expected):
    assert float(KLWeight(2.0, warmup=0.2)(jnp.asarray(fraction))) == pytest.approx(expected)


def test_a_budget_may_end_inside_the_rise():
    trained = problems.short_training(
        budget=Budget(max_steps=10), kl_weight=KLWeight(1.0, warmup=0.9)
    )
    assert trained.n_steps == 10
