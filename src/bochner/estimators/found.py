"""What a fit has found, under the names that scikit-learn gives such things."""

import dataclasses
from typing import Any

from sklearn.utils.validation import check_is_fitted

from bochner.fitting.deep_fit import DeepFit
from bochner.members.chosen_law import law_in_words
from bochner.members.fitted import Fitted

_OF_DEEP = {
    "config_": "config", "model_": "model", "history_": "history", "n_steps_": "n_steps", "elbo_": "elbo",
    "trained_weight_": "trained_weight", "distribution_": "distribution",
}  # fmt: skip


class FoundMixin:
    """Attributes that end in an underscore."""

    fitted_: Fitted

    @property
    def members_(self) -> list[dict[str, Any]]:
        """Each member with the mean log-likelihood of rows that it left out, its weight and its seconds.

        Returns:
            For each member `name`, `log_likelihood`, `weight` and `seconds`; those of weight zero do not predict.
        """
        check_is_fitted(self)
        return [dataclasses.asdict(standing) for standing in self.fitted_.standings]

    @property
    def summary_(self) -> dict[str, float]:
        """Mean log-likelihood of left-out rows under the whole, beside a constant and a linear model; how many rows."""
        check_is_fitted(self)
        return dict(self.fitted_.summary)

    @property
    def law_(self) -> str:
        """What targets are taken for, and how laws of each shape did on rows left out, in words."""
        check_is_fitted(self)
        return law_in_words(self.fitted_)

    @property
    def total_weight_(self) -> float:
        """Total weight of the rows seen."""
        check_is_fitted(self)
        return self.fitted_.total_weight

    @property
    def depth_scores_(self) -> dict[int, float]:
        """Held-out MNLL of each number of layers, with `Deep(n_layers="auto")`."""
        return self._tried("depth")

    @property
    def frequency_scores_(self) -> dict[str, float]:
        """Held-out MNLL of held and free frequencies, where both were tried."""
        return self._tried("frequencies")

    def _tried(self, kind: str) -> dict[Any, float]:
        deep = self._deep_fit()
        if kind not in deep.scores:
            raise AttributeError(f"this fit has tried nothing of that kind ({kind}).")
        return dict(deep.scores[kind])

    def _deep_fit(self) -> DeepFit:
        check_is_fitted(self)
        if self.fitted_.deep is None:
            raise AttributeError(
                "this fit has no deep model (`members_` shows what it has); ask for one with `members=Deep()`."
            )
        return self.fitted_.deep

    def __getattr__(self, name: str) -> Any:
        """Give what a deep model has found: settings, model, history, bound."""
        if name in _OF_DEEP and "fitted_" in vars(self):
            found = getattr(self._deep_fit(), _OF_DEEP[name])
            if name == "config_":
                return dataclasses.asdict(found)
            return list(found) if name == "history_" else found
        # A property that could not answer says why once more.
        return object.__getattribute__(self, name)
