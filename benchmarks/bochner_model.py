"""The training step of bochner, through the compiled chunk that `bochner.training.train` runs."""

import dataclasses
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.configurations import Configuration
from bochner.gp.layers import LayerSettings
from bochner.gp.model import DeepGP
from bochner.gp.reparameterization import AbstractReparameterization
from bochner.likelihoods import Gaussian, Softmax
from bochner.rows.table import RowOrder, Table
from bochner.training import Constant, Stage, trainable
from bochner.training.chunk import ChunkInputs, State, chunk_capacity, run_chunk
from bochner.training.loop import ADAM


def start_model(configuration: Configuration) -> DeepGP:
    """Build the model of a configuration: RBF kernels, VAR-FIXED frequencies."""
    c = configuration
    widths = [*[c.width] * (c.n_layers - 1), c.d_out]
    return DeepGP.start(
        [LayerSettings(width, n_rf=c.n_rf) for width in widths],
        Softmax() if c.classification else Gaussian.start(c.d_out),
        d_in=c.d_in,
        feed_inputs=c.feed_inputs,
        key=jax.random.key(0),
    )


def chunk(
    configuration: Configuration, n_mc: int, reparameterization: AbstractReparameterization
) -> tuple[ChunkInputs, State]:
    """Build what the first chunk of a training reads, and the state that it starts from."""
    X, y = configuration.data()
    model = start_model(configuration)
    stage = Stage(theta=True, omega=True, n_mc=n_mc)
    capacity = chunk_capacity(model, stage, reparameterization, configuration.batch)
    learned, held = eqx.partition(model, trainable(model, stage))
    table = Table.of(X, y)
    order = RowOrder(table.n_rows, configuration.batch, seed=(0,))
    inputs = ChunkInputs(
        held=held,
        table=table,
        scale=jnp.asarray(table.n_rows / configuration.batch),
        total_weight=jnp.asarray(table.total_weight),
        index=jnp.asarray(order.steps(0, capacity)),
        fractions=jnp.zeros(2),
        step_size=jnp.asarray(0.01),
        n_steps=jnp.asarray(capacity, jnp.int32),
        key=jax.random.key(1),
        capacity=capacity,
        stage=stage,
        schedule=Constant(),
        reparameterization=reparameterization,
        optimizer=ADAM,
    )
    return inputs, State(learned, ADAM.init(learned))


def make(
    configuration: Configuration, n_mc: int, reparameterization: AbstractReparameterization
) -> tuple[Callable[[], None], int]:
    """Give a function that runs one chunk, and how many steps it has."""
    first, state = chunk(configuration, n_mc, reparameterization)
    capacity = first.capacity
    order = RowOrder(first.table.n_rows, configuration.batch, seed=(0,))
    step = 0

    def run() -> None:
        nonlocal state, step
        inputs = dataclasses.replace(
            first,
            index=jnp.asarray(order.steps(step, capacity)),
            key=jax.random.fold_in(first.key, step),
        )
        state, bound = run_chunk(inputs, state)
        if not np.isfinite(float(bound.elbo)):
            raise FloatingPointError("the bound became non-finite, so the timing means nothing.")
        step += capacity

    return run, capacity
