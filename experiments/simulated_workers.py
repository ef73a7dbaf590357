"""Asynchronous workers in virtual time: real gradients of stale parameters, in the order that measured times give."""

import dataclasses
import heapq
from collections import Counter
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from bochner.distributed import AbstractDistribution
from bochner.distributed.server import ParameterShard, share_of_step
from bochner.distributed.worker import GradientProgram, program_of, step_of_shard
from bochner.distributed.workers import bound_of_one_step
from bochner.inference.bound import Bound
from bochner.rows.table import AbstractSteps, Table
from bochner.training import AbstractEngine
from bochner.training.chunk import ChunkInputs, State


@dataclasses.dataclass(frozen=True)
class Times:
    """Measured seconds of a worker's and the server's work, one entry a time it was measured."""

    fetch: tuple[float, ...]
    gradient: tuple[float, ...]
    send: tuple[float, ...]
    apply: tuple[float, ...]

    @classmethod
    def of(cls, measured: Mapping[str, Any]) -> "Times":
        return cls(**{field.name: tuple(measured[field.name]) for field in dataclasses.fields(cls)})


class Timetable:
    """When which worker's gradient is applied, if each worker has a core of its own and the server takes turns.

    >>> times = Times(fetch=(0.0,), gradient=(1.0,), send=(0.0,), apply=(0.1,))
    >>> timetable = Timetable(2, times, seed=0)
    >>> [timetable.next()[0] for _ in range(4)], round(timetable.seconds, 1)
    ([0, 1, 0, 1], 2.3)
    """

    def __init__(self, n_workers: int, times: Times, seed: int):
        self._times, self._generator = times, np.random.default_rng(seed)
        self.seconds = 0.0
        self._arrivals: list[tuple[float, int]] = []
        for slot in range(n_workers):
            self._send_off(slot, 0.0)

    def next(self) -> tuple[int, float]:
        """Let the next gradient be applied; give its worker, who fetches anew, and the time."""
        arrival, slot = heapq.heappop(self._arrivals)
        self.seconds = max(arrival, self.seconds) + self._drawn("apply")
        self._send_off(slot, self.seconds)
        return slot, self.seconds

    def _send_off(self, slot: int, now: float) -> None:
        work = sum(self._drawn(name) for name in ("fetch", "gradient", "send"))
        heapq.heappush(self._arrivals, (now + work, slot))

    def _drawn(self, name: str) -> float:
        return float(self._generator.choice(getattr(self._times, name)))


@dataclasses.dataclass(frozen=True)
class Simulated(AbstractDistribution):
    """As `Asynchronous`, with the clock of a timetable instead of processes."""

    n_workers: int
    times: Times
    scale_by_staleness: bool = False
    seed: int = 0

    def engine(self, platform: str | None = None) -> AbstractEngine:
        return SimulatedWorkers(self)


class SimulatedWorkers(AbstractEngine):
    """Computes each gradient at the parameters that its worker would have fetched."""

    def __init__(self, settings: Simulated):
        self._n_workers = settings.n_workers
        self._scale_by_staleness = settings.scale_by_staleness
        self._timetable = Timetable(settings.n_workers, settings.times, settings.seed)
        self._shard = ParameterShard()
        self._staleness: Counter[int] = Counter()
        self._positions = [0] * settings.n_workers
        self._fetched: list[tuple[int, np.ndarray]] = []
        self._steps: AbstractSteps | None = None
        self._loaded: Any = None
        self._program: GradientProgram | None = None

    @property
    def report(self) -> dict[str, Any]:
        return {
            "simulated_seconds": self._timetable.seconds,
            "staleness": {str(value): n for value, n in sorted(self._staleness.items())},
        }

    def steps(self, data, batch_size, seed):
        self._steps = data.in_steps(batch_size, seed)
        assert isinstance(data, Table)
        self._n_targets = data.Y.shape[1]
        return self._steps

    def rows(self, steps, start, n_steps, capacity):
        return Table.of(np.zeros((0, 1)), np.zeros((0, 1))), None

    def steps_of_table(self, steps, start):
        return None

    def capacity(self, of_chunk: int) -> int:
        return of_chunk if self._n_workers == 1 else 256

    def bound(self, inputs: ChunkInputs, state: State, start: int) -> Bound:
        assert self._steps is not None
        return bound_of_one_step(self._steps, inputs, state, start, self._n_workers)

    def run(self, inputs: ChunkInputs, state: State, start: int) -> tuple[State, Bound]:
        assert self._steps is not None
        if self._loaded is not state or self._stage != inputs.stage:
            self._load(inputs, state, start)
        program, total = self._program, np.zeros(3)
        assert program is not None
        n_steps, key = int(inputs.n_steps), np.asarray(jax.random.key_data(inputs.key))
        for i in range(n_steps):
            slot, _ = self._timetable.next()
            version, parameters = self._fetched[slot]
            step = step_of_shard(self._positions[slot], slot, self._n_workers, None)
            table, index = self._steps.take(step, 1, 1)
            own, j, capacity = key, i, inputs.capacity
            if self._n_workers > 1:
                folded = jax.random.fold_in(inputs.key, step)
                own, j, capacity = np.asarray(jax.random.key_data(folded)), 0, 1
            gradient, bound = program.gradient(
                parameters, table, index, key=own, capacity=capacity, i=j
            )
            fraction = inputs.fractions[0] + i * inputs.fractions[1]
            factor = float(inputs.step_size * inputs.schedule(fraction))
            staleness = start + i - version
            if self._scale_by_staleness:
                factor *= share_of_step(staleness)
            push = (slot, 0, self._positions[slot])
            self._shard.stage(push, gradient)
            self._shard.apply(push, factor)
            self._staleness[staleness] += 1
            self._positions[slot] += 1
            self._fetched[slot] = self._shard.fetch()[1:]
            total += bound
        _, parameters, leaves = self._shard.state()
        unravel = ravel_pytree(state.learned)[1]
        structure = jax.tree.structure(state.optimizer_state)
        leaves = [jnp.asarray(leaf) for leaf in leaves]
        self._loaded = State(
            unravel(jnp.asarray(parameters)), jax.tree.unflatten(structure, leaves)
        )
        return self._loaded, Bound(*(jnp.asarray(part) for part in total / n_steps))

    def _load(self, inputs: ChunkInputs, state: State, start: int) -> None:
        leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(state.optimizer_state)]
        parameters = np.asarray(ravel_pytree(state.learned)[0])
        self._shard.load(0, parameters, leaves, version=start)
        self._fetched = [self._shard.fetch()[1:]] * self._n_workers
        self._stage = inputs.stage
        program = program_of(inputs, state.learned, self._n_targets)
        self._program = GradientProgram(program)
