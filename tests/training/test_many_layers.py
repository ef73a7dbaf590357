"""Through many layers gradients explode on their way back, and training damps them."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bochner.objectives import Elbo
from bochner.reparameterization import Damped, DrawWeights, LocalReparameterization
from bochner.training import OneDevice
from tests.training import problems

REPARAMETERIZATIONS = [DrawWeights(), LocalReparameterization()]


def bound_and_gradients(model, reparameterization):
    """The bound, and the norms of its gradient layer by layer."""
    rows = problems.table()
    noise = model.draw_noise(
        (1,), reparameterization=reparameterization, batch=rows.n_rows, key=jax.random.key(3)
    )
    learned, held = eqx.partition(model, eqx.is_inexact_array)

    def value(learned):
        whole = eqx.combine(learned, held)
        return Elbo()(whole, rows, noise, reparameterization, scale=1.0).elbo

    found, gradient = jax.jit(jax.value_and_grad(value))(learned)
    norms = [
        np.sqrt(sum(float(jnp.sum(leaf**2)) for leaf in jax.tree.leaves(layer)))
        for layer in gradient.layers
    ]
    return float(found), np.array(norms)


@pytest.mark.parametrize("reparameterization", REPARAMETERIZATIONS)
def test_damped_gradients_do_not_explode_and_the_last_layer_keeps_its_own(reparameterization):
    model = problems.model(30, width=2, lengthscale=0.3)
    plain, exploding = bound_and_gradients(model, reparameterization)
    ours, damped = bound_and_gradients(model, Damped(reparameterization))
    assert ours == plain
    assert exploding.max() > 1e4 * exploding[-1]
    assert damped.max() < 20 * damped[-1]
    np.testing.assert_allclose(damped[-1], exploding[-1], rtol=1e-5)


@pytest.mark.parametrize("reparameterization", REPARAMETERIZATIONS)
def test_gradients_that_do_not_grow_are_exact(reparameterization):
    model = problems.model(12, width=2, lengthscale=30.0)
    _, exact = bound_and_gradients(model, reparameterization)
    _, ours = bound_and_gradients(model, Damped(reparameterization))
    np.testing.assert_allclose(ours, exact, rtol=1e-5)


class Watched(OneDevice):
    """Remembers how the steps were computed."""

    def __init__(self):
        self.seen = []

    def run(self, inputs, state, start):
        self.seen.append(inputs.reparameterization)
        return super().run(inputs, state, start)


@pytest.mark.parametrize(("n_layers", "expected"), [(9, False), (10, True)])
def test_training_damps_the_gradients_of_ten_layers_and_more(n_layers, expected):
    watched = Watched()
    problems.short_training(
        started=problems.model(n_layers, width=2), max_steps=4, engine=watched,
        reparameterization=LocalReparameterization(),
    )  # fmt: skip
    inner = LocalReparameterization()
    assert set(watched.seen) == {Damped(inner) if expected else inner}
