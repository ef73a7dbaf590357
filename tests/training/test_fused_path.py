"""Training with the kernels of a layer, in Pallas's interpreter, beside training with XLA's products."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bochner.gp.reparameterization import DrawWeights, LocalReparameterization
from bochner.inference.bound import estimate_bound
from bochner.ops import PallasLayer
from bochner.rows.table import RowOrder, Table
from bochner.training import Constant, Stage, trainable
from bochner.training import chunk as chunk_module
from bochner.training.chunk import ChunkInputs, State, run_chunk
from bochner.training.loop import ADAM
from tests.examples import deep_gp, inputs

FUSED = PallasLayer(interpret=True)
REPARAMETERIZATIONS = [DrawWeights, LocalReparameterization]


def in_single_precision(tree):
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), tree)


@pytest.mark.parametrize("n_samples", [1, 3])
@pytest.mark.parametrize("reparameterization", REPARAMETERIZATIONS)
def test_the_bound_and_its_gradients_are_those_of_xla(reparameterization, n_samples):
    model = in_single_precision(deep_gp(4, feed_inputs=True))
    X, Y = (in_single_precision(inputs(d_in=d, seed=d)) for d in (2, 1))
    noise = model.draw_noise(
        (n_samples,), reparameterization=reparameterization(), batch=6, key=jax.random.key(3)
    )

    def loss(model, path):
        return estimate_bound(
            model, X, Y, jnp.ones(6), noise, reparameterization(*path), scale=2.0
        ).elbo

    both = jax.jit(lambda model: [jax.value_and_grad(loss)(model, path) for path in ((), (FUSED,))])
    expected, actual = both(model)
    jax.tree.map(
        lambda a, e: np.testing.assert_allclose(a, e, rtol=2e-4, atol=2e-4), actual, expected
    )


def chunk_of(reparameterization, n_steps=4):
    """A chunk of four steps of which the last may be left out, and its first state."""
    model = in_single_precision(deep_gp(2, feed_inputs=True))
    stage = Stage(theta=True, omega=True, n_mc=2)
    learned, held = eqx.partition(model, trainable(model, stage))
    table = Table.of(np.asarray(inputs(20)), np.asarray(inputs(20, d_in=1, seed=1)))
    chunk = ChunkInputs(
        held=held,
        table=table,
        scale=jnp.asarray(4.0),
        total_weight=jnp.asarray(20.0),
        index=jnp.asarray(RowOrder(20, 5, seed=(0,)).steps(0, 4)),
        fractions=jnp.zeros(2),
        step_size=jnp.asarray(0.01),
        n_steps=jnp.asarray(n_steps, jnp.int32),
        key=jax.random.key(1),
        capacity=4,
        stage=stage,
        schedule=Constant(),
        reparameterization=reparameterization,
        optimizer=ADAM,
    )
    return chunk, State(learned, ADAM.init(learned))


@pytest.mark.parametrize("n_steps", [3, 4])
def test_a_chunk_on_an_accelerator_gives_the_state_of_one_on_a_cpu(n_steps, monkeypatch):
    expected = run_chunk(*chunk_of(DrawWeights(), n_steps))
    monkeypatch.setattr(chunk_module, "_on_cpu", lambda: False)
    # The number of steps is part of what is compiled there, so this is another program.
    for path in ((), (FUSED,)):
        actual = eqx.filter_jit(run_chunk.__wrapped__)(*chunk_of(DrawWeights(*path), n_steps))
        jax.tree.map(
            lambda a, e: np.testing.assert_allclose(a, e, rtol=1e-3, atol=1e-4), actual, expected
        )
