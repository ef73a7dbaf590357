"""The loop over chunks: stages, budget, records, recovery from divergence, early stopping."""

import dataclasses
import math
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
from bochner.training.chunk import ChunkInputs, State, chunk_capacity
from bochner.training.clock import Clock
from bochner.training.engine import AbstractEngine, OneDevice
from bochner.training.interruption import listen_for_stop
from bochner.training.moments import Moment, copied, holds_long_gradients, moments_to_stored
from bochner.training.progress import AbstractCallback, Record
from bochner.training.recorder import HeldOut, Recorder
from bochner.training.resuming import MOMENTS, Kept
from bochner.training.stages import Plan, Stage, in_words, trainable

# One flat update of all parameters: a pass over one vector instead of several small ones a leaf. The
# learning rate is a factor on its updates, so that one compiled program serves all rates.
ADAM = optax.flatten(optax.adam(1.0))

_MAX_HALVINGS = 3


class TrainingDivergedError(RuntimeError):
    """The bound became non-finite again and again, whatever the step size."""


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
    settings = _Settings(
        plan, budget, learning_rate, schedule, optimizer, objective, reparameterization, kl_weight,
        averaging, key,
    )  # fmt: skip
    recorder = Recorder(budget.n_records, held_out, callbacks)
    run = _Run(model, data, batch_size, settings, recorder, engine or OneDevice(), checkpoints)
    try:
        with blas_on_one_thread():
            return run.to_the_end()
    finally:
        for callback in callbacks:
            callback.on_end()


@dataclasses.dataclass(frozen=True)
class _Settings:
    """What stays the same from the first chunk to the last; see `train`."""

    plan: Plan
    budget: Budget
    learning_rate: float
    schedule: AbstractSchedule
    optimizer: optax.GradientTransformation
    objective: AbstractObjective
    reparameterization: AbstractReparameterization
    kl_weight: KLWeight
    averaging: float
    key: PRNGKeyArray


class _Run:
    """One training under way; `now` and what is below it change between chunks."""

    def __init__(
        self,
        model: DeepGP | Members,
        data: TrainingData,
        batch_size: int,
        settings: _Settings,
        recorder: Recorder,
        engine: AbstractEngine,
        checkpoints: Checkpoints | None,
    ):
        self.settings, self.recorder = settings, recorder
        self.engine, self.checkpoints = engine, checkpoints
        seed = tuple(np.asarray(jax.random.key_data(settings.key)).tolist())
        self.steps = engine.steps(data, batch_size, seed)
        self.batch_size = self.steps.batch_size
        self.scale, self.total_weight = data.n_rows / self.batch_size, data.total_weight

        self.clock, self.halvings = Clock(settings.budget, engine), 0
        self.now = self._begin(model, 0, settings.plan.stage(0, 0.0))
        # A moment is trusted only once a bound computed from it came out finite.
        self.trusted = self.fresh = self.now.copied()

    def to_the_end(self) -> Trained:
        """Run all chunks, and give the result."""
        if self.checkpoints is None:
            self._run_all_chunks(lambda: None)
        else:
            with self.checkpoints.in_use():
                self._restore(self.checkpoints.newest())
                with listen_for_stop() as request:
                    self._run_all_chunks(lambda: self._keep(self.engine.any_signal(request.signal)))
                self._write_checkpoint()
        best = self.recorder.best
        model = self._result() if best is None else best
        return Trained(self.engine.here(model), self.recorder.history, self.now.step)

    def _run_all_chunks(self, after_chunk: Callable[[], None]) -> None:
        while self._settle_the_last_step():
            fraction = self._fraction()
            self._enter(self.settings.plan.stage(self.now.step, fraction))
            n_steps, state, bound = self._run_one_chunk(fraction)
            self.clock.look()
            if not _is_finite(bound):
                self._recover()
                continue
            self.trusted = self.fresh
            self.now = dataclasses.replace(self.now, step=self.now.step + n_steps, state=state)
            self.recorder.add(n_steps, bound)
            if self.recorder.is_due(self._fraction()):
                self.fresh = self.now.copied()
                self._record()
            after_chunk()

    def _settle_the_last_step(self) -> bool:
        """Tell whether there is more to do; where the last update was a bad one, go back and do it again."""
        self.clock.look()
        if self.recorder.is_hopeless:
            return False
        if self.now.step == 0 or self._fraction() < 1.0:
            return True
        if _is_finite(self._bound_now()):
            return False
        self._recover()
        return self._fraction() < 1.0 or self.now.step == 0

    def _model(self) -> DeepGP | Members:
        return eqx.combine(self.now.state.learned, self.now.held)

    def _result(self) -> DeepGP | Members:
        """What the training gives, should it end now."""
        if self.now.state.average is None:
            return self._model()
        return eqx.combine(self.now.state.average, self.now.held)

    def _fraction(self) -> float:
        return self.clock.fraction(self.now.step)

    def _begin(self, model: DeepGP | Members, step: int, stage: Stage) -> Moment:
        # Copies, since the chunk overwrites its buffers and the caller's model must stay whole.
        learned, held = eqx.partition(copied(self.engine.here(model)), trainable(model, stage))
        average = copied(learned) if self.settings.averaging else None
        state = State(learned, self.settings.optimizer.init(learned), average)
        return Moment(step, stage, self.engine.replicate(state), self.engine.replicate(held))

    def _enter(self, stage: Stage) -> None:
        now = self.now
        if stage == now.stage:
            return
        if (stage.theta, stage.omega) == (now.stage.theta, now.stage.omega):
            self.now = dataclasses.replace(now, stage=stage)
        else:
            # The optimizer starts anew: its averages for leaves that were held are not those of a run-in one.
            self.now = self._begin(self._model(), now.step, stage)
        self.fresh = self.now.copied()
        self.clock.enter_stage()

    def _run_one_chunk(self, fraction: float) -> tuple[int, State, Bound]:
        inputs, n_steps = self._chunk_inputs(fraction, self._step_size())
        started = self.clock.now
        state, bound = self.engine.run(inputs, self.now.state, self.now.step)
        values = _floats(bound)
        self.clock.note_chunk(self.clock.now - started, n_steps)
        return n_steps, state, values

    def _bound_now(self) -> Bound:
        """Compute the bound of the present parameters with the compiled chunk, by a step of size zero."""
        inputs, _ = self._chunk_inputs(1.0, step_size=0.0, max_steps=1)
        return _floats(self.engine.bound(inputs, copied(self.now.state), self.now.step))

    def _chunk_inputs(
        self, fraction: float, step_size: float, max_steps: int | None = None
    ) -> tuple[ChunkInputs, int]:
        settings, now = self.settings, self.now
        budget = settings.budget
        capacity = self.engine.capacity(
            chunk_capacity(self._model(), now.stage, settings.reparameterization, self.batch_size)
        )
        if budget.max_steps is not None:
            # A record ends a chunk, and noise for steps after it would be drawn in vain.
            capacity = min(capacity, max(math.ceil(budget.max_steps / budget.n_records), 1))
        n_steps = min([capacity, *self._steps_to_events(fraction), max_steps or capacity])
        table, rows = self.engine.rows(self.steps, now.step, n_steps, capacity)
        per_step = 0.0 if budget.max_steps is None else 1.0 / budget.max_steps
        return ChunkInputs(
            held=now.held,
            table=table,
            scale=jnp.asarray(self.scale, jnp.float32),
            total_weight=jnp.asarray(self.total_weight, jnp.float32),
            index=None if rows is None else jnp.asarray(rows),
            fractions=jnp.asarray([fraction, per_step], jnp.float32),
            step_size=jnp.asarray(step_size, jnp.float32),
            n_steps=jnp.asarray(n_steps, jnp.int32),
            key=jax.random.fold_in(jax.random.fold_in(settings.key, now.step), self.halvings),
            capacity=capacity,
            stage=now.stage,
            schedule=settings.schedule,
            averaging=settings.averaging,
            careful=self.halvings > 0,
            kl_weight=settings.kl_weight,
            objective=settings.objective,
            reparameterization=settings.reparameterization,
            optimizer=settings.optimizer,
        ), n_steps

    def _steps_to_events(self, fraction: float) -> list[int]:
        """Steps to what must fall on the end of a chunk: stage changes, new rows, records, the end of the budget."""
        budget, step = self.settings.budget, self.now.step
        next_record = (math.floor(fraction * budget.n_records + 1e-9) + 1) / budget.n_records
        to_record = budget.steps_to(min(next_record, 1.0), step)
        events = [
            *self.settings.plan.steps_to_next(step, budget),
            self.engine.steps_of_table(self.steps, step),
            # Time is looked at between chunks only, so a chunk must not take long.
            self.clock.steps_to_look(),
            None if to_record is None else max(to_record, 1),
        ]
        return [steps for steps in events if steps is not None]

    def _step_size(self) -> float:
        return self.settings.learning_rate * 0.5**self.halvings

    def _record(self) -> None:
        fraction, bound = self._fraction(), self.recorder.mean_bound()
        mnll = None
        if self.recorder.held_out is not None and self.recorder.is_to_be_judged(fraction):
            mnll = self.engine.broadcast(
                self.recorder.held_out.mnll(self.engine.here(self._result()))
            )
            self.recorder.judge(mnll, lambda: copied(self._result()))
        rate = self._step_size() * float(self.settings.schedule(jnp.asarray(fraction)))
        self.recorder.keep(Record(
            step=self.now.step, seconds=self.clock.now, fraction=fraction,
            stage=in_words(self.now.stage, self.now.held), learning_rate=rate,
            elbo=float(bound.elbo), ell=float(bound.ell), kl=float(bound.kl), held_out_mnll=mnll,
        ))  # fmt: skip

    def _recover(self) -> None:
        where, learning_rate = (
            f"step {self.now.step:,} ({in_words(self.now.stage, self.now.held)})",
            self.settings.learning_rate,
        )
        if self.halvings == _MAX_HALVINGS:
            raise TrainingDivergedError(
                f"the bound became non-finite near {where}, and again with the step size halved "
                f"{_MAX_HALVINGS} times. Try a smaller `learning_rate` than {learning_rate:g}, and "
                "look for extreme values in the data."
            )
        self.halvings += 1
        self.now = self.trusted.copied()
        if holds_long_gradients(self.now.state):
            state = self.now.state
            fresh = self.settings.optimizer.init(self.engine.here(state.learned))
            state = dataclasses.replace(state, optimizer_state=self.engine.replicate(fresh))
            self.now = dataclasses.replace(self.now, state=state)
        self.fresh = self.trusted
        self.recorder.pending = []
        warnings.warn(
            f"the bound became non-finite near {where}: back to step {self.now.step:,}; from there on long "
            "gradients are shortened, steps that overflow are left out, and the learning rate is halved "
            f"to {self._step_size():g}.",
            RuntimeWarning,
            stacklevel=4,
        )

    # Checkpoints: everything above that changes between chunks.

    def _keep(self, signal: int | None) -> None:
        assert self.checkpoints is not None
        if signal is None:
            if self.checkpoints.due:
                self._write_checkpoint()
            return
        self._write_checkpoint()
        raise TrainingStoppedError(
            f"training was stopped after step {self.now.step:,}. Go on from the checkpoint in "
            f"{self.checkpoints.folder} with `resume`.",
            signal,
        )

    def _write_checkpoint(self) -> None:
        assert self.checkpoints is not None
        moments = (self.now, self.trusted, self.fresh)
        arrays, described = moments_to_stored(dict(zip(MOMENTS, moments, strict=True)))
        if self.recorder.best is not None:
            arrays |= named_arrays("best", self.recorder.best)
        header = {
            "moments": described,
            "seconds": self.clock.now,
            "halvings": self.halvings,
            **self.recorder.to_header(),
        }
        self.checkpoints.write(self.now.step, arrays, header)

    def _restore(self, checkpoint: tuple[dict[str, np.ndarray], dict[str, Any]] | None) -> None:
        if checkpoint is None:
            return
        arrays, header = checkpoint
        plan, model = self.settings.plan, self._model()
        kept = Kept.of(header, (plan.n_mc, plan.n_mc_final), _MAX_HALVINGS)
        self.now, self.trusted, self.fresh = (
            self._begin(model, *kept.moments[name]).filled(name, arrays, self.engine.replicate)
            for name in MOMENTS
        )
        self.clock.go_on_from(kept.seconds)
        self.halvings = kept.halvings
        self.recorder.restore(kept, lambda: filled("best", model, arrays))


def _floats(bound: Bound) -> Bound:
    return Bound(*(float(value) for value in bound))  # pyright: ignore[reportArgumentType]


def _is_finite(bound: Bound) -> bool:
    return all(math.isfinite(value) for value in bound)
