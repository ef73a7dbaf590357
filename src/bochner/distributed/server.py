"""The parameter server: shards that hold parameters, and one coordinator that decides on every push."""

import asyncio
from collections import Counter, deque
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bochner.training.loop import ADAM

_TIMES_KEPT = 200
_MOST_REFUSED = 5

Push = tuple[int, int, int]
"""Names a push for good: the worker's slot, which incarnation of it, and which of the slot's batches."""


class ParameterShard:
    """A slice of the parameters and of Adam's averages, which are elementwise and so can be cut anywhere.

    A gradient comes in two steps: it is staged by the worker, and applied once the coordinator says so. So an update
    reaches all shards or none.

    Example:
        >>> import numpy as np
        >>> from bochner.distributed.server import ParameterShard
        >>> shard = ParameterShard()
        >>> shard.load(1, np.zeros(2, np.float32), None, version=0)
        >>> shard.stage((0, 0, 0), np.array([1.0, -1.0], np.float32))
        >>> shard.is_finite((0, 0, 0)), shard.apply((0, 0, 0), factor=0.5)
        (True, 1)
        >>> shard.fetch()[2].round(3).tolist()
        [-0.5, 0.5]
    """

    def __init__(self):
        self._generation = self._version = 0
        self._parameters, self._optimizer_state = jnp.zeros(0), None
        self._staged: dict[int, tuple[Push, np.ndarray]] = {}

    def load(
        self,
        generation: int,
        parameters: np.ndarray,
        optimizer_leaves: Sequence[np.ndarray] | None,
        *,
        version: int,
    ) -> None:
        """Take a slice of a state; the optimizer starts anew where its leaves are None."""
        self._generation, self._version, self._staged = generation, version, {}
        self._parameters = jnp.asarray(parameters)
        state = ADAM.init(self._parameters)
        if optimizer_leaves is not None:
            leaves = [jnp.asarray(leaf) for leaf in optimizer_leaves]
            state = jax.tree.unflatten(jax.tree.structure(state), leaves)
        self._optimizer_state = state

    def fetch(self) -> tuple[int, int, np.ndarray]:
        """Give the generation of the state, how many updates it has had, and the parameters."""
        return self._generation, self._version, np.asarray(self._parameters)

    def stage(self, push: Push, gradient: np.ndarray) -> None:
        """Hold a gradient; one that the same slot left here before is dropped."""
        self._staged[push[0]] = push, gradient

    def is_finite(self, push: Push) -> bool:
        """Whether the staged gradient is finite and fits."""
        gradient = self._of(push)
        return gradient.shape == self._parameters.shape and bool(np.all(np.isfinite(gradient)))

    def apply(self, push: Push, factor: float) -> int:
        """Make the step of a staged gradient, which is used up; give the number of updates so far."""
        gradient = self._of(push)
        self._parameters, self._optimizer_state = _updated(
            self._parameters, self._optimizer_state, gradient, np.float32(factor)
        )
        del self._staged[push[0]]
        self._version += 1
        return self._version

    def state(self) -> tuple[int, np.ndarray, list[np.ndarray]]:
        """Give the number of updates, the parameters and the optimizer's leaves."""
        leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(self._optimizer_state)]
        return self._version, np.asarray(self._parameters), leaves

    def _of(self, push: Push) -> np.ndarray:
        found, gradient = self._staged[push[0]]
        assert found == tuple(push), "a worker pushes what it has staged"
        return gradient


@jax.jit
def _updated(parameters, optimizer_state, gradient, factor):
    updates, optimizer_state = ADAM.update(gradient, optimizer_state, parameters)
    return parameters + factor * updates, optimizer_state


def share_of_step(staleness: int) -> float:
    """Give what a stale gradient's step is multiplied by: not the gradient, whose size Adam divides out.

    Example:
        >>> from bochner.distributed.server import share_of_step
        >>> share_of_step(0), share_of_step(3)
        (1.0, 0.25)
    """
    return 1.0 / (1.0 + staleness)


class Coordinator:
    """Counts updates, hands out batches, and decides which gradients are applied. Its methods share one event loop.

    A slot is a worker's place; when its worker dies, another incarnation takes it and goes on with the same batch.

    Args:
        shards: handles of the shards, whose methods have `remote`.
        n_workers: slots.
        max_staleness: gradients of older parameters are refused; None takes all.
        scale_by_staleness: divide the step of a gradient by one plus its staleness.
    """

    def __init__(
        self,
        shards: Sequence[Any],
        n_workers: int,
        max_staleness: int | None,
        scale_by_staleness: bool,
    ):
        self._shards, self._n_workers = shards, n_workers
        self._max_staleness, self._scale_by_staleness = max_staleness, scale_by_staleness
        self._changed = asyncio.Condition()
        self._generation, self._program = 0, {}
        self._step = self._start = self._target = 0
        self._factors, self._key, self._capacity = np.zeros(0), np.zeros(0), 1
        self._positions = [0] * n_workers
        self._incarnations = [0] * n_workers
        self._at_work = [False] * n_workers
        self._totals = np.zeros(3)
        self._refused: Counter[int] = Counter()  # by slot, since the last update
        self._counts: Counter[str] = Counter()
        self._staleness: Counter[int] = Counter()
        self._by_slot: Counter[int] = Counter()
        self._seconds: deque[tuple[float, ...]] = deque(maxlen=_TIMES_KEPT)

    async def begin(self, generation: int, program: dict[str, Any], step: int) -> None:
        """Take a new state, which the shards hold already, and how its gradients are computed."""
        async with self._changed:
            self._generation, self._program = generation, program
            self._step = self._start = self._target = step
            self._refused.clear()
            # As if the slots had taken turns so far; with one slot it is where a serial run would be.
            self._positions = [
                (step + self._n_workers - 1 - slot) // self._n_workers
                for slot in range(self._n_workers)
            ]
            self._changed.notify_all()

    async def program(self) -> tuple[int, dict[str, Any]]:
        """Give how gradients are computed."""
        return self._generation, self._program

    async def advance(
        self, n_steps: int, factors: np.ndarray, key: np.ndarray, capacity: int
    ) -> list[float]:
        """Let so many updates happen, each with its learning rate; give the mean of their bounds.

        Gives NaN where no worker's gradients are finite any more: then it is the parameters that are beyond repair.
        """
        async with self._changed:
            self._start, self._target = self._step, self._step + n_steps
            self._factors, self._key, self._capacity = factors, key, capacity
            self._totals = np.zeros(3)
            self._changed.notify_all()
            await self._changed.wait_for(lambda: self._step >= self._target or self._has_diverged())
            if self._has_diverged():
                self._target = self._step
                return [np.nan] * 3
            return (self._totals / n_steps).tolist()

    async def ticket(self, slot: int, incarnation: int) -> dict[str, Any] | None:
        """Give a worker its next batch as soon as an update is wanted; None where its place is another's now."""
        async with self._changed:
            await self._changed.wait_for(
                lambda: self._step < self._target or self._is_replaced(slot, incarnation)
            )
            if self._is_replaced(slot, incarnation):
                return None
            self._at_work[slot] = True
            return {
                "generation": self._generation,
                "position": self._positions[slot],
                "index": self._step - self._start,
                "key": self._key,
                "capacity": self._capacity,
            }

    async def push(
        self,
        push: Push,
        generation: int,
        version: int,
        bound: Sequence[float],
        seconds: Sequence[float] = (),
    ) -> tuple[str, int]:
        """Decide on a staged gradient of parameters that had had `version` updates; give the decision and the step.

        The same push can come twice, and is applied once. `seconds` says how long the worker fetched, computed, sent.
        """
        slot, incarnation, position = push
        async with self._changed:
            await self._changed.wait_for(
                lambda: (
                    self._step < self._target
                    or self._is_replaced(slot, incarnation)
                    or generation != self._generation
                )
            )
            if self._is_replaced(slot, incarnation):
                return "replaced", self._step  # counted when the place was taken
            decision = await self._decided(push, generation, position, version, bound)
            if decision != "accepted" and decision != "repeated":
                self._counts[decision] += 1
            elif seconds:
                self._seconds.append(tuple(seconds))
            self._at_work[slot] = False
            self._changed.notify_all()
            return decision, self._step

    async def _decided(self, push, generation, position, version, bound) -> str:
        slot = push[0]
        if generation != self._generation:
            return "outdated"
        if position != self._positions[slot]:
            return "repeated"
        if not all(await self._on_shards("is_finite", push)) or not np.all(np.isfinite(bound)):
            self._positions[slot] += 1  # the same batch would only fail again
            self._refused[slot] += 1
            return "not_finite"
        staleness = self._step - version
        if self._max_staleness is not None and staleness > self._max_staleness:
            return "too_stale"
        factor = float(self._factors[self._step - self._start])
        if self._scale_by_staleness:
            factor *= share_of_step(staleness)
        await self._on_shards("apply", push, factor)
        self._positions[slot] += 1
        self._step += 1
        self._refused.clear()
        self._totals += bound
        self._staleness[staleness] += 1
        self._by_slot[slot] += 1
        return "accepted"

    async def replace(self, slot: int) -> int:
        """Give a place to another worker; what the one before had under way is dropped. Gives the incarnation."""
        async with self._changed:
            self._incarnations[slot] += 1
            self._counts["dropped_in_flight"] += self._at_work[slot]
            self._at_work[slot] = False
            self._changed.notify_all()
            return self._incarnations[slot]

    async def report(self) -> dict[str, Any]:
        """Tell what happened so far."""
        return {
            "updates": sum(self._by_slot.values()),
            "updates_of_worker": [self._by_slot[slot] for slot in range(self._n_workers)],
            "seconds": {
                name: [times[i] for times in self._seconds]
                for i, name in enumerate(("fetch", "gradient", "send"))
            },
            "staleness": {str(value): n for value, n in sorted(self._staleness.items())},
            **{
                name: self._counts[name]
                for name in ("too_stale", "not_finite", "outdated", "dropped_in_flight")
            },
        }

    def _has_diverged(self) -> bool:
        return all(self._refused[slot] >= _MOST_REFUSED for slot in range(self._n_workers))

    def _is_replaced(self, slot: int, incarnation: int) -> bool:
        return incarnation != self._incarnations[slot]

    async def _on_shards(self, method: str, *args: Any) -> list[Any]:
        calls = [getattr(shard, method).remote(*args) for shard in self._shards]
        return list(await asyncio.gather(*calls))
