"""The compiled unit of training: a chunk of steps in one program."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.flatten_util import ravel_pytree
from jax.sharding import NamedSharding, PartitionSpec
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from bochner.gp.members import Members
from bochner.gp.model import DeepGP, Noise
from bochner.gp.reparameterization import AbstractReparameterization
from bochner.inference.bound import Bound
from bochner.inference.objectives import AbstractObjective, Elbo
from bochner.ops.compiler_options import NO_SEARCH, WIDE_VECTORS
from bochner.ops.current_device import current_device
from bochner.rows.table import Table
from bochner.training.budget import AbstractSchedule, KLWeight
from bochner.training.stages import Stage

_NOISE_NUMBERS = 2**20  # a few megabytes, near the caches of a CPU
_NOISE_NUMBERS_ON_ACCELERATORS = 2**26  # to start a chunk costs as much as several steps
_MAX_STEPS = 256
LONGEST_GRADIENT = 1.0
"""To which careful steps shorten a gradient of the objective a row, which is shorter but for first steps."""

_COMPILER_OPTIONS = {**WIDE_VECTORS, **NO_SEARCH}


def strongly_typed(tree: PyTree) -> PyTree:
    """Give arrays without JAX's weak types, which Python numbers lead to: a program would compile twice for them.

    Example:
        >>> import jax.numpy as jnp
        >>> from bochner.training.chunk import strongly_typed
        >>> jnp.asarray(1.0).weak_type, strongly_typed(jnp.asarray(1.0)).weak_type
        (True, False)
    """
    return jax.tree.map(lambda leaf: jax.lax.convert_element_type(leaf, leaf.dtype), tree)


class State(eqx.Module):
    """What a step changes: the leaves that the stage learns, their running average, and the optimizer's state.

    Types are made strong, as those of the state that a chunk gives back are: a state with JAX's weak types, which
    Python numbers lead to, would compile the chunk a second time.
    """

    learned: PyTree = eqx.field(converter=strongly_typed)
    optimizer_state: PyTree = eqx.field(converter=strongly_typed)
    average: PyTree = eqx.field(converter=strongly_typed, default=None)


class ChunkInputs(eqx.Module):
    """What a chunk of steps reads and does not change.

    Attributes:
        held: the leaves of the model that the stage does not learn.
        table: the data, or the part of it that this chunk uses; batches are gathered inside the chunk.
        scale: all rows of the data over the batch's, n / m.
        total_weight: sum of the weights of all the data.
        index: rows of each step, one line a step; None where each step uses all rows.
        fractions: share of the budget used at the first step, and what each step adds to it.
        step_size: factor on the optimizer's updates, that is the learning rate.
        n_steps: how many of the chunk's steps to run.
        averaging: share of the running average that a step keeps; only where the state has one.
        kl_weight: what the KL counts, over the budget.
        objective: what is maximized.
        careful: leave out steps whose bound or gradient overflows, and shorten long gradients; the bound is the mean
            of the other steps.
        batch_sharding: how the rows of a batch are spread over devices; None where there is one.
    """

    held: PyTree
    table: Table
    scale: Float[Array, ""]
    total_weight: Float[Array, ""]
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
    objective: AbstractObjective = Elbo()
    kl_weight: KLWeight = KLWeight()
    averaging: float = eqx.field(static=True, default=0.0)
    careful: bool = eqx.field(static=True, default=False)
    batch_sharding: NamedSharding | None = eqx.field(static=True, default=None)


def chunk_capacity(
    model: DeepGP | Members,
    stage: Stage,
    reparameterization: AbstractReparameterization,
    batch: int,
) -> int:
    """How many steps one chunk holds, so that the memory of their noise, drawn at once, stays within bounds."""
    shapes = jax.tree.leaves(model.noise_shapes(reparameterization, batch))
    numbers = stage.n_mc * sum(leaf.size for leaf in shapes)
    limit = _NOISE_NUMBERS if _on_cpu() else _NOISE_NUMBERS_ON_ACCELERATORS
    return max(1, min(_MAX_STEPS, limit // numbers))


@eqx.filter_jit(donate="all-except-first", compiler_options=_COMPILER_OPTIONS)  # pyright: ignore[reportCallIssue]
def run_chunk(inputs: ChunkInputs, state: State) -> tuple[State, Bound]:
    """Run steps of stochastic gradient ascent on the objective; give the new state and the mean bound.

    The objective is divided by the total weight of the data, which any optimizer's defaults suit.
    """
    table = inputs.table
    # The noise of all steps at once: one large draw instead of several small ones a step.
    noise = _noise(inputs, state.learned)

    # One vector of parameters, so that an update is a pass over one array and not several small ones a leaf.
    first_parameters, unravel = ravel_pytree(state.learned)
    first_average = None if state.average is None else ravel_pytree(state.average)[0]

    def step(i, carry):
        parameters, average, optimizer_state, totals, n_added = carry
        fraction = inputs.fractions[0] + i * inputs.fractions[1]
        batch = table if inputs.index is None else table.rows(inputs.index[i])
        batch = _spread(batch, inputs.batch_sharding)
        step_noise = jax.tree.map(lambda leaf: leaf[i], noise)
        gradient, bound = objective_gradient(
            inputs, parameters, unravel, batch, step_noise, fraction
        )
        finite = None
        if inputs.careful:
            squared_norm = jnp.sum(gradient**2)
            finite = jnp.isfinite(bound.elbo) & jnp.isfinite(squared_norm)
            # An optimizer's averages would remember a long one for thousands of steps.
            gradient = gradient * jnp.minimum(1.0, LONGEST_GRADIENT * jax.lax.rsqrt(squared_norm))
        updates, optimizer_state = inputs.optimizer.update(
            unravel(gradient), optimizer_state, unravel(parameters)
        )
        factor = inputs.step_size * inputs.schedule(fraction)
        parameters = parameters + factor * ravel_pytree(updates)[0]
        if average is not None:
            average = parameters + inputs.averaging * (average - parameters)
        parameters, average, optimizer_state = _whole(
            (parameters, average, optimizer_state), inputs.batch_sharding
        )
        totals = jax.tree.map(jnp.add, totals, bound)
        new = parameters, average, optimizer_state, totals, n_added
        if finite is None:
            return new
        kept = jax.tree.map(lambda new, old: jnp.where(finite, new, old), new, carry)
        return *kept[:-1], n_added + finite

    totals = Bound(*(jnp.zeros(()) for _ in Bound._fields))
    n_added = jnp.zeros((), jnp.int32) if inputs.careful else None
    run_steps = _run_some if _on_cpu() else _run_known_number
    parameters, average, optimizer_state, totals, n_added = run_steps(
        step, (first_parameters, first_average, state.optimizer_state, totals, n_added), inputs
    )
    n_steps = inputs.n_steps if n_added is None else n_added
    mean = jax.tree.map(lambda total: total / n_steps, totals)
    averaged = None if average is None else unravel(average)
    return State(unravel(parameters), optimizer_state, averaged), mean


def _run_some(step: Callable, carry: PyTree, inputs: ChunkInputs) -> PyTree:
    """Run `inputs.n_steps` steps."""
    return jax.lax.fori_loop(0, inputs.n_steps, step, carry)


def _run_known_number(step: Callable, carry: PyTree, inputs: ChunkInputs) -> PyTree:
    """Do the same in a loop over all steps of the chunk, of which those beyond `inputs.n_steps` change nothing.

    An accelerator asks the host after each step of a loop whose number of steps is not in the program.
    """

    def guarded(i, carry):
        runs = i < inputs.n_steps
        return jax.tree.map(lambda new, old: jnp.where(runs, new, old), step(i, carry), carry)

    return jax.lax.fori_loop(0, inputs.capacity, guarded, carry)


def objective_gradient(
    inputs: ChunkInputs,
    parameters: Float[Array, " parameters"],
    unravel: Callable[[Array], PyTree],
    batch: Table,
    noise: Noise,
    fraction: Float[Array, ""],
) -> tuple[Float[Array, " parameters"], Bound]:
    """Differentiate the negative objective of a batch, divided by the total weight; give the bound too."""

    def loss(parameters):
        model: DeepGP | Members = eqx.combine(unravel(parameters), inputs.held)
        bound = inputs.objective(
            model,
            batch,
            noise,
            inputs.reparameterization,
            scale=inputs.scale,
            # In the cache of a CPU samples do best one after another; a GPU wants them all.
            one_at_a_time=_on_cpu(),
        )
        # Of members the bound is the mean, and each is to have the gradient that it would have alone.
        total = model.n_members * (bound.ell - inputs.kl_weight(fraction) * bound.kl)
        return -total / inputs.total_weight, bound

    return jax.grad(loss, has_aux=True)(parameters)


@eqx.filter_jit(compiler_options=_COMPILER_OPTIONS)  # pyright: ignore[reportCallIssue]
def gradient_of_step(
    inputs: ChunkInputs,
    like: PyTree,
    parameters: Float[Array, " parameters"],
    noise: Noise,
    i: Int[Array, ""],
) -> tuple[Float[Array, " parameters"], Bound]:
    """Compute the gradient of the batch in `inputs` with the noise of step `i`, and the bound.

    Parameters are one vector, as `ravel_pytree` makes it of leaves such as those of `like`.
    """
    batch = inputs.table if inputs.index is None else inputs.table.rows(inputs.index[0])
    _, unravel = ravel_pytree(like)
    step_noise = jax.tree.map(lambda leaf: leaf[i], noise)
    return objective_gradient(inputs, parameters, unravel, batch, step_noise, inputs.fractions[0])


def _noise(inputs: ChunkInputs, like: PyTree) -> Noise:
    """Draw the noise of all steps of a chunk."""
    batch_size = inputs.table.n_rows if inputs.index is None else inputs.index.shape[1]
    template: DeepGP | Members = eqx.combine(like, inputs.held)
    return template.draw_noise(
        (inputs.capacity, inputs.stage.n_mc),
        reparameterization=inputs.reparameterization,
        batch=batch_size,
        key=inputs.key,
    )


noise_of_chunk = eqx.filter_jit(_noise)


def _spread(batch: Table, sharding: NamedSharding | None) -> Table:
    """Give each device its rows of a batch, from which the compiler derives what else is divided, and the sums."""
    return batch if sharding is None else jax.lax.with_sharding_constraint(batch, sharding)


def _whole(tree: PyTree, sharding: NamedSharding | None) -> PyTree:
    """Keep the same arrays on all devices."""
    if sharding is None:
        return tree
    return jax.lax.with_sharding_constraint(tree, NamedSharding(sharding.mesh, PartitionSpec()))


def _on_cpu() -> bool:
    """Whether what is being traced will run on a CPU."""
    return current_device().platform == "cpu"
