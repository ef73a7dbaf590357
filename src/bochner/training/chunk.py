"""The compiled unit of training: a chunk of steps in one program."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from jax.flatten_util import ravel_pytree
from bochner.bound import Bound, expected_log_likelihood
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

    import os
    k=int(os.environ.get('GROUP','0')) or stage.n_mc
    k=min(k,stage.n_mc)
    G=stage.n_mc//k
    def ell_loss(learned, batch, noise):
        model=eqx.combine(learned, inputs.held)
        return scale/total_weight*expected_log_likelihood(model,batch.X,batch.Y,batch.weights,noise,inputs.reparameterization)
    def kl_loss(learned):
        return eqx.combine(learned, inputs.held).kl()/total_weight

    flat0, unravel = ravel_pytree(state.learned)
    def step(i, carry):
        flat, optimizer_state, totals = carry
        learned=unravel(flat)
        batch = table if inputs.index is None else table.rows(inputs.index[i])
        step_noise = jax.tree.map(lambda leaf: leaf[i], noise)
        if G==1:
            def loss(l):
                e=ell_loss(l,batch,step_noise); kk=kl_loss(l); return kk-e,(e,kk)
            gradient,(ell,kl) = jax.grad(loss,has_aux=True)(learned)
        else:
            kl,gkl=jax.value_and_grad(kl_loss)(learned)
            gn=jax.tree.map(lambda a:a.reshape(G,k,*a.shape[1:]),step_noise)
            def body(acc,nz):
                e,g=jax.value_and_grad(ell_loss)(learned,batch,nz)
                return (acc[0]+e,acc[1]+ravel_pytree(g)[0]),None
            (ell,gell),_=jax.lax.scan(body,(jnp.zeros(()),jnp.zeros_like(flat)),gn)
            ell=ell/G
            gradient=jax.tree.map(lambda a,b:b-a/G,unravel(gell),gkl)
        bound=Bound(ell-kl,ell,kl)
        updates, optimizer_state = inputs.optimizer.update(
            gradient, optimizer_state, learned
        )
        factor = inputs.step_size * inputs.schedule(inputs.fractions[0] + i * inputs.fractions[1])
        flat = flat+ factor*ravel_pytree(updates)[0]
        return flat, optimizer_state, jax.tree.map(jnp.add, totals, bound)

    totals = Bound(*(jnp.zeros(()) for _ in Bound._fields))
    flat,opt_state, totals = jax.lax.fori_loop(0, inputs.n_steps, step, (flat0,state.optimizer_state, totals))
    return State(unravel(flat),opt_state), jax.tree.map(lambda total: total*total_weight / inputs.n_steps, totals)
