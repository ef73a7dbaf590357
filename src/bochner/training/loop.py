"""The loop over chunks: stages, budget, records, recovery from divergence, early stopping."""

import dataclasses
import math
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import PRNGKeyArray

from bochner.gp.members import Members
from bochner.gp.model import DeepGP
from bochner.gp.reparameterization import AbstractReparameterization, DrawWeights
from bochner.inference.bound import Bound
from bochner.inference.objectives import AbstractObjective, Elbo
from bochner.rows.table import TrainingData
from bochner.system.threads import blas_on_one_thread
from bochner.training.budget import AbstractSchedule, Budget, Constant, KLWeight
from bochner.training.checkpoints import (
    Checkpoints,
    TrainingStoppedError,
    filled,
    named_arrays,
)
from bochner.training.chunk import LONGEST_GRADIENT, ChunkInputs, State, chunk_capacity
from bochner.training.engine import AbstractEngine, OneDevice
from bochner.training.interruption import listen_for_stop
from bochner.training.progress import AbstractCallback, Record
from bochner.training.stages import Plan, Stage, trainable

# One flat update of all parameters: a pass over one vector instead of several small ones a leaf. The
# learning rate is a factor on its updates, so that one compiled program serves all rates.
ADAM = optax.flatten(optax.adam(1.0))

_MAX_HALVINGS = 3


class TrainingDivergedError(RuntimeError):
    """The bound became non-finite again and again, whatever the step size."""


@dataclasses.dataclass(frozen=True)
class HeldOut:
    """Early stopping: how held-out rows are judged, how often, and how patiently.

    Attributes:
        mnll: computes the mean negative log-likelihood of the held-out rows.
        n_times: evaluations over the whole budget.
        patience: stop after this many evaluations in a row without improvement; None never stops early.
    """

    mnll: Callable[[DeepGP | Members], float]
    n_times: int = 25
    patience: int | None = None


@dataclasses.dataclass(frozen=True)
class Trained:
    """The result of a training: the model (the best one, with held-out rows), and how it went."""

    model: Any
    history: list[Record]
    n_steps: int


def train(
    model: DeepGP | Members,
    data: TrainingData,
    *,
    plan: Plan,
    budget: Budget,
    batch_size: int,
    learning_rate: float = 0.01,
    schedule: AbstractSchedule = Constant(),  # noqa: B008
    optimizer: optax.GradientTransformation = ADAM,
    objective: AbstractObjective = Elbo(),  # noqa: B008
    reparameterization: AbstractReparameterization = DrawWeights(),  # noqa: B008
    kl_weight: KLWeight = KLWeight(),  # noqa: B008
    averaging: float = 0.0,
    held_out: HeldOut | None = None,
    callbacks: Sequence[AbstractCallback] = (),
    checkpoints: Checkpoints | None = None,
    engine: AbstractEngine | None = None,
    key: PRNGKeyArray,
) -> Trained:
    """Maximize the bound, or another objective, by stochastic gradients.

    `engine` says where the steps run: on one device by default.

    With `checkpoints` the training goes on from the newest one, if asked to, and SIGINT or SIGTERM end the chunk, write
    one more and raise `TrainingStoppedError`. Under a budget of steps, a training that was ended at any moment and went
    on gives bit-equal parameters.

    `learning_rate` times `schedule` multiplies the updates of `optimizer`, any Optax optimizer; give it a rate of one
    (the default is such an Adam), or a schedule of its own and `learning_rate=1`.

    With `averaging` above zero the result is a running average of the parameters (Polyak and Juditsky, 1992), of which
    each step keeps that share: 0.999 averages over about a thousand steps. Members all see the same rows.

    Example:
        >>> import jax, numpy as np, optax
        >>> from bochner.rows.table import Table
        >>> from bochner.gp.layers import LayerSettings
        >>> from bochner.likelihoods import Gaussian
        >>> from bochner.gp.model import DeepGP
        >>> from bochner.training import Budget, Plan, train
        >>> x = np.linspace(-1, 1, 50)[:, None]
        >>> model = DeepGP.start(
        ...     [LayerSettings(1)], Gaussian.start(1), d_in=1, feed_inputs=False, key=jax.random.key(0)
        ... )
        >>> trained = train(
        ...     model, Table.of(x, np.sin(3 * x)), plan=Plan(), budget=Budget(max_steps=200),
        ...     batch_size=50, optimizer=optax.adam(0.01), learning_rate=1.0, key=jax.random.key(1),
        ... )
        >>> trained.history[-1].elbo > trained.history[0].elbo
        True
    """
    run = _Run(
        model, data, plan, budget, batch_size, learning_rate, schedule, optimizer, objective,
        reparameterization, kl_weight, averaging, held_out, callbacks, checkpoints,
        engine or OneDevice(), key,
    )  # fmt: skip
    try:
        with blas_on_one_thread():
            return run.to_the_end()
    finally:
        for callback in callbacks:
            callback.on_end()


@dataclasses.dataclass(frozen=True)
class _Snapshot:
    step: int
    stage: Stage
    state: State
    held: DeepGP


class _Run:
    """One training under way; the attributes are what changes between chunks."""

    def __init__(
        self, model, data, plan, budget, batch_size, learning_rate, schedule, optimizer, objective,
        reparameterization, kl_weight, averaging, held_out, callbacks, checkpoints, engine, key,
    ):  # fmt: skip
        self.engine: AbstractEngine = engine
        self.plan, self.budget, self.checkpoints = plan, budget, checkpoints
        self.learning_rate, self.schedule = learning_rate, schedule
        self.optimizer, self.objective = optimizer, objective
        self.reparameterization, self.kl_weight = reparameterization, kl_weight
        self.averaging = averaging
        self.held_out, self.callbacks, self.key = held_out, callbacks, key

        self.started = time.monotonic()
        self.seconds = 0.0
        self.step, self.halvings = 0, 0
        self.stage = plan.stage(0, 0.0)
        self.state, self.held = self._begin_stage(model, self.stage)
        # A snapshot is trusted only once a bound computed from it came out finite.
        self.snapshot = self.fresh_snapshot = self._take_snapshot()
        self.seconds_per_step: float | None = None
        seed = tuple(np.asarray(jax.random.key_data(key)).tolist())
        self.steps = self.engine.steps(data, batch_size, seed)
        self.batch_size = self.steps.batch_size
        self.scale, self.total_weight = data.n_rows / self.batch_size, data.total_weight
        self.history: list[Record] = []
        self.pending: list[tuple[int, Bound]] = []
        self.best, self.best_mnll, self.without_improvement = None, math.inf, 0

    def to_the_end(self) -> Trained:
        if self.checkpoints is None:
            self._run_all_chunks(lambda: None)
        else:
            with self.checkpoints.in_use():
                self._restore(self.checkpoints.newest())
                with listen_for_stop() as request:
                    self._run_all_chunks(lambda: self._keep(self.engine.heard(request.signal)))
                self._write_checkpoint()
        model = self._result() if self.best is None else self.best
        return Trained(model=self.engine.here(model), history=self.history, n_steps=self.step)

    def _run_all_chunks(self, after_chunk: Callable[[], None]) -> None:
        while self._goes_on():
            fraction = self._fraction()
            self._enter(self.plan.stage(self.step, fraction))
            n_steps, bound = self._run_one_chunk(fraction)
            self._look_at_the_clock()
            if not _is_finite(bound):
                self._recover()
                continue
            self.snapshot = self.fresh_snapshot
            self.step += n_steps
            self.pending.append((n_steps, bound))
            if self._record_is_due():
                self.fresh_snapshot = self._take_snapshot()
                self._record()
            after_chunk()

    def _goes_on(self) -> bool:
        self._look_at_the_clock()
        if self._is_hopeless():
            return False
        if self.step == 0 or self._fraction() < 1.0:
            return True
        if _is_finite(self._bound_now()):
            return False
        self._recover()  # the last update was a bad one
        return self._fraction() < 1.0 or self.step == 0

    def _model(self) -> DeepGP | Members:
        return eqx.combine(self.state.learned, self.held)

    def _result(self) -> DeepGP | Members:
        """What the training gives, should it end now."""
        if self.state.average is None:
            return self._model()
        return eqx.combine(self.state.average, self.held)

    def _fraction(self) -> float:
        return self.budget.fraction(self.step, self.seconds)

    def _look_at_the_clock(self) -> None:
        self.seconds = self._agreed_time(time.monotonic() - self.started)

    def _agreed_time(self, seconds: float) -> float:
        """Where time decides something, all processes take the first one's."""
        return seconds if self.budget.max_seconds is None else self.engine.agreed(seconds)

    def _begin_stage(self, model: DeepGP | Members, stage: Stage) -> tuple[State, Any]:
        # Copies, since the chunk overwrites its buffers and the caller's model must stay whole.
        learned, held = eqx.partition(_copied(self.engine.here(model)), trainable(model, stage))
        average = _copied(learned) if self.averaging else None
        state = State(learned, self.optimizer.init(learned), average)
        return self.engine.everywhere(state), self.engine.everywhere(held)

    def _sound(self, state: State) -> State:
        """Give a copy whose optimizer starts anew if its averages hold long gradients, which it would not forget."""
        state = _copied(state)
        numbers = [
            leaf for leaf in jax.tree.leaves(state.optimizer_state) if eqx.is_inexact_array(leaf)
        ]
        if all(bool(jnp.all(jnp.abs(leaf) < LONGEST_GRADIENT**2)) for leaf in numbers):
            return state
        fresh = self.engine.everywhere(self.optimizer.init(self.engine.here(state.learned)))
        return dataclasses.replace(state, optimizer_state=fresh)

    def _enter(self, stage: Stage) -> None:
        if stage == self.stage:
            return
        if (stage.theta, stage.omega) != (self.stage.theta, self.stage.omega):
            # The optimizer starts anew: its averages for leaves that were held are not those of a run-in one.
            self.state, self.held = self._begin_stage(self._model(), stage)
        self.stage = stage
        self.fresh_snapshot = self._take_snapshot()
        self.seconds_per_step = None

    def _run_one_chunk(self, fraction: float) -> tuple[int, Bound]:
        known = self.seconds_per_step is not None
        inputs, n_steps = self._chunk_inputs(fraction, self._step_size())
        started = time.monotonic()
        self.state, bound = self.engine.run(inputs, self.state, self.step)
        values = _floats(bound)
        # The first chunk of a stage compiles, which says nothing about the steps.
        taken = self._agreed_time((time.monotonic() - started) / n_steps)
        self.seconds_per_step = taken if known else math.inf
        return n_steps, values

    def _bound_now(self) -> Bound:
        """Compute the bound of the present parameters with the compiled chunk, by a step of size zero."""
        inputs, _ = self._chunk_inputs(1.0, step_size=0.0, max_steps=1)
        return _floats(self.engine.bound(inputs, _copied(self.state), self.step))

    def _chunk_inputs(
        self, fraction: float, step_size: float, max_steps: int | None = None
    ) -> tuple[ChunkInputs, int]:
        capacity = self.engine.capacity(
            chunk_capacity(self._model(), self.stage, self.reparameterization, self.batch_size)
        )
        if self.budget.max_steps is not None:
            # A record ends a chunk, and noise for steps after it would be drawn in vain.
            capacity = min(
                capacity, max(math.ceil(self.budget.max_steps / self.budget.n_records), 1)
            )
        n_steps = min([capacity, *self._steps_to_events(fraction), max_steps or capacity])
        table, rows = self.engine.rows(self.steps, self.step, n_steps, capacity)
        per_step = 0.0 if self.budget.max_steps is None else 1.0 / self.budget.max_steps
        return ChunkInputs(
            held=self.held,
            table=table,
            scale=jnp.asarray(self.scale, jnp.float32),
            total_weight=jnp.asarray(self.total_weight, jnp.float32),
            index=None if rows is None else jnp.asarray(rows),
            fractions=jnp.asarray([fraction, per_step], jnp.float32),
            step_size=jnp.asarray(step_size, jnp.float32),
            n_steps=jnp.asarray(n_steps, jnp.int32),
            key=jax.random.fold_in(jax.random.fold_in(self.key, self.step), self.halvings),
            capacity=capacity,
            stage=self.stage,
            schedule=self.schedule,
            averaging=self.averaging,
            careful=self.halvings > 0,
            kl_weight=self.kl_weight,
            objective=self.objective,
            reparameterization=self.reparameterization,
            optimizer=self.optimizer,
        ), n_steps

    def _steps_to_events(self, fraction: float) -> list[int]:
        """Steps to what must fall on the end of a chunk: stage changes, new rows, records, the end of the budget."""
        events = self.plan.steps_to_next(self.step, self.budget)
        of_table = self.engine.steps_of_table(self.steps, self.step)
        if of_table is not None:
            events.append(of_table)
        if self.budget.max_seconds is not None:
            # Time is looked at between chunks only, so a chunk must not take long.
            per_step = math.inf if self.seconds_per_step is None else self.seconds_per_step
            events.append(max(int(self.budget.max_seconds / self.budget.n_records / per_step), 1))
        n_records = self.budget.n_records
        next_record = (math.floor(fraction * n_records + 1e-9) + 1) / n_records
        to_record = self.budget.steps_to(min(next_record, 1.0), self.step)
        return events if to_record is None else [*events, max(to_record, 1)]

    def _step_size(self) -> float:
        return self.learning_rate * 0.5**self.halvings

    def _record_is_due(self) -> bool:
        last = self.history[-1].fraction if self.history else 0.0
        n_records, fraction = self.budget.n_records, self._fraction()
        return math.floor(fraction * n_records + 1e-9) > math.floor(last * n_records + 1e-9)

    def _record(self) -> None:
        steps = np.array([n for n, _ in self.pending], float)
        elbo, ell, kl = steps @ np.array([bound for _, bound in self.pending]) / steps.sum()
        self.pending = []
        fraction = self._fraction()
        rate = self._step_size() * float(self.schedule(jnp.asarray(fraction)))
        record = Record(
            step=self.step, seconds=time.monotonic() - self.started, fraction=fraction,
            stage=str(self.stage), learning_rate=rate, elbo=float(elbo), ell=float(ell), kl=float(kl),
            held_out_mnll=self._evaluate(fraction),
        )  # fmt: skip
        self.history.append(record)
        for callback in self.callbacks:
            callback.on_record(record)

    def _evaluate(self, fraction: float) -> float | None:
        if self.held_out is None:
            return None
        times = self.held_out.n_times
        last = self.history[-1].fraction if self.history else 0.0
        if math.floor(fraction * times + 1e-9) <= math.floor(last * times + 1e-9):
            return None
        mnll = self.engine.agreed(self.held_out.mnll(self.engine.here(self._result())))
        if mnll < self.best_mnll:
            self.best, self.best_mnll, self.without_improvement = _copied(self._result()), mnll, 0
        else:
            self.without_improvement += 1
        return mnll

    def _is_hopeless(self) -> bool:
        patience = None if self.held_out is None else self.held_out.patience
        return patience is not None and self.without_improvement >= patience

    def _take_snapshot(self) -> _Snapshot:
        return _Snapshot(self.step, self.stage, _copied(self.state), self.held)

    # Checkpoints: everything above that changes between chunks.

    def _keep(self, signal: int | None) -> None:
        assert self.checkpoints is not None
        if signal is None:
            if self.checkpoints.due:
                self._write_checkpoint()
            return
        self._write_checkpoint()
        raise TrainingStoppedError(
            f"training was stopped after step {self.step:,}. Go on from the checkpoint in {self.checkpoints.folder} "
            "with `resume`.",
            signal,
        )

    def _write_checkpoint(self) -> None:
        assert self.checkpoints is not None
        moments = {
            "now": _Snapshot(self.step, self.stage, self.state, self.held),
            "trusted": self.snapshot,
            "fresh": self.fresh_snapshot,
        }
        arrays = {}
        for name, moment in moments.items():
            arrays |= named_arrays(f"{name}.state", moment.state)
            arrays |= named_arrays(f"{name}.held", moment.held)
        if self.best is not None:
            arrays |= named_arrays("best", self.best)
        header = {
            "moments": {
                name: {"step": moment.step, "stage": dataclasses.asdict(moment.stage)}
                for name, moment in moments.items()
            },
            "seconds": time.monotonic() - self.started,
            "halvings": self.halvings,
            "history": [dataclasses.asdict(record) for record in self.history],
            "pending": [[n_steps, *bound] for n_steps, bound in self.pending],
            "best_mnll": None if self.best is None else self.best_mnll,
            "without_improvement": self.without_improvement,
        }
        self.checkpoints.write(self.step, arrays, header)

    def _restore(self, checkpoint: tuple[dict[str, np.ndarray], dict[str, Any]] | None) -> None:
        if checkpoint is None:
            return
        arrays, header = checkpoint
        model = self._model()
        moments = {}
        for name, moment in header["moments"].items():
            stage = Stage(**moment["stage"])
            state, held = self._begin_stage(model, stage)
            moments[name] = _Snapshot(
                moment["step"],
                stage,
                self.engine.everywhere(filled(f"{name}.state", state, arrays)),
                self.engine.everywhere(filled(f"{name}.held", held, arrays)),
            )
        now = moments["now"]
        self.step, self.stage, self.state, self.held = now.step, now.stage, now.state, now.held
        self.snapshot, self.fresh_snapshot = moments["trusted"], moments["fresh"]
        self.started = time.monotonic() - header["seconds"]
        self.halvings = header["halvings"]
        self.history = [Record(**record) for record in header["history"]]
        self.pending = [(n_steps, Bound(*bound)) for n_steps, *bound in header["pending"]]
        self.without_improvement = header["without_improvement"]
        if header["best_mnll"] is not None:
            self.best, self.best_mnll = filled("best", model, arrays), header["best_mnll"]

    def _recover(self) -> None:
        where = f"step {self.step:,} ({self.stage})"
        if self.halvings == _MAX_HALVINGS:
            raise TrainingDivergedError(
                f"the bound became non-finite near {where}, and again with the step size halved "
                f"{_MAX_HALVINGS} times. Try a smaller `learning_rate` than {self.learning_rate:g}, and "
                "look for extreme values in the data."
            )
        self.halvings += 1
        self.step, self.stage = self.snapshot.step, self.snapshot.stage
        self.state, self.held = self._sound(self.snapshot.state), self.snapshot.held
        self.fresh_snapshot = self.snapshot
        self.pending = []
        warnings.warn(
            f"the bound became non-finite near {where}: back to step {self.step:,}; from there on long "
            "gradients are shortened, steps that overflow are left out, and the learning rate is halved "
            f"to {self._step_size():g}.",
            RuntimeWarning,
            stacklevel=4,
        )


def _floats(bound: Bound) -> Bound:
    return Bound(*(float(value) for value in bound))  # pyright: ignore[reportArgumentType]


def _is_finite(bound: Bound) -> bool:
    return all(math.isfinite(value) for value in bound)


@jax.jit
def _copy_arrays(arrays):
    return jax.tree.map(jnp.copy, arrays)


def _copied(tree):
    arrays, rest = eqx.partition(tree, eqx.is_array)
    return eqx.combine(_copy_arrays(arrays), rest)
