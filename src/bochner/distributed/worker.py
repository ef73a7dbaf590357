"""A worker: fetches parameters, computes the gradient of the bound on its own batches, and pushes it."""

import dataclasses
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import PyTree

from bochner.distributed.blueprint import (
    described,
    objective_of,
    reparameterization_of,
    skeleton,
)
from bochner.rows.spool import Spool
from bochner.rows.table import AbstractSteps, Table
from bochner.training import Constant, KLWeight, Stage, trainable
from bochner.training.chunk import ChunkInputs, gradient_of_step, noise_of_chunk
from bochner.training.loop import ADAM


def check_known(averaging: float, kl_warmup: float) -> None:
    """Refuse what workers do not know."""
    if averaging or kl_warmup:
        raise ValueError(
            "asynchronous training knows neither `averaging` nor `kl_warmup`: set both to 0."
        )


def program_of(inputs: ChunkInputs, learned: PyTree, n_targets: int) -> dict[str, Any]:
    """Describe, in arrays and JSON, what a worker needs to compute gradients as a chunk of steps would."""
    check_known(inputs.averaging, inputs.kl_weight.warmup)
    model = eqx.combine(learned, inputs.held)
    return {
        "blueprint": described(model, inputs.reparameterization, n_targets, inputs.objective),
        "kl_weight": float(inputs.kl_weight.weight),
        "stage": dataclasses.asdict(inputs.stage),
        "held": [np.asarray(leaf) for leaf in jax.tree.leaves(inputs.held)],
        "scale": float(inputs.scale),
        "total_weight": float(inputs.total_weight),
    }


class GradientProgram:
    """Computes gradients of the bound, as one stage of a training asks for them.

    Args:
        program: the model's form, the stage, the leaves that it holds, and factors of the bound.
    """

    def __init__(self, program: Mapping[str, Any]):
        model = skeleton(program["blueprint"])
        stage = Stage(**program["stage"])
        self._like, held = eqx.partition(model, trainable(model, stage))
        leaves = [jnp.asarray(leaf) for leaf in program["held"]]
        held = jax.tree.unflatten(jax.tree.structure(held), leaves)
        empty = Table.of(np.zeros((0, 1)), np.zeros((0, 1)))
        self._inputs = ChunkInputs(
            held=held,
            table=empty,
            scale=jnp.asarray(program["scale"], jnp.float32),
            total_weight=jnp.asarray(program["total_weight"], jnp.float32),
            index=None,
            fractions=jnp.zeros(2),
            step_size=jnp.zeros(()),
            n_steps=jnp.ones((), jnp.int32),
            key=jax.random.key(0),
            capacity=1,
            stage=stage,
            schedule=Constant(),
            reparameterization=reparameterization_of(program["blueprint"]),
            optimizer=ADAM,
            objective=objective_of(program["blueprint"]),
            kl_weight=KLWeight(program["kl_weight"]),
        )
        self._noise_of: tuple[bytes, int] | None = None
        self._noise: Any = None

    def gradient(
        self,
        parameters: np.ndarray,
        table: Table,
        index: np.ndarray | None,
        *,
        key: np.ndarray,
        capacity: int,
        i: int,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Compute the gradient at the parameters, and the bound with its parts, with the noise of a chunk's step."""
        inputs = dataclasses.replace(
            self._inputs,
            table=table,
            index=None if index is None else jnp.asarray(index),
            key=jax.random.wrap_key_data(jnp.asarray(key)),
            capacity=capacity,
        )
        if self._noise_of != (key.tobytes(), capacity):
            self._noise = noise_of_chunk(inputs, self._like)
            self._noise_of = key.tobytes(), capacity
        gradient, bound = gradient_of_step(
            inputs, self._like, jnp.asarray(parameters), self._noise, jnp.asarray(i, jnp.int32)
        )
        return np.asarray(gradient), np.array([float(part) for part in bound])

    @property
    def n_parameters(self) -> int:
        """How many numbers are learned."""
        return ravel_pytree(self._like)[0].size


def _ray_get() -> Callable[[Any], Any]:
    import ray

    return ray.get


def step_of_shard(position: int, slot: int, n_workers: int, steps_a_table: int | None) -> int:
    """Give which step of the whole order a slot's batch is: tables are dealt like cards, anew in each epoch.

    Example:
        >>> from bochner.distributed.worker import step_of_shard
        >>> [step_of_shard(position, 1, 3, None) for position in range(3)]
        [1, 4, 7]
        >>> [step_of_shard(position, 1, 2, 2) for position in range(4)]
        [2, 3, 6, 7]
    """
    steps = steps_a_table or 1
    table, step = divmod(position, steps)
    return (table * n_workers + slot) * steps + step


class Worker:
    """One worker of an asynchronous training.

    Args:
        slot: its place among the workers.
        incarnation: how many workers had this place before.
        coordinator: handle of the coordinator.
        shards: handles of the shards, in order.
        settings: batch size, seed, number of workers, and where rows on disk are.
        columns: inputs, targets and weights of rows in memory.
        wait: gives the results of remote calls.
    """

    def __init__(
        self,
        slot: int,
        incarnation: int,
        coordinator: Any,
        shards: Sequence[Any],
        settings: Mapping[str, Any],
        *columns: np.ndarray,
        wait: Callable[[Any], Any] | None = None,
    ):
        self._slot, self._incarnation = slot, incarnation
        self._coordinator, self._shards = coordinator, shards
        self._n_workers = settings["n_workers"]
        self._steps = _steps(settings, columns)
        self._steps.stride = self._n_workers
        self._generation, self._program = -1, None
        self._is_ready = False
        self._step_seen = 0
        self._wait = _ray_get() if wait is None else wait

    def pid(self) -> int:
        """The process it runs in."""
        return os.getpid()

    def run(self) -> int:
        """Work until another takes the place."""
        while self.work_once():
            pass
        return self._step_seen

    def step_seen(self) -> int:
        """The newest step that it was told of."""
        return self._step_seen

    def work_once(self) -> bool:
        """Take one batch, compute its gradient and push it; False where another has the place."""
        ticket = self._wait(self._coordinator.ticket.remote(self._slot, self._incarnation))
        if ticket is None:
            return False
        if ticket["generation"] != self._generation:
            self._generation, program = self._wait(self._coordinator.program.remote())
            self._program = GradientProgram(program)
            self._is_ready = False
        started = time.monotonic()
        fetched = self._fetched()
        if {generation for generation, _, _ in fetched} | {ticket["generation"]} != {
            self._generation
        }:
            return True  # a new stage has begun in between
        version = min(version for _, version, _ in fetched)
        parameters = np.concatenate([piece for _, _, piece in fetched])
        has_fetched = time.monotonic()
        gradient, bound = self._gradient(parameters, ticket)
        has_computed = time.monotonic()
        if not self._is_ready:
            # The first gradient compiles for seconds, in which others may have gone on: the batch is done again.
            self._is_ready = True
            if any(now > version for _, now, _ in self._fetched()):
                return True
        push = (self._slot, self._incarnation, ticket["position"])
        ends = np.cumsum([len(piece) for _, _, piece in fetched])[:-1]
        pieces = zip(self._shards, np.split(gradient, ends), strict=True)
        self._wait([shard.stage.remote(push, piece) for shard, piece in pieces])
        moments = [started, has_fetched, has_computed, time.monotonic()]
        seconds = np.diff(moments).tolist()
        _, self._step_seen = self._wait(
            self._coordinator.push.remote(push, self._generation, version, bound.tolist(), seconds)
        )
        return True

    def _fetched(self) -> list[tuple[int, int, np.ndarray]]:
        return self._wait([shard.fetch.remote() for shard in self._shards])

    def _gradient(
        self, parameters: np.ndarray, ticket: Mapping[str, Any]
    ) -> tuple[np.ndarray, np.ndarray]:
        assert self._program is not None
        first = self._steps.steps_of_table(0)
        step = step_of_shard(ticket["position"], self._slot, self._n_workers, first)
        table, index = self._steps.take(step, 1, 1)
        key, i = ticket["key"], ticket["index"]
        if self._n_workers > 1:
            # Each batch has noise of its own; one worker draws that of a serial run, a chunk at once.
            folded = jax.random.fold_in(jax.random.wrap_key_data(jnp.asarray(key)), step)
            key, i = np.asarray(jax.random.key_data(folded)), 0
        return self._program.gradient(
            parameters, table, index, key=key, capacity=ticket["capacity"], i=i
        )


def _steps(settings: Mapping[str, Any], columns: Sequence[np.ndarray]) -> AbstractSteps:
    data = Table.of(*columns) if columns else Spool.opened(**settings["spool"])
    return data.in_steps(settings["batch_size"], tuple(settings["seed"]))
