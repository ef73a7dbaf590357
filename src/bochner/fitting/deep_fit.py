"""A fitted deep model: all that predicts, and how it came about."""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Float

from bochner.fitting.config import Config
from bochner.fitting.rows import Rows
from bochner.fitting.spec import ModelSpec
from bochner.fitting.task import AbstractTask
from bochner.gp.members import Members
from bochner.gp.model import DeepGP
from bochner.prediction.statistics import ExpectedLogLikelihood, LogDensity, Posterior
from bochner.rows.scaling import InputScaling, TargetScaling
from bochner.system.forks import refuse_after_fork
from bochner.training import Record

_MAX_ROWS_FOR_BOUND = 10_000
# The number of a purpose is its place, which files and checkpoints rely on.
_PURPOSES = ("start", "train", "validate", "predict", "sample", "condition", "rehearse")


def key_for(purpose: str, seed: int) -> jax.Array:
    """A random key of the fitted seed for each purpose, so that no two share their numbers.

    Example:
        >>> from bochner.fitting.deep_fit import key_for
        >>> bool(key_for("train", 0) == key_for("predict", 0))
        False
    """
    refuse_after_fork()
    # The generator is named, so that JAX's global choice of one cannot change a loaded model's predictions.
    key = jax.random.key(seed, impl="threefry2x32")
    return jax.random.fold_in(key, _PURPOSES.index(purpose))


@dataclasses.dataclass(frozen=True, eq=False)
class DeepFit:
    """A deep model with the scaling of inputs and targets around it.

    Attributes:
        config: every setting, with the value used.
        task: of the targets.
        input_scaling: of rows.
        target_scaling: of targets.
        model: as it predicts.
        history: records of the training, in the units of the targets.
        n_steps: training steps done.
        elbo: the bound on the training data at the end, in the units of the targets.
        total_weight: of all rows seen.
        trained_weight: the part of it that the history counts, held-out rows taken away.
        distribution: what happened on several workers.
        scores: held-out MNLL of what was tried, by kind of trial.
    """

    config: Config
    task: AbstractTask
    input_scaling: InputScaling
    target_scaling: TargetScaling
    model: DeepGP | Members
    history: tuple[dict[str, Any], ...] = ()
    n_steps: int = 0
    elbo: float = math.nan
    total_weight: float = 0.0
    trained_weight: float = 0.0
    distribution: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    scores: Mapping[str, Mapping[Any, float]] = dataclasses.field(default_factory=dict)

    @property
    def d_in(self) -> int:
        """How many columns go in."""
        return len(self.input_scaling.center)

    @property
    def spec(self) -> ModelSpec:
        """How its model is made."""
        return ModelSpec(self.config, self.d_in, self.task.n_outputs)

    def key(self, purpose: str) -> jax.Array:
        """A random key of its seed."""
        return key_for(purpose, self.config.seed)

    def posterior(
        self, n_draws: int | None = None, *, key: jax.Array | None = None, model: Any = None
    ) -> Posterior:
        """Draw functions from the posterior, the same ones for every prediction unless a key is given."""
        return Posterior.draw(
            self.model if model is None else model,
            n_draws=n_draws or self.config.n_mc_predict,
            key=self.key("predict") if key is None else key,
        )

    def scaled(self, rows: Rows) -> Rows:
        """Scale rows as the model sees them."""
        Y = self.task.scaled(self.target_scaling, rows.Y)
        return Rows(self.input_scaling(rows.X), Y, rows.weights)

    def log_density(self, rows: Rows) -> Float[np.ndarray, " n"]:
        """Compute each row's log predictive density or probability, in the units of the targets."""
        scaled = self.scaled(rows)
        found = self.posterior().map_rows(LogDensity(), scaled.X, Y=scaled.Y)
        return found - self.target_scaling.log_jacobian

    def in_own_units(self, record: Record, n_past_steps: int = 0) -> Record:
        """Give a record of the training in the units of the targets."""
        shift, mnll = self.target_scaling.log_jacobian, record.held_out_mnll
        return dataclasses.replace(
            record,
            step=record.step + n_past_steps,
            elbo=record.elbo - self.trained_weight * shift,
            ell=record.ell - self.trained_weight * shift,
            held_out_mnll=None if mnll is None else mnll + shift,
        )

    def bound(self, rows: Rows) -> float:
        """Estimate the bound on the training data from some of its scaled rows, in the units of the targets."""
        if len(rows) > _MAX_ROWS_FOR_BOUND:
            generator = np.random.default_rng(0)
            rows = rows[generator.choice(len(rows), _MAX_ROWS_FOR_BOUND, replace=False)]
        log_likelihood = self.posterior().map_rows(ExpectedLogLikelihood(), rows.X, Y=rows.Y)
        per_row = np.average(log_likelihood, weights=rows.weights)
        per_row -= self.target_scaling.log_jacobian
        return float(self.total_weight * per_row - _kl(self.model))


@eqx.filter_jit
def _kl(model: DeepGP | Members) -> jax.Array:
    """Compute the KL as one program: its many small parts would take longer to compile."""
    return model.kl()
