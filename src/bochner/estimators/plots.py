"""Plots that a fitted estimator draws of itself; matplotlib is the extra `plots`."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from bochner.prediction import metrics
from bochner.system.terminal import harmless

_LEVELS = np.linspace(0.05, 0.95, 19)
_BLUE, _GREY, _RED = "#1f5fa8", "#8a8a8a", "#c0392b"
_COLORS = (_BLUE, _RED, "#2e8b57", "#b8860b", "#7d4f9e")
_MOST_OUTPUTS = len(_COLORS)
_MOST_EFFECTS, _POINTS_OF_EFFECTS = 6, 24


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            "plots need matplotlib: install it with `pip install matplotlib`."
        ) from error
    return plt.subplots(figsize=(5, 3.6), layout="constrained")[1]


def _small_multiples(n: int, tall: bool) -> Any:
    """Make axes with the same scale of predictions."""
    figure = _axes(None).figure
    figure.clear()
    n_wide = min(n, 3)
    n_high = -(-n // n_wide)
    figure.set_size_inches(3.2 * n_wide, (3.4 if tall else 2.6) * n_high)
    axes = figure.subplots(n_high, n_wide, sharey=True, squeeze=False)
    for unused in axes.ravel()[n:]:
        unused.remove()
    return axes.ravel()[:n]


def _shown(name: Any) -> str:
    """Write a name as it is: a dollar would start a formula."""
    return harmless(name).replace("$", r"\$")


class PlotsMixin:
    """The `plot_*` methods of the estimators; each takes and gives matplotlib axes."""

    history_: list[dict[str, Any]]

    def plot_learning_curve(self, ax: Any = None) -> Any:
        """Draw the bound a row of a deep member over the training steps, and held-out MNLL where it was computed.

        Args:
            ax: axes to draw on; new ones by default.
        """
        ax = _axes(ax)
        steps = np.array([record["step"] for record in self.history_])
        bound = -np.array([record["elbo"] for record in self.history_]) / self.trained_weight_  # pyright: ignore[reportAttributeAccessIssue]
        ax.plot(steps, bound, color=_BLUE, label="negative bound a row")
        judged = [r for r in self.history_ if r["held_out_mnll"] is not None]
        mnll = np.array([r["held_out_mnll"] for r in judged], float)
        if judged:
            ax.plot([r["step"] for r in judged], mnll, color=_RED, label="held-out MNLL")
        # The first records can be orders of magnitude above the rest and would flatten it.
        ends = np.concatenate([values[len(values) // 10 :] for values in (bound, mnll)])
        low, high = float(np.nanmin(ends)), float(np.nanmax(ends))
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
            labels = self.fitted_.task.targets(y, X)[:, 0]  # pyright: ignore[reportAttributeAccessIssue]
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

    def plot_shares(self, ax: Any = None, n_most: int = 20, explanation: Any = None) -> Any:
        """Draw the shares of the most important columns in what makes predictions differ.

        Args:
            ax: axes to draw on; new ones by default.
            n_most: how many columns to show at most.
            explanation: what `explain` gave; it is called by default.
        """
        found = self.explain() if explanation is None else explanation  # pyright: ignore[reportAttributeAccessIssue]
        ax = _axes(ax)
        shown = list(found.columns.items())[:n_most][::-1]
        ax.barh([_shown(name) for name, _ in shown], [share for _, share in shown], color=_BLUE)
        ax.xaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
        ax.set_xlabel("of what exchanging values of single columns changes")
        ax.set_title("Shares of columns")
        return ax

    def plot_effects(
        self, columns: Sequence[str] | None = None, ax: Any = None, explanation: Any = None
    ) -> Any:
        """Draw the mean prediction along columns, with 90% intervals, one small plot a column.

        Args:
            columns: names of columns; the six most important ones by default.
            ax: axes to draw on, one for each column; new ones by default.
            explanation: what `explain` gave; it is called by default.
        """
        found = self.explain() if explanation is None else explanation  # pyright: ignore[reportAttributeAccessIssue]
        if isinstance(columns, str):
            columns = [columns]
        names = list(found.columns)[:_MOST_EFFECTS] if columns is None else list(columns)
        if ax is not None and np.size(ax) != len(names):
            raise ValueError(
                f"`ax` must be one for each of {len(names)} columns; got {np.size(ax)}."
            )
        effects = [found.effect(name, _POINTS_OF_EFFECTS) for name in names]
        rotated = any(_is_rotated(effect) for effect in effects)
        axes = _small_multiples(len(names), rotated) if ax is None else np.asarray(ax)
        shown = _outputs_shown(found, effects)
        for one, effect in zip(axes.ravel(), effects, strict=True):
            _draw_effect(one, effect, shown)
            share = found.columns[effect.column]
            told = f"{share:.0%}" if share >= 0.005 else "<1%"
            one.set_title(f"{_shown(effect.column)} ({told})")
        if len(shown) > 1:
            axes.ravel()[0].legend(frameon=False, fontsize="small")
        return axes


def _outputs_shown(explanation: Any, effects: Sequence[Any]) -> dict[int, str]:
    """Choose which of several targets or classes to draw: of two classes the second, of many those that change most."""
    names = list(explanation.outputs) or ["predicted mean"]
    if len(names) == 2 and explanation.fitted.task.classification:
        return {1: f"probability of {_shown(names[1])}"}
    ranges = np.sum([np.ptp(one.mean.reshape(-1, len(names)), axis=0) for one in effects], axis=0)
    most = np.sort(np.argsort(-ranges, kind="stable")[:_MOST_OUTPUTS])
    return {int(place): _shown(names[place]) for place in most}


def _draw_effect(ax: Any, effect: Any, outputs: dict[int, str]) -> None:
    curves = [
        part.reshape(len(effect.values), -1) for part in (effect.mean, effect.low, effect.high)
    ]
    x = np.arange(len(effect.values)) if effect.is_category else effect.values
    for (place, label), color in zip(outputs.items(), _COLORS, strict=False):
        mean, low, high = (curve[:, place] for curve in curves)
        if effect.is_category:
            ax.errorbar(x, mean, [mean - low, high - mean], fmt="o", color=color, label=label)
        else:
            ax.plot(x, mean, "o-" if len(x) < 10 else "-", color=color, markersize=4, label=label)
            ax.fill_between(x, low, high, color=color, alpha=0.2, linewidth=0)
    if len(outputs) == 1:
        place = ax.get_subplotspec()
        if place is None or place.is_first_col():
            ax.set_ylabel(*outputs.values())
    if effect.is_category:
        texts = ["missing" if value is None else _shown(value) for value in effect.values]
        ax.set_xticks(x, [text if len(text) < 15 else f"{text[:13]}…" for text in texts])
    if _is_rotated(effect):
        ax.tick_params(axis="x", rotation=90)


def _is_rotated(effect: Any) -> bool:
    """Whether values are too long, or too many, to stand side by side."""
    return effect.values.dtype.kind == "M" or (effect.is_category and len(effect.values) > 4)
