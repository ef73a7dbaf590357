"""Which configuration a deep model gets, and whether a fit may go on from a fitted one."""

import dataclasses
from typing import Any

import numpy as np

from bochner.fitting.config import AUTO, Config, check_choice
from bochner.fitting.deep_fit import DeepFit
from bochner.fitting.recipes import PRESETS, Situation, fill
from bochner.fitting.session import Session
from bochner.fitting.settings import Deep
from bochner.fitting.task import AbstractTask
from bochner.gp.members import Members
from bochner.rows.scaling import like_pixels

_MODEL_FIELDS = (
    "n_layers", "width", "n_random_features", "kernel", "ard", "frequencies", "omega", "feed_inputs",
    "likelihood", "preprocessing", "lengthscale_factor", "initial_log_var", "noise_variance", "residual",
    "objective", "n_members", "theta", "theta_deviation",
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Asked:
    """What a user has asked of a deep model: its settings, and what the estimator adds to them.

    Attributes:
        deep: the settings.
        likelihood: law of the targets; None leaves it to the preset.
        seed: of everything random.
        goes_on: whether further rows will come, to this fit or after it.
        together: whether other fits are trained in the same program.
        session: the call.
    """

    deep: Deep
    likelihood: str | None
    seed: int
    session: Session = dataclasses.field(default_factory=Session)
    goes_on: bool = False
    together: bool = False

    @property
    def preset(self) -> str:
        """The preset that fills what is open."""
        return "auto" if self.deep.preset is None else self.deep.preset

    @property
    def given(self) -> dict[str, Any]:
        """All settings of a configuration, None where open."""
        return {
            **self.deep.get_params(),
            "preset": self.preset,
            "likelihood": self.likelihood,
            "max_seconds": self.session.max_seconds,
        }

    def with_config(self, config: Config) -> "Asked":
        """Ask for a whole configuration, in a trial of which nothing is told."""
        values = {name: getattr(config, name) for name in self.deep.get_params()}
        session = dataclasses.replace(self.session.quiet(), max_seconds=config.max_seconds)
        return dataclasses.replace(
            self,
            deep=Deep(**values),
            likelihood=config.likelihood,
            seed=config.seed,
            session=session,
        )

    def situation(self, n_rows: int, X: np.ndarray, task: AbstractTask) -> Situation:
        """Sum up what presets may look at; X are some or all of the rows."""
        return Situation(
            n_rows,
            X.shape[1],
            task.classification,
            pixels=like_pixels(X),
            all_at_once=not (self.goes_on or self.session.distributed is not None),
            alone=not self.together,
            asked={name: value for name, value in self.given.items() if value is not None},
        )

    def resolved(
        self, situation: Situation, task: AbstractTask, *, n_layers: int | None = None
    ) -> Config:
        """Fill open settings from the preset and check them all; `n_layers` takes the place of "auto"."""
        check_choice("preset", self.preset, PRESETS)
        given = self.given
        if given["n_layers"] == AUTO:
            given["n_layers"] = n_layers
        values = fill(given, self.preset, situation)
        return Config.checked({**values, "seed": self.seed}, task.likelihoods)

    def check_all_at_once(self, config: Config, n_rows: int) -> None:
        """Refuse batches, several processes, and rows to come, where the objective needs all rows at once."""
        if not config.maximized.needs_all_rows:
            return
        apart = self.session.distributed is not None
        if self.goes_on or apart or config.batch_size < n_rows:
            raise ValueError(
                f'`objective="{config.objective}"` uses all {n_rows:,} rows in each step, in one process, and its '
                f"model cannot go on; got batch_size={config.batch_size}, warm_start={self.goes_on!r} and "
                f'distributed={self.session.distributed!r}. Leave those open, or use `objective="elbo"`.'
            )

    def check_same_model(self, config: Config, fitted: Config) -> Config:
        """Refuse to go on with another kind of model; the seed and what is left open stay as fitted."""
        for name in _MODEL_FIELDS:
            before, asked = getattr(fitted, name), getattr(config, name)
            if self.given[name] is not None and before != asked:
                raise ValueError(
                    f"`warm_start` goes on from the fitted model, which has {name}={before!r}; got {asked!r}. Use the "
                    "fitted value, or `warm_start=False`."
                )
        kept = ["seed", *_MODEL_FIELDS]
        if self.deep.gradients is None:
            kept.append("gradients")
        return dataclasses.replace(config, **{name: getattr(fitted, name) for name in kept})


def able_to_go_on(fit: DeepFit, asked: Asked) -> DeepFit:
    """Prepare a model whose posterior is of its rows for further ones: it goes on by the bound, from where it is."""
    objective = fit.config.maximized
    if not objective.has_own_posterior:
        return fit
    if asked.deep.objective == fit.config.objective:
        raise ValueError(
            f'`objective="{fit.config.objective}"` keeps a posterior for the rows of one `fit`, and can '
            'go on neither by `partial_fit` nor `update` nor `warm_start`: use `objective="elbo"`.'
        )
    members = objective.as_trained(fit.model, n_draws=fit.config.n_conditioned)
    model = members[0] if len(members) == 1 else Members.of(members)
    config = dataclasses.replace(fit.config, objective="elbo", calibration="none")
    return dataclasses.replace(fit, model=model, config=config)
