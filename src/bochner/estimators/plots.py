"""Plots that a fitted estimator draws of itself; matplotlib is the extra `plots`."""

from typing import Any

import numpy as np

from bochner.prediction import metrics

_LEVELS = np.linspace(0.05, 0.95, 19)
_BLUE, _GREY, _RED = "#1f5fa8", "#8a8a8a", "#c0392b"


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            "plots need matplotlib: install it with `pip install bochner[plots]`."
        ) from error
    return plt.subplots(figsize=(5, 3.6), layout="constrained")[1]


class PlotsMixin:
    """The `plot_*` methods of the estimators; each takes and gives matplotlib axes."""

    history_: list[dict[str, Any]]

    def plot_learning_curve(self, ax: Any = None) -> Any:
        """Draw the bound a row over the training steps, and held-out MNLL where it was computed.

        Args:
            ax: axes to draw on; new ones by default.
        """
        ax = _axes(ax)
        steps = np.array([record["step"] for record in self.history_])
        bound = -np.array([record["elbo"] for record in self.history_]) / self.trained_weight_  # pyright: ignore[reportAttributeAccessIssue]
        ax.plot(steps, bound, color=_BLUE, label="negative bound a row")
        judged = [r for r in self.history_ if r["held_out_mnll"] is not None]
        if judged:
            mnll = [r["held_out_mnll"] for r in judged]
            ax.plot([r["step"] for r in judged], mnll, color=_RED, label="held-out MNLL")
        # The first records can be orders of magnitude above the rest and would flatten it.
        ends = bound[len(bound) // 10 :] if len(bound) > 10 else bound
        low, high = float(np.min(ends)), float(np.max(ends))
        ax.set_ylim(low - 0.05 * (high - low) - 1e-3, high + 0.15 * (high - low) + 1e-3)
        ax.set_xlabel("step")
        ax.legend(frameon=False)
        ax.set_title("Learning curve")
        return ax

    def plot_calibration(self, X: Any, y: Any, ax: Any = None) -> Any:
        """Draw how often the truth falls where it was said to: on the diagonal, predictions are calibrated.

        Args:
            X: rows.
            y: their targets or classes.
            ax: axes to draw on; new ones by default.
        """
        ax = _axes(ax)
        ax.plot([0, 1], [0, 1], color=_GREY, linewidth=1)
        if hasattr(self, "classes_"):
            labels = self._encoded(np.asarray(y))[:, 0]  # pyright: ignore[reportAttributeAccessIssue]
            confidence, accuracy, count = metrics.calibration_bins(labels, self.predict_proba(X))  # pyright: ignore[reportAttributeAccessIssue]
            filled = count > 0
            ax.scatter(
                confidence[filled], accuracy[filled], s=10 + 150 * count[filled] / count.sum(),
                color=_BLUE, alpha=0.8,
            )  # fmt: skip
            ax.set_xlabel("confidence (size: share of rows)")
            ax.set_ylabel("accuracy")
        else:
            tails = np.concatenate([(1 - _LEVELS) / 2, (1 + _LEVELS) / 2])
            quantiles = self.predict_quantiles(X, tails)  # pyright: ignore[reportAttributeAccessIssue]
            low, high = np.split(quantiles, 2, axis=-1)
            inside = (np.asarray(y)[..., None] >= low) & (np.asarray(y)[..., None] <= high)
            ax.plot(
                _LEVELS,
                inside.reshape(-1, len(_LEVELS)).mean(axis=0),
                "o-",
                color=_BLUE,
                markersize=3,
            )
            ax.set_xlabel("stated coverage of the interval")
            ax.set_ylabel("share of targets inside")
        ax.set_xlim(0, 1)
        ax.set_ylim(0, 1)
        ax.set_title("Calibration")
        return ax

    def plot_relevance(self, ax: Any = None, n_most: int = 20) -> Any:
        """Draw the most relevant inputs.

        Args:
            ax: axes to draw on; new ones by default.
            n_most: how many inputs to show at most.
        """
        ax = _axes(ax)
        relevance = self.relevance_  # pyright: ignore[reportAttributeAccessIssue]
        names = np.asarray(self._column_names())  # pyright: ignore[reportAttributeAccessIssue]
        order = np.argsort(relevance)[-n_most:]
        ax.barh(names[order], relevance[order], color=_BLUE)
        ax.set_xlabel("relative size of frequencies")
        ax.set_title("Relevance of inputs")
        return ax
