"""Through many layers gradients explode on their way back, unless they are clipped."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bochner.gp.reparameterization import ClippedGradients, DrawWeights, LocalReparameterization
from bochner.inference.objectives import Elbo, Evidence, Predictive
from bochner.training import OneDevice
from tests.training import problems

REPARAMETERIZATIONS = [DrawWeights(), LocalReparameterization()]


def bound_and_gradients(model, reparameterization, objective=Elbo(), n_samples=1):  # noqa: B008
    """The bound, and the norms of its gradient layer by layer."""
    rows = problems.table()
    noise = model.draw_noise(
        (n_samples,),
        reparameterization=reparameterization,
        batch=rows.n_rows,
        key=jax.random.key(3),
    )
    learned, held = eqx.partition(model, eqx.is_inexact_array)

    def value(learned):
        whole = eqx.combine(learned, held)
        return objective(whole, rows, noise, reparameterization, scale=1.0).elbo

    found, gradient = jax.jit(jax.value_and_grad(value))(learned)
    norms = [
        np.sqrt(sum(float(jnp.sum(leaf**2)) for leaf in jax.tree.leaves(layer)))
        for layer in gradient.layers
    ]
    return float(found), np.array(norms)


@pytest.mark.parametrize("reparameterization", REPARAMETERIZATIONS)
def test_clipped_gradients_do_not_explode_and_the_last_layer_keeps_its_own(reparameterization):
    model = problems.model(30, width=2, lengthscale=0.3)
    plain, exploding = bound_and_gradients(model, reparameterization)
    ours, clipped = bound_and_gradients(model, ClippedGradients(reparameterization))
    assert ours == plain
    assert exploding.max() > 1e4 * exploding[-1]
    assert clipped.max() < 20 * clipped[-1]
    np.testing.assert_allclose(clipped[-1], exploding[-1], rtol=1e-5)


@pytest.mark.parametrize("objective", [Elbo(), Predictive(), Evidence()])
def test_gradients_are_clipped_in_every_objective_and_with_several_samples(objective):
    model = problems.model(30, width=2, lengthscale=0.3)
    plain, exploding = bound_and_gradients(model, DrawWeights(), objective, n_samples=3)
    ours, clipped = bound_and_gradients(
        model, ClippedGradients(DrawWeights()), objective, n_samples=3
    )
    np.testing.assert_allclose(ours, plain, rtol=1e-5)
    assert exploding.max() > 1e4 * exploding[-1]
    assert clipped.max() < 1e3 * clipped[-1]


def test_gradients_of_residual_layers_do_not_grow_either():
    first, stack, last = problems.model(30, width=2, lengthscale=0.3).blocks
    stack = dataclasses.replace(stack, layers=dataclasses.replace(stack.layers, residual=True))
    model = dataclasses.replace(problems.model(30, width=2), blocks=(first, stack, last))
    _, exploding = bound_and_gradients(model, DrawWeights())
    _, clipped = bound_and_gradients(model, ClippedGradients(DrawWeights()))
    assert exploding.max() > 1e4 * exploding[-1]
    assert clipped.max() < 20 * clipped[-1]


@pytest.mark.parametrize("reparameterization", REPARAMETERIZATIONS)
def test_gradients_that_do_not_grow_are_exact(reparameterization):
    model = problems.model(4, width=2, lengthscale=15.0)
    _, exact = bound_and_gradients(model, reparameterization)
    _, ours = bound_and_gradients(model, ClippedGradients(reparameterization))
    np.testing.assert_allclose(ours, exact, rtol=1e-5)


def test_with_many_samples_the_first_layer_is_as_cheap_as_without():
    """No gradient goes back to data, so nothing of the first layer needs to be kept for each sample."""
    model, rows = problems.model(10, width=2), problems.table()
    noise = model.draw_noise((100,), key=jax.random.key(3))

    def memory(reparameterization):
        learned, held = eqx.partition(model, eqx.is_inexact_array)

        def value(learned):
            whole = eqx.combine(learned, held)
            return Elbo()(
                whole, rows, noise, reparameterization, scale=1.0, one_at_a_time=True
            ).elbo

        compiled = jax.jit(jax.grad(value)).lower(learned).compile()
        return compiled.memory_analysis().temp_size_in_bytes

    assert memory(ClippedGradients(DrawWeights())) < 1.5 * memory(DrawWeights())


class Watched(OneDevice):
    """Remembers how the steps were computed."""

    def __init__(self):
        self.seen = []

    def run(self, inputs, state, start):
        self.seen.append(inputs.reparameterization)
        return super().run(inputs, state, start)


@pytest.mark.parametrize(
    "reparameterization", [*REPARAMETERIZATIONS, ClippedGradients(DrawWeights())]
)
def test_training_takes_the_gradients_that_it_is_told_to(reparameterization):
    watched = Watched()
    problems.short_training(
        started=problems.model(10, width=2),
        max_steps=4,
        engine=watched,
        reparameterization=reparameterization,
    )
    assert set(watched.seen) == {reparameterization}
