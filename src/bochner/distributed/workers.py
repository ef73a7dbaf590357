"""Asynchronous training: a parameter server and workers on Ray, looked after by this process."""

import contextlib
import dataclasses
import itertools
import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from bochner.distributed.cluster import connected
from bochner.distributed.server import Coordinator, ParameterShard
from bochner.distributed.worker import Worker, program_of
from bochner.inference.bound import Bound
from bochner.rows.spool import Spool
from bochner.rows.table import AbstractSteps, Table, TrainingData
from bochner.training import AbstractEngine
from bochner.training.chunk import ChunkInputs, State, run_chunk
from bochner.training.loop import ADAM

_STEPS_A_CHUNK = 256
_MOST_LOSSES_IN_A_ROW = 10


@dataclasses.dataclass(frozen=True)
class WorkerSettings:
    """What `Asynchronous` asks for; it documents each."""

    n_workers: int
    n_shards: int
    max_staleness: int | None
    scale_by_staleness: bool
    address: str | None
    gpus_a_worker: float


class _ServerLostError(Exception):
    """A worker found the coordinator or a shard gone."""


class Workers(AbstractEngine):
    """Runs the steps of a chunk as updates of a parameter server, whose gradients come from workers.

    Between chunks the loop has the whole state, as after a chunk on one device. That is also the state from which a
    lost server is started again.

    Args:
        settings: how many of what.
        worker_class: what computes gradients.
    """

    def __init__(self, settings: WorkerSettings, worker_class: type[Worker] = Worker):
        self._settings, self._worker_class = settings, worker_class
        self._open = contextlib.ExitStack()
        self._data: TrainingData | None = None
        self._steps: AbstractSteps | None = None
        self._seed: tuple[int, ...] = ()
        self._generation = 0
        self._loaded: tuple[Any, ...] | None = None
        self._before: list[dict[str, Any]] = []  # reports of coordinators that were lost
        self._totals = {"workers_replaced": 0, "server_restarts": 0, "updates_lost": 0}
        self._coordinator, self._shards, self._workers, self._running = None, [], [], []
        self._last_report: dict[str, Any] = {}

    def __enter__(self) -> "Workers":
        n_cpus = self._settings.n_workers + self._settings.n_shards + 1
        self._ray = self._open.enter_context(connected(self._settings.address, n_cpus))
        self._open.callback(self._stop)
        try:
            self._check_resources()
        except ValueError:
            self._open.close()
            raise
        return self

    def _check_resources(self) -> None:
        """Refuse what the cluster can never hold: Ray would wait for it without a word."""
        settings, there = self._settings, self._ray.cluster_resources()
        needs = {
            "CPU": settings.n_workers + settings.n_shards,
            "GPU": settings.n_workers * settings.gpus_a_worker,
        }
        for kind, needed in needs.items():
            if needed > there.get(kind, 0):
                raise ValueError(
                    f"{settings.n_workers} workers and {settings.n_shards} shards need {needed:g} {kind}s, and the Ray "
                    f"cluster has {there.get(kind, 0):g}. Take fewer, or add machines."
                )

    def __exit__(self, *exception: Any) -> None:
        self._open.close()

    @property
    def report(self) -> dict[str, Any]:  # noqa: D102
        return {**_added(self._before, self._last_report), **self._totals}

    def steps(self, data: TrainingData, batch_size: int, seed: tuple[int, ...]) -> AbstractSteps:  # noqa: D102
        self._data, self._seed = data, seed
        self._steps = data.in_steps(batch_size, seed)
        return self._steps

    def rows(self, steps: AbstractSteps, start: int, n_steps: int, capacity: int):
        """Give none: the workers read their own."""
        return Table.of(np.zeros((0, 1)), np.zeros((0, 1))), None

    def steps_of_table(self, steps: AbstractSteps, start: int) -> int | None:  # noqa: D102
        # One worker draws the noise of a serial run, whose chunks end with its tables.
        return steps.steps_of_table(start) if self._settings.n_workers == 1 else None

    def capacity(self, of_chunk: int) -> int:  # noqa: D102
        # One worker draws the noise of a serial run, whose chunks it must share.
        return of_chunk if self._settings.n_workers == 1 else _STEPS_A_CHUNK

    def bound(self, inputs: ChunkInputs, state: State, start: int) -> Bound:  # noqa: D102
        assert self._steps is not None
        return bound_of_one_step(self._steps, inputs, state, start, self._settings.n_workers)

    def run(self, inputs: ChunkInputs, state: State, start: int) -> tuple[State, Bound]:  # noqa: D102
        losses = 0
        while True:
            try:
                if self._coordinator is None:
                    self._start_server()
                if self._loaded is None or self._loaded != _identity(inputs, state):
                    self._load(inputs, state, start)
                return self._advance(inputs, state)
            except (*_losses(self._ray), _ServerLostError) as error:
                losses += 1
                self._note_loss_of_server(start)
                if losses > _MOST_LOSSES_IN_A_ROW:
                    raise RuntimeError(
                        f"the parameter server was lost {losses} times in a row: {error}"
                    ) from error

    # The server.

    def _start_server(self) -> None:
        ray, settings = self._ray, self._settings
        shard_class, coordinator_class = ray.remote(ParameterShard), ray.remote(Coordinator)
        # Actors that Ray would restart have lost what they held: this process starts them, from a state that it has.
        options = {"num_cpus": 1, "max_restarts": 0}
        self._shards = [shard_class.options(**options).remote() for _ in range(settings.n_shards)]
        self._coordinator = coordinator_class.options(
            num_cpus=0, max_restarts=0, max_concurrency=10 + 4 * settings.n_workers
        ).remote(
            self._shards, settings.n_workers, settings.max_staleness, settings.scale_by_staleness
        )
        self._loaded = None

    def _load(self, inputs: ChunkInputs, state: State, start: int) -> None:
        """Give the shards a new state, and workers what they need to compute its gradients."""
        assert self._coordinator is not None
        if inputs.optimizer is not ADAM:
            raise ValueError(
                "asynchronous training knows one optimizer, Adam with the library's defaults."
            )
        self._generation += 1
        parameters = np.asarray(ravel_pytree(state.learned)[0])
        leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(state.optimizer_state)]
        calls = []
        for shard, part in zip(self._shards, self._parts(len(parameters)), strict=True):
            own = [leaf[part] if leaf.ndim else leaf for leaf in leaves]
            calls.append(shard.load.remote(self._generation, parameters[part], own, version=start))
        self._ray.get(calls)
        program = program_of(inputs, state.learned, self._n_targets())
        self._ray.get(self._coordinator.begin.remote(self._generation, program, start))
        self._loaded = _identity(inputs, state)
        if not self._workers:
            self._start_workers()

    def _advance(self, inputs: ChunkInputs, state: State) -> tuple[State, Bound]:
        assert self._coordinator is not None
        n_steps = int(inputs.n_steps)
        fractions = inputs.fractions[0] + jnp.arange(n_steps) * inputs.fractions[1]
        factors = inputs.step_size * jax.vmap(inputs.schedule)(fractions)
        key = np.asarray(jax.random.key_data(inputs.key))
        capacity = inputs.capacity if self._settings.n_workers == 1 else 1
        done = self._coordinator.advance.remote(n_steps, np.asarray(factors), key, capacity)
        while True:
            finished, _ = self._ray.wait([done, *self._running], num_returns=1)
            if finished[0] == done:
                break
            self._replace_worker(self._running.index(finished[0]))
        bound = Bound(*(jnp.asarray(part) for part in self._ray.get(done)))
        new = self._state(state)
        self._last_report = self._ray.get(self._coordinator.report.remote())
        self._loaded = _identity(inputs, new)
        return new, bound

    def _state(self, like: State) -> State:
        """Give what the shards hold, as one state."""
        pieces = self._ray.get([shard.state.remote() for shard in self._shards])
        assert len({version for version, _, _ in pieces}) == 1, (
            "an update reaches all shards or none"
        )
        unravel = ravel_pytree(like.learned)[1]
        parameters = jnp.asarray(np.concatenate([piece for _, piece, _ in pieces]))
        columns = zip(*(leaves for _, _, leaves in pieces), strict=True)
        leaves = [
            jnp.asarray(np.concatenate(column) if column[0].ndim else column[0])
            for column in columns
        ]
        structure = jax.tree.structure(like.optimizer_state)
        return State(unravel(parameters), jax.tree.unflatten(structure, leaves))

    def _note_loss_of_server(self, start: int) -> None:
        """Drop what is left of a lost server, and tell what was lost with it."""
        reached = max(self._steps_seen(), default=start)
        lost = max(reached - start, 0)
        self._stop()
        self._before.append(self._last_report)
        self._last_report = {}
        self._totals["server_restarts"] += 1
        self._totals["updates_lost"] += lost
        warnings.warn(
            f"the parameter server was lost near step {reached:,}: it goes on from step {start:,}, and the {lost:,} "
            "updates that followed are lost.",
            RuntimeWarning,
            stacklevel=6,
        )

    def _steps_seen(self) -> list[int]:
        """Ask the workers, who outlive their server for a moment, how far it had come."""
        seen = []
        for worker in self._workers:
            with contextlib.suppress(self._ray.exceptions.RayError):
                seen.append(self._ray.get(worker.step_seen.remote(), timeout=10))
        return seen

    def _parts(self, n: int) -> list[slice]:
        ends = np.linspace(0, n, self._settings.n_shards + 1).astype(int)
        return [slice(*pair) for pair in itertools.pairwise(ends)]

    # The workers.

    def _start_workers(self) -> None:
        self._place_rows()
        self._workers = [self._worker(slot, 0) for slot in range(self._settings.n_workers)]
        self._running = [worker.run.remote() for worker in self._workers]

    def _place_rows(self) -> None:
        """Put rows in memory into Ray's object store once; rows on disk stay where they are."""
        assert self._steps is not None
        self._common = {
            "n_workers": self._settings.n_workers,
            "batch_size": self._steps.batch_size,
            "seed": list(self._seed),
        }
        self._columns = []
        if isinstance(self._data, Spool):
            self._common["spool"] = self._data.shared()
        elif isinstance(self._data, Table):
            columns = (self._data.X, self._data.Y, self._data.weights)
            self._columns = [self._ray.put(np.asarray(column)) for column in columns]
        else:
            raise TypeError(f"workers cannot read rows of type {type(self._data).__name__}.")

    def _worker(self, slot: int, incarnation: int) -> Any:
        worker_class = self._ray.remote(self._worker_class).options(
            num_cpus=1, num_gpus=self._settings.gpus_a_worker, max_restarts=0, max_concurrency=2
        )
        return worker_class.remote(
            slot, incarnation, self._coordinator, self._shards, self._common, *self._columns
        )

    def _replace_worker(self, slot: int) -> None:
        """Put another worker in the place of one that ended; errors of our own are raised."""
        assert self._coordinator is not None
        errors = self._ray.exceptions
        try:
            self._ray.get(self._running[slot])
        except errors.RayTaskError as error:
            if isinstance(error, _losses(self._ray)) or isinstance(error.cause, _losses(self._ray)):
                raise _ServerLostError from error
            raise error.cause from error
        except _losses(self._ray) as error:
            reason = str(error).splitlines()[0]
        else:
            reason = "it ended"
        incarnation = self._ray.get(self._coordinator.replace.remote(slot))
        self._totals["workers_replaced"] += 1
        done = self._last_report.get("updates_of_worker", [0] * self._settings.n_workers)[slot]
        if incarnation > _MOST_LOSSES_IN_A_ROW + done:
            raise RuntimeError(f"worker {slot} was lost {incarnation} times: {reason}")
        warnings.warn(
            f"worker {slot} was lost and is replaced; its gradient in flight is dropped.",
            RuntimeWarning,
            stacklevel=6,
        )
        self._workers[slot] = self._worker(slot, incarnation)
        self._running[slot] = self._workers[slot].run.remote()

    def _stop(self) -> None:
        for actor in (*self._workers, self._coordinator, *self._shards):
            if actor is not None:
                with contextlib.suppress(Exception):
                    self._ray.kill(actor)
        self._coordinator, self._shards, self._workers, self._running = None, [], [], []
        self._loaded = None

    def _n_targets(self) -> int:
        assert self._data is not None
        if isinstance(self._data, Spool):
            return self._data.n_targets
        return self._data.Y.shape[1]  # pyright: ignore[reportAttributeAccessIssue]


def _losses(ray: Any) -> tuple[type[Exception], ...]:
    """The errors by which Ray tells that an actor, its machine or what it held is gone."""
    errors = ray.exceptions
    return (
        errors.RayActorError,
        errors.NodeDiedError,
        errors.OutOfMemoryError,
        errors.ObjectLostError,
    )


def bound_of_one_step(
    steps: AbstractSteps, inputs: ChunkInputs, state: State, start: int, n_workers: int
) -> Bound:
    """Compute a bound in this process; it draws noise for one step, where a chunk of workers' steps holds many."""
    capacity = inputs.capacity if n_workers == 1 else 1
    table, index = steps.take(start, 1, capacity)
    index = None if index is None else jnp.asarray(index)
    one_step = dataclasses.replace(inputs, table=table, index=index, capacity=capacity)
    return run_chunk(one_step, state)[1]


class _Same:
    """Stands for an object in comparisons: equal to itself alone."""

    def __init__(self, what: Any):
        self.what = what

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.what is other.what

    __hash__ = None  # pyright: ignore[reportAssignmentType]


def _identity(inputs: ChunkInputs, state: State) -> tuple[Any, ...]:
    """What the server holds: it takes a new state where any of this is another."""
    return _Same(state), _Same(inputs.held), inputs.stage


def _added(before: list[dict[str, Any]], last: dict[str, Any]) -> dict[str, Any]:
    """Add up the reports of all coordinators."""
    total: dict[str, Any] = {}
    for report in (*before, last):
        for name, value in report.items():
            if name == "seconds":
                total[name] = value  # the newest are enough
            elif isinstance(value, dict):
                old = total.setdefault(name, {})
                for key, number in value.items():
                    old[key] = old.get(key, 0) + number
            elif isinstance(value, list):
                old = total.setdefault(name, [0] * len(value))
                total[name] = [a + b for a, b in zip(old, value, strict=True)]
            else:
                total[name] = total.get(name, 0) + value
    return total
