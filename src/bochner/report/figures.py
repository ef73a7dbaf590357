"""The plots of the report, each drawn from its part of the data."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from bochner.report.svg import COLORS, Drawing
from bochner.report.texts import printable

N_SHARES = 12
"""Inputs drawn at most in the plot of their shares."""

_LONGEST_NAME = 22
_MOST_TICKS, _WIDEST_TICKS = 6, 36


@dataclasses.dataclass(frozen=True)
class Figure:
    """A drawing with its texts.

    Attributes:
        name: its id on the page.
        title: what it shows.
        svg: the drawing.
        caption: how to read it.
    """

    name: str
    title: str
    svg: str
    caption: str


def figures_of(data: dict[str, Any]) -> list[Figure]:
    """Draw all but the effects, in the order of the page."""
    found = _of_classes(data) if data["task"] == "classification" else _of_numbers(data)
    if data["learning"] is not None:
        found.append(
            Figure(
                "learning",
                "Learning curve of the deep model",
                learning_figure(data["learning"]),
                "A curve that is flat at its end says that training had settled.",
            )
        )
    caption = "Share of each input in what predicted means change when the values of one are exchanged between rows."
    found.append(Figure("shares", "Most important inputs", shares_figure(data["inputs"]), caption))
    return found


def _of_numbers(data: dict[str, Any]) -> list[Figure]:
    n_rows, n_drawn = data["data"]["n_rows"], len(data["predictions"]["row"])
    drawn = f" {n_drawn:,} of {n_rows:,} rows, chosen at random." if n_drawn < n_rows else ""
    target = data["target"]["name"]
    return [
        Figure(
            "predictions",
            "Predicted against observed",
            predictions_figure(data["predictions"], target),
            f"Means with 90% intervals. Intervals that cross the diagonal hold the observed value.{drawn}",
        ),
        Figure(
            "calibration",
            "Calibration",
            coverage_figure(data["calibration"]),
            "On the diagonal, intervals hold what they promise; below it they are too narrow. The gray band is chance.",
        ),
        Figure(
            "residuals",
            "Residuals against predictions",
            residuals_figure(data["predictions"], target),
            f"Without a bend, nothing simple is missed. The band is the median 90% interval around the mean.{drawn}",
        ),
    ]


def _of_classes(data: dict[str, Any]) -> list[Figure]:
    return [
        Figure(
            "calibration",
            "Reliability",
            reliability_figure(data["calibration"]),
            "On the diagonal, probabilities are what they say; above it the model is too modest, below it too sure. "
            "The gray bars are chance.",
        ),
        Figure(
            "confidence",
            "How sure it is",
            confidence_figure(data["calibration"]),
            "Rows by the probability of the predicted class; wrong predictions belong on the left.",
        ),
    ]


def predictions_figure(predictions: dict[str, Any], target: str) -> str:
    """Draw predicted means with their 90% intervals over observed targets; on the diagonal they are equal."""
    observed, mean, low, high = (
        np.asarray(predictions[name], float) for name in ("observed", "mean", "low", "high")
    )
    label = f"Predicted {target} against observed {target} with 90% intervals, {len(mean):,} rows"
    drawing = Drawing("predictions", printable(label))
    with drawing.on_axes() as axes:
        missing = np.full_like(mean, np.nan)
        # One line with gaps is a small file, and overlapping intervals do not add up to a blot.
        x = np.stack([observed, observed, missing], axis=1).ravel()
        y = np.stack([low, high, missing], axis=1).ravel()
        axes.plot(x, y, color=COLORS["accent"], alpha=0.3, linewidth=_thinner(1.1, len(mean)))
        size = _thinner(3.2, len(mean))
        axes.plot(observed, mean, "o", color=COLORS["accent"], markersize=size, markeredgewidth=0)
        ends = [min(observed.min(), mean.min()), max(observed.max(), mean.max())]
        axes.plot(ends, ends, color=COLORS["ink"], linewidth=1, linestyle=(0, (4, 3)))
        axes.set_xlabel(f"observed {_short(target)}")
        axes.set_ylabel(f"predicted {_short(target)}")
    return drawing.svg


def residuals_figure(predictions: dict[str, Any], target: str) -> str:
    """Draw observed less predicted over predicted values, with the ends of a typical interval."""
    observed, mean, low, high = (
        np.asarray(predictions[name], float) for name in ("observed", "mean", "low", "high")
    )
    drawing = Drawing("residuals", printable(f"Residuals of {target} against its predictions"))
    with drawing.on_axes() as axes:
        band = float(np.median(low - mean)), float(np.median(high - mean))
        axes.axhspan(*band, color=COLORS["muted"], alpha=0.2, linewidth=0)
        axes.axhline(0, color=COLORS["ink"], linewidth=1, linestyle=(0, (4, 3)))
        size = _thinner(3.2, len(mean))
        residuals = observed - mean
        axes.plot(mean, residuals, "o", color=COLORS["accent"], markersize=size, markeredgewidth=0)
        axes.set_xlabel(f"predicted {_short(target)}")
        axes.set_ylabel("observed less predicted")
    return drawing.svg


def effect_figure(effect: dict[str, Any], place: int) -> str:
    """Draw the mean prediction along one input, with its interval."""
    name = effect["name"]
    drawing = Drawing(f"effect-{place}", printable(f"Effect of {name}"), 2.7)
    mean, low, high = (np.asarray(effect[part], float) for part in ("mean", "low", "high"))
    with drawing.on_axes() as axes:
        values = effect["values"]
        ordered = all(isinstance(value, int | float) for value in values)
        x = np.asarray(values if ordered else range(len(values)), float)
        if effect["is_category"]:
            bars = [mean - low, high - mean]
            axes.errorbar(x, mean, bars, fmt="o", color=COLORS["accent"], markersize=4)
        else:
            axes.fill_between(x, low, high, color=COLORS["accent"], alpha=0.2, linewidth=0)
            axes.plot(x, mean, color=COLORS["accent"], linewidth=1.4)
        if not ordered:
            shown = np.linspace(0, len(x) - 1, min(len(x), _MOST_TICKS)).round().astype(int)
            texts = ["missing" if values[i] is None else _short(str(values[i])) for i in shown]
            axes.set_xticks(x[shown], texts)
            if max(map(len, texts)) * len(texts) > _WIDEST_TICKS:
                axes.tick_params(axis="x", rotation=30)
        axes.set_xlabel(f"{_short(name)} ({effect['share']:.0%})")
        axes.set_ylabel(_short(effect["of"]))
    return drawing.svg


def coverage_figure(calibration: dict[str, Any]) -> str:
    """Draw the found over the stated coverage of intervals, and the band that chance explains."""
    stated, found = (np.asarray(calibration[name], float) for name in ("stated", "found"))
    n_rows = calibration["n_rows"]
    label = f"Share of targets inside intervals against their stated coverage, {n_rows:,} rows"
    drawing = Drawing("calibration", label)
    with drawing.on_axes() as axes:
        grid = np.linspace(0, 1, 101)
        chance = 2 * np.sqrt(grid * (1 - grid) / n_rows)
        _diagonal(axes, grid, np.maximum(grid - chance, 0), np.minimum(grid + chance, 1))
        axes.plot(stated, found, "o-", color=COLORS["accent"], markersize=4, linewidth=1.4)
        axes.set_xlabel("stated coverage of the interval")
        axes.set_ylabel("share of targets inside")
    return drawing.svg


def reliability_figure(calibration: dict[str, Any]) -> str:
    """Draw the accuracy over the confidence of predictions in bins, with what chance explains in each."""
    confidence, accuracy, count = (
        np.asarray(calibration[name], float) for name in ("confidence", "accuracy", "count")
    )
    filled = count > 0
    confidence, accuracy, count = confidence[filled], accuracy[filled], count[filled]
    label = f"Share of right predictions against stated probability, {int(count.sum()):,} rows"
    drawing = Drawing("calibration", label)
    with drawing.on_axes() as axes:
        _diagonal(axes, np.array([0.0, 1.0]))
        chance = 2 * np.sqrt(confidence * (1 - confidence) / count)
        low, high = np.maximum(confidence - chance, 0), np.minimum(confidence + chance, 1)
        axes.vlines(confidence, low, high, color=COLORS["muted"], alpha=0.3, linewidth=7)
        axes.plot(confidence, accuracy, "o", color=COLORS["accent"], markersize=5)
        axes.set_xlabel("stated probability")
        axes.set_ylabel("share of right predictions")
    return drawing.svg


def confidence_figure(calibration: dict[str, Any]) -> str:
    """Draw how many rows have which stated probability, right and wrong predictions apart."""
    accuracy, count = (np.asarray(calibration[name], float) for name in ("accuracy", "count"))
    right = np.round(accuracy * count)
    label = (
        f"Rows by stated probability: {right.sum():,.0f} right, {(count - right).sum():,.0f} wrong"
    )
    drawing = Drawing("confidence", label)
    with drawing.on_axes() as axes:
        edges = np.linspace(0, 1, len(count) + 1)
        middles, width = (edges[1:] + edges[:-1]) / 2, 0.86 / len(count)
        axes.bar(middles, right, width, color=COLORS["accent"], label="right")
        axes.bar(middles, count - right, width, right, color=COLORS["second"], label="wrong")
        axes.grid(visible=False, axis="x")
        axes.set_xlim(-0.02, 1.02)
        axes.set_xlabel("stated probability")
        axes.set_ylim(0, 1.08 * count.max())
        axes.set_ylabel("rows")
        axes.legend(loc="upper left")
    return drawing.svg


def learning_figure(learning: dict[str, Any]) -> str:
    """Draw the negative bound a row over the steps, and the MNLL of held-out rows where it was computed."""
    steps, bound = np.asarray(learning["step"]), np.asarray(learning["bound"], float)
    drawing = Drawing(
        "learning", "Negative bound a row and held-out MNLL against training steps", 2.9
    )
    with drawing.on_axes() as axes:
        axes.plot(steps, bound, color=COLORS["accent"], linewidth=1.4, label="negative bound a row")
        judged = np.array([np.nan if v is None else v for v in learning["held_out_mnll"]], float)
        known = np.isfinite(judged)
        if known.any():
            held_out = {"color": COLORS["second"], "linewidth": 1.4, "linestyle": (0, (5, 2))}
            axes.plot(steps[known], judged[known], label="held-out MNLL", **held_out)
        # The first records can be orders of magnitude above the rest and would flatten it.
        later = np.concatenate([values[len(values) // 10 :] for values in (bound, judged[known])])
        later = later[np.isfinite(later)]
        if len(later):
            low, high = float(np.min(later)), float(np.max(later))
            axes.set_ylim(low - 0.05 * (high - low) - 1e-3, high + 0.15 * (high - low) + 1e-3)
        axes.set_xlabel("training step")
        axes.legend(loc="upper right")
    return drawing.svg


def shares_figure(inputs: Sequence[dict[str, Any]]) -> str:
    """Draw the shares of the most important inputs as bars."""
    shown = sorted(inputs, key=lambda entry: -entry["share"])[:N_SHARES][::-1]
    label = "Shares of the inputs: " + ", ".join(
        f"{entry['name']} {entry['share']:.0%}" for entry in reversed(shown)
    )
    drawing = Drawing("shares", printable(label), max(1.2 + 0.2 * len(shown), 1.6))
    with drawing.on_axes() as axes:
        places = np.arange(len(shown))
        values = [100 * entry["share"] for entry in shown]
        axes.barh(places, values, height=0.66, color=COLORS["accent"])
        axes.set_yticks(places, [_short(entry["name"]) for entry in shown])
        axes.tick_params(axis="y", length=0)
        axes.grid(visible=False, axis="y")
        axes.set_xlim(0, 100)
        axes.set_xlabel("share, %")
    return drawing.svg


def _diagonal(axes: Any, grid: np.ndarray, low: Any = None, high: Any = None) -> None:
    if low is not None:
        axes.fill_between(grid, low, high, color=COLORS["muted"], alpha=0.2, linewidth=0)
    axes.plot(grid, grid, color=COLORS["ink"], linewidth=1, linestyle=(0, (4, 3)))
    axes.set_xlim(-0.02, 1.02)
    axes.set_ylim(-0.02, 1.02)


def _thinner(size: float, n_rows: int) -> float:
    """Smaller marks for more rows, down to a third."""
    return size * float(np.clip((300 / n_rows) ** 0.5, 0.35, 1.0))


def _short(name: str) -> str:
    name = printable(name)
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"
