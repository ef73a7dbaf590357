"""Which configuration a fit has, and what it goes on from."""

import dataclasses
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from bochner.distributed import AbstractDistribution
from bochner.estimators.config import AUTO, Config, check_choice
from bochner.estimators.parameters import Parameters
from bochner.estimators.recipes import PRESETS, Situation, fill
from bochner.gp.members import Members
from bochner.inference.conditioning import unconditioned
from bochner.rows.scaling import like_pixels

_MODEL_FIELDS = (
    "n_layers", "width", "n_random_features", "kernel", "ard", "frequencies", "omega", "feed_inputs",
    "likelihood", "preprocessing", "lengthscale_factor", "initial_log_var", "noise_variance", "residual",
    "objective", "n_members", "theta", "theta_deviation",
)  # fmt: skip


class Settling(Parameters):
    """From the parameters that a user has set to a checked configuration: for a new model, or for a fitted one."""

    def _situation(
        self, n_rows: int, X: np.ndarray, *, more_to_come: bool = False, together: bool = False
    ) -> Situation:
        """Sum up what presets may look at; X are some or all of the rows."""
        apart = more_to_come or bool(self.warm_start) or self.distributed is not None
        return Situation(
            n_rows,
            X.shape[1],
            self._classification,
            pixels=like_pixels(X),
            all_at_once=not apart,
            alone=not together,
            asked={name: value for name, value in self._given().items() if value is not None},
        )

    def _given(self) -> dict[str, Any]:
        """The parameters that a configuration has, as the user has set them."""
        names = {field.name for field in dataclasses.fields(Config)}
        return {name: value for name, value in self.get_params().items() if name in names}

    def _resolve(self, situation: Situation, *, n_layers: int | None = None) -> Config:
        """Fill open parameters from the preset and check them all; `n_layers` takes the place of "auto"."""
        check_choice("preset", self.preset, PRESETS)
        given = self._given()
        if given["n_layers"] == AUTO:
            given["n_layers"] = n_layers
        values = fill(given, self.preset, situation)
        if self.checkpoint is not None and not isinstance(self.random_state, int | np.integer):
            raise ValueError(
                "`checkpoint` needs a whole number as `random_state`, so that a resumed training draws the same "
                f"numbers; got {self.random_state!r}."
            )
        if not isinstance(self.checkpoint_seconds, int | float) or not self.checkpoint_seconds >= 0:
            raise ValueError(
                f"`checkpoint_seconds` must be a number of at least 0; got {self.checkpoint_seconds!r}."
            )
        if not isinstance(self.distributed, AbstractDistribution | None):
            raise ValueError(
                "`distributed` must be None, or `Synchronous(...)` or `Asynchronous(...)` of bochner.distributed; got "
                f"{self.distributed!r}."
            )
        if self.resume and self.checkpoint is None:
            raise ValueError("`resume` needs the folder of the checkpoints: set `checkpoint`.")
        values["seed"] = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        return Config.checked(values, self._likelihoods)

    def _check_all_at_once(self, config: Config, n_rows: int) -> None:
        """Refuse batches, several processes, and rows to come, where the user wants the last layer exact."""
        if config.objective != "evidence":
            return
        if self.warm_start or self.distributed is not None or config.batch_size < n_rows:
            raise ValueError(
                f'`objective="evidence"` uses all {n_rows:,} rows in each step, in one process, and its model cannot '
                f"go on; got batch_size={config.batch_size}, warm_start={self.warm_start!r} and "
                f'distributed={self.distributed!r}. Leave those open, or use `objective="elbo"`.'
            )

    def _let_it_go_on(self) -> None:
        """Prepare a model whose last layer is exact for further rows: it goes on by the bound, from where it is."""
        if self.config_["objective"] != "evidence":
            return
        if self.objective == "evidence":
            raise ValueError(
                '`objective="evidence"` keeps the exact posterior of the last layer for the rows of one `fit`, and can '
                'go on neither by `partial_fit` nor by `warm_start`: use `objective="elbo"`.'
            )
        n_draws = Config(**self.config_).n_conditioned
        members = [unconditioned(member) for member in self.model_.each()[::n_draws]]
        self.model_ = members[0] if len(members) == 1 else Members.of(members)
        self.config_ = {**self.config_, "objective": "elbo", "calibration": "none"}

    def _goes_on(self) -> bool:
        """Whether `fit` goes on from the fitted model."""
        return bool(self.warm_start) and hasattr(self, "model_")

    def _check_same_model(self, config: Config) -> Config:
        """Refuse to go on with another kind of model; the seed and what is left open stay as fitted."""
        for name in _MODEL_FIELDS:
            fitted, asked = self.config_[name], getattr(config, name)
            if getattr(self, name) is not None and fitted != asked:
                raise ValueError(
                    f"`warm_start` goes on from the fitted model, which has {name}={fitted!r}; got {asked!r}. Use the "
                    "fitted value, or `warm_start=False`."
                )
        kept = ["seed", *_MODEL_FIELDS]
        if self.gradients is None:
            kept.append("gradients")
        return dataclasses.replace(config, **{name: self.config_[name] for name in kept})
