"""After a fit: whether a constant or linear model would be better on rows that it has not seen, and what then."""

import dataclasses
import logging
import warnings
from abc import abstractmethod
from typing import Any

import numpy as np

from bochner.estimators.baselines import AbstractReplacement, fit_baselines
from bochner.estimators.config import AUTO, Config
from bochner.estimators.judging import (
    Judged,
    OwnRows,
    WorseThanSimplerModelWarning,
    in_order,
    log_density_of,
)
from bochner.estimators.rows import Rows, joined
from bochner.estimators.settling import Settling
from bochner.gp.members import Members
from bochner.gp.model import DeepGP
from bochner.rows.table import Table

_LOGGER = logging.getLogger("bochner")
_LOGGER.addHandler(
    logging.NullHandler()
)  # where nobody listens, the warning of the same words is enough

MODEL = "model"
"""What predicts, unless a baseline does."""

# Settings that leave a fit its own choice: how long it takes, and how it computes.
_NO_CHOICE = {"preset", "max_steps", "max_seconds", "n_mc_predict", "precision"}


_NEVER = -1e6  # the log density of what a model thinks impossible


class Comparing(Settling):
    """The judgement of a fit beside baselines, and the baseline in its place where it is worse."""

    judged_: dict[str, Any]
    _is_trial = False
    # Configuration, model and bound of a fit whose place a baseline has taken.
    _replaced: tuple[dict[str, Any], DeepGP | Members, float] | None = None

    @abstractmethod
    def _ready(self, config: Config, data: Any, model: DeepGP | Members) -> Any:
        """Give a trained model as it predicts."""

    @abstractmethod
    def _bound(self, rows: Rows) -> float:
        """Estimate the bound."""

    def _chooses_itself(self) -> bool:
        """Whether `fit` chooses the settings, and so may choose a simpler model too."""
        chosen = {name for name, value in self._given().items() if value not in (None, AUTO)}
        whole = not self.warm_start and self.distributed is None
        return self.preset == "auto" and whole and chosen <= _NO_CHOICE

    def _own_rows(self, config: Config, rows: Rows) -> OwnRows | None:
        """Let members leave out rows of their own, where the fit may choose and nothing else would judge it."""
        if not self._chooses_itself() or self._is_trial:
            return None
        own_rows = OwnRows.draw(config.n_members, len(rows), config.seed)
        enough = own_rows is not None and np.all((~own_rows.left_out) @ rows.weights > 0)
        return own_rows if enough else None

    def _compare(
        self,
        config: Config,
        kept: Rows,
        held_out: Rows | None,
        by_members: dict[str, Judged] | None = None,
        *,
        may_replace: bool = True,
    ) -> None:
        """Judge the fitted model on rows that it has not seen, beside baselines fitted to the rows that it has."""
        vars(self).pop("judged_", None)
        self._replaced = None
        if self._is_trial:
            return
        if by_members is not None:
            judged, how = by_members, "by members"
        elif held_out is not None and held_out.weights.sum() > 0:
            judged, how = self._judged_on(config, kept, held_out), "held out"
        else:
            return
        n_rows = len(judged[MODEL].log_density)
        self.judged_ = {name: one.mean for name, one in judged.items()}
        self.judged_ |= {"n_rows": n_rows, "rows": how, "predicts": MODEL}
        best = max(judged.keys() - {MODEL}, key=lambda name: judged[name].mean)
        if not judged[best].clearly_better_than(judged[MODEL]):
            return
        replaced = may_replace and self._chooses_itself()
        if replaced:
            everything = joined([kept, held_out]) if held_out is not None else kept
            assert everything is not None
            found = fit_baselines(everything, config.likelihood, self._n_targets(everything.Y))
            self._replace(config, best, found[best], everything)
        self._say_so(best, judged, n_rows)

    def _judged_on(self, config: Config, kept: Rows, held_out: Rows) -> dict[str, Judged]:
        density = log_density_of(self._posterior(), held_out)
        return self._beside(config, kept, held_out, density)

    def _judged_by_members(
        self, config: Config, rows: Rows, own_rows: OwnRows, table: Table, trained: Any
    ) -> dict[str, Judged]:
        """Judge each member alone on the rows that it left out; alone it stands where all of them would."""
        members, parts = trained.each(), []
        for member, left_out, own in zip(
            members, own_rows.left_out, own_rows.tables(table), strict=True
        ):
            # As many copies as there were members, so that nothing is compiled for the judgement.
            alone = member if len(members) == 1 else Members.of([member] * len(members))
            posterior = self._posterior(model=self._ready(config, own, alone))
            judged = rows[left_out]
            density = log_density_of(posterior, judged)
            parts.append(self._beside(config, rows[~left_out], judged, density))
        return {name: in_order([part[name] for part in parts]) for name in parts[0]}

    def _beside(
        self, config: Config, kept: Rows, judged: Rows, density: np.ndarray
    ) -> dict[str, Judged]:
        found = fit_baselines(kept, config.likelihood, self._n_targets(kept.Y))
        densities = {name: one.log_density(judged) for name, one in found.items()}
        shift = self._target_scaling.log_jacobian
        return {
            name: Judged(np.nan_to_num(one - shift, nan=_NEVER, neginf=_NEVER), judged.weights)
            for name, one in {MODEL: density, **densities}.items()
        }

    def _replace(self, config: Config, name: str, baseline: Any, rows: Rows) -> None:
        """Let a baseline predict; a fit that goes on goes on from the model that it replaces."""
        if not isinstance(baseline, AbstractReplacement):
            return
        self._replaced = self.config_, self.model_, self.elbo_
        d_in = rows.X.shape[1]
        self.config_ = dataclasses.asdict(baseline.config(config, d_in))
        self.model_ = baseline.model(d_in)
        self.elbo_ = self._bound(rows)
        self.judged_["predicts"] = name

    def _take_back(self) -> None:
        """Go on from the fitted model and not from the baseline in its place."""
        if self._replaced is not None:
            self.config_, self.model_, self.elbo_ = self._replaced
            self._replaced = None
        elif getattr(self, "judged_", {}).get("predicts", MODEL) != MODEL:
            raise ValueError(
                f"the model file holds a {self.judged_['predicts']} model, which was better than the fitted one and "
                "cannot learn more: use `fit` on all rows."
            )

    def _say_so(self, best: str, judged: dict[str, Judged], n_rows: int) -> None:
        ours, other = judged[MODEL].mean, judged[best].mean
        remedy = (
            f"So the {best} model predicts (`config_` describes it)."
            if self.judged_["predicts"] != MODEL
            else "Do not rely on this model."
        )
        message = (
            f"the fitted model is worse than a {best} one: the mean log-likelihood of {n_rows:,} rows that it has not "
            f"seen is {ours:.4g}, and {other:.4g}. {remedy} `judged_` holds the figures. Look for columns that say "
            "nothing and for wrong values, and consider more rows."
        )
        _LOGGER.error(message)
        warnings.warn(message, WorseThanSimplerModelWarning, stacklevel=6)
