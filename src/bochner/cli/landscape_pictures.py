"""What the demo draws of a model of the landscape: maps, calibration, and what each input does."""

from pathlib import Path
from typing import Any

import numpy as np

from bochner.cli.landscape import KM_EAST, KM_NORTH, Landscape, boosted_trees, named, places
from bochner.system.destination import Destination

PICTURES = {
    "maps.png": "Above: the truth, what is predicted from the points alone, and how sure that is. Where the deviation "
    "is large, survey next. Below: three of the landscapes that the points allow, drawn from the posterior.",
    "calibration.png": "On the diagonal, intervals hold as many held-out heights as they promise.",
    "effects.png": "What each input does: the mean height along it with 90 % intervals, and its share in what makes "
    "predictions differ.",
}
"""Captions by name of the file."""

_EVERY = 4
"""Points of the grid that maps show: every so many in both directions."""
_LEVELS = np.linspace(0.1, 0.9, 5)
_RED = "#c0392b"


def draw(model: Any, land: Landscape, folder: Path) -> None:
    """Write all pictures."""
    for name, drawn in zip(
        PICTURES, (_maps(model, land), _calibration(model, land), _effects(model)), strict=True
    ):
        _write(drawn, folder / name)


def _maps(model: Any, land: Landscape) -> Any:
    import matplotlib.pyplot as plt

    truth = land.heights[::_EVERY, ::_EVERY]
    grid = places(land.heights.shape, _EVERY)
    mean, deviation = model.predict(named(grid), return_std=True)
    drawn = [np.asarray(function(grid)) for function in model.sample_functions(3)]
    figure, axes = plt.subplots(
        2, 3, figsize=(9.6, 6.6), layout="constrained", sharex=True, sharey=True
    )
    n_north, n_east = land.heights.shape
    place: Any = {"origin": "lower", "extent": (0.0, KM_EAST * n_east, 0.0, KM_NORTH * n_north)}
    low, high = np.quantile(truth, [0.005, 0.995])
    # The blue end of the colors is left out: it would look like water.
    as_height = place | {"cmap": "gist_earth", "vmin": low - 0.2 * (high - low), "vmax": high}
    titles = ["truth", "mean", "deviation", *(f"function drawn {n}" for n in (1, 2, 3))]
    maps = [truth, mean, deviation, *drawn]
    for ax, title, values in zip(axes.ravel(), titles, maps, strict=True):
        how = place | {"cmap": "magma"} if title == "deviation" else as_height
        image = ax.imshow(values.reshape(truth.shape), **how)
        ax.set_title(title)
        if ax in axes[:, 2]:
            label = "m (points: surveyed)" if title == "deviation" else "height, m"
            figure.colorbar(image, ax=ax, label=label, shrink=0.85)
    axes[0, 2].scatter(*land.X.T, s=1.5, color="white")
    axes[1, 1].set_xlabel("km east")
    axes[0, 0].set_ylabel("km north")
    axes[1, 0].set_ylabel("km north")
    return figure


def _calibration(model: Any, land: Landscape) -> Any:
    """Draw the found over the stated coverage, for the model and for boosted quantiles."""
    ax = model.plot_calibration(named(land.X_test), land.y_test)
    ax.lines[-1].set_label("bochner")
    found = []
    for level in _LEVELS:
        low, high = (
            boosted_trees(land, (1 + side * level) / 2).predict(land.X_test) for side in (-1, 1)
        )
        found.append(np.mean((land.y_test >= low) & (land.y_test <= high)))
    ax.plot(_LEVELS, found, "s-", color=_RED, markersize=3, label="gradient boosting")
    ax.set_title(f"Calibration on {len(land.y_test):,} held-out heights")
    ax.legend(frameon=False)
    return ax.figure


def _effects(model: Any) -> Any:
    axes = model.plot_effects(["east", "north"])
    for ax in axes:
        ax.set_xlabel("km")
    axes[0].set_ylabel("mean height, m")
    return axes[0].figure


def _write(figure: Any, path: Path) -> None:
    import matplotlib.pyplot as plt

    with Destination(path).open() as file:
        figure.savefig(file, dpi=130, format="png")
    plt.close(figure)
