"""The compiled unit of training: a chunk of steps in one program."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from bochner.bound import Bound, estimate_bound
from bochner.data.table import Table
from bochner.model import DeepGP
from bochner.reparameterization import AbstractReparameterization
from bochner.training.budget import AbstractSchedule
from bochner.training.stages import Stage

_NOISE_NUMBERS = 2**20
_MAX_STEPS = 256


class State(eqx.Module):
    """What a step changes: the leaves that the stage learns, and the optimizer's state."""

    learned: PyTree
    optimizer_state: PyTree


class ChunkInputs(eqx.Module):
    """What a chunk of steps reads and does not change.

    Attributes:
        held: the leaves of the model that the stage does not learn.
        table: the data; batches are gathered inside the chunk.
        index: rows of each step, one line a step; None where each step uses all rows.
        fractions: share of the budget used at the first step, and what each step adds to it.
        step_size: factor on the optimizer's updates, that is the learning rate.
        n_steps: how many of the chunk's steps to run.
    """

    held: PyTree
    table: Table
    index: Int[Array, "capacity batch"] | None
    fractions: Float[Array, "2"]
    step_size: Float[Array, ""]
    n_steps: Int[Array, ""]
    key: PRNGKeyArray
    capacity: int = eqx.field(static=True)
    stage: Stage = eqx.field(static=True)
    schedule: AbstractSchedule
    reparameterization: AbstractReparameterization
    optimizer: optax.GradientTransformation


def chunk_capacity(
    model: DeepGP, stage: Stage, reparameterization: AbstractReparameterization, batch: int
) -> int:
    """How many steps one chunk holds, so that their noise, drawn at once, stays within a few megabytes."""
    shapes = jax.tree.leaves(model.noise_shapes(reparameterization, batch))
    numbers = stage.n_mc * sum(leaf.size for leaf in shapes)
    return max(1, min(_MAX_STEPS, _NOISE_NUMBERS // numbers))


@eqx.filter_jit(donate="all-except-first")
def run_chunk(inputs: ChunkInputs, state: State) -> tuple[State, Bound]:
    """Run steps of stochastic gradient ascent on the bound; give the new state and the mean bound.

    The objective is the bound divided by the total weight of the data, which any optimizer's defaults suit.
    """
    table, stage = inputs.table, inputs.stage
    batch_size = table.n_rows if inputs.index is None else inputs.index.shape[1]
    scale = table.n_rows / batch_size
    total_weight = jnp.sum(table.weights)
    template: DeepGP = eqx.combine(state.learned, inputs.held)
    # The noise of all steps at once: one large draw instead of several small ones a step.
    noise = template.draw_noise(
        (inputs.capacity, stage.n_mc),
        reparameterization=inputs.reparameterization,
        batch=batch_size,
        key=inputs.key,
    )

    def loss(learned, batch: Table, step_noise):
        bound = estimate_bound(
            eqx.combine(learned, inputs.held),
            batch.X,
            batch.Y,
            batch.weights,
            step_noise,
            inputs.reparameterization,
            scale=scale,
        )
        return -bound.elbo / total_weight, bound

    def step(i, carry):
        state, totals = carry
        batch = table if inputs.index is None else table.rows(inputs.index[i])
        step_noise = jax.tree.map(lambda leaf: leaf[i], noise)
        gradient, bound = jax.grad(loss, has_aux=True)(state.learned, batch, step_noise)
        updates, optimizer_state = inputs.optimizer.update(
            gradient, state.optimizer_state, state.learned
        )
        factor = inputs.step_size * inputs.schedule(inputs.fractions[0] + i * inputs.fractions[1])
        learned = jax.tree.map(lambda p, u: p + factor * u, state.learned, updates)
        return State(learned, optimizer_state), jax.tree.map(jnp.add, totals, bound)

    totals = Bound(*(jnp.zeros(()) for _ in Bound._fields))
    state, totals = jax.lax.fori_loop(0, inputs.n_steps, step, (state, totals))
    return state, jax.tree.map(lambda total: total / inputs.n_steps, totals)
