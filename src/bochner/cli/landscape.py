"""The table of the demo: heights of the ground at surveyed points, and how well models know what lies between."""

import dataclasses
from typing import Any

import numpy as np
import pyarrow as pa

from bochner.prediction import metrics

N_SURVEYED, N_HELD_OUT = 500, 2000
KM_EAST, KM_NORTH = 0.0743, 0.0927
"""Between neighbors of the grid: three seconds of arc at 36.6 degrees north."""
COVERAGE = 0.9
"""Of all intervals."""

_ENDS = ((1 - COVERAGE) / 2, (1 + COVERAGE) / 2)
_NORMAL = 1.6449
"""Half the width of a 90 % interval of a normal distribution with deviation 1."""

Scores = dict[str, float]


@dataclasses.dataclass(frozen=True, eq=False)
class Landscape:
    """A grid of heights, of which some points are known and others held out.

    Attributes:
        heights: in meters, the first row in the south.
        X: places of the known points, in kilometers to the east and to the north.
        y: their heights.
        X_test: places of held-out points.
        y_test: their heights.
    """

    heights: np.ndarray
    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray

    @classmethod
    def surveyed(cls, seed: int) -> "Landscape":
        """Draw the points from the map that Matplotlib carries: 30 by 32 km around the Jacksboro fault in Tennessee."""
        from matplotlib.cbook import get_sample_data

        with np.load(str(get_sample_data("jacksboro_fault_dem.npz", asfileobj=False))) as stored:
            heights = stored["elevation"][::-1].astype(float)
        generator = np.random.default_rng(seed)
        drawn = generator.choice(heights.size, N_SURVEYED + N_HELD_OUT, replace=False)
        X, X_test = np.split(places(heights.shape)[drawn], [N_SURVEYED])
        y, y_test = np.split(heights.ravel()[drawn], [N_SURVEYED])
        return cls(heights, X, y, X_test, y_test)

    @property
    def table(self) -> pa.Table:
        """The known points, as they would come from a file."""
        return named(self.X).append_column("height", pa.array(self.y))


def named(X: np.ndarray) -> pa.Table:
    """Give places as a table of named columns."""
    return pa.table({"east": X[:, 0], "north": X[:, 1]})


def places(shape: tuple[int, ...], every: int = 1) -> np.ndarray:
    """Give the places of a grid's points, or of every so many in both directions.

    Example:
        >>> from bochner.cli.landscape import places
        >>> places((1, 3), every=2).tolist()
        [[0.0, 0.0], [0.1486, 0.0]]
    """
    north, east = np.mgrid[0 : shape[0] : every, 0 : shape[1] : every]
    return np.column_stack([KM_EAST * east.ravel(), KM_NORTH * north.ravel()])


def all_scores(model: Any, land: Landscape) -> dict[str, Scores]:
    """Measure the model and baselines of scikit-learn on the held-out points."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, WhiteKernel
    from sklearn.linear_model import RidgeCV

    ridge = RidgeCV(np.logspace(-3, 3, 13)).fit(land.X, land.y)
    noise = np.std(land.y - ridge.predict(land.X), ddof=3)
    boosted = [boosted_trees(land, level).predict(land.X_test) for level in (None, *_ENDS)]
    scales: Any = [1.0, 1.0]
    kernel = RBF(scales) + WhiteKernel(0.1)
    process = GaussianProcessRegressor(kernel, normalize_y=True, random_state=0)
    mean, deviation = process.fit(land.X, land.y).predict(land.X_test, return_std=True)
    held_out = named(land.X_test)
    own = model.predict(held_out), *model.predict_interval(held_out, COVERAGE).T
    return {
        "bochner": interval_scores(land.y_test, *own),
        "linear regression": _normal_scores(land.y_test, ridge.predict(land.X_test), noise),
        "gradient boosting": interval_scores(land.y_test, *boosted),
        "Gaussian process": _normal_scores(land.y_test, mean, deviation),
    }


def boosted_trees(land: Landscape, level: float | None) -> Any:
    """Fit boosted trees of scikit-learn to the mean of known heights, or to a quantile."""
    from sklearn.ensemble import GradientBoostingRegressor

    if level is None:
        return GradientBoostingRegressor(random_state=0).fit(land.X, land.y)
    trees = GradientBoostingRegressor(loss="quantile", alpha=level, random_state=0)
    return trees.fit(land.X, land.y)


def interval_scores(y: np.ndarray, mean: np.ndarray, low: np.ndarray, high: np.ndarray) -> Scores:
    """Measure means and 90 % intervals; the interval score is their width, and 20 times by how much they miss.

    Example:
        >>> import numpy as np
        >>> from bochner.cli.landscape import interval_scores
        >>> zero, one = np.zeros(2), np.ones(2)
        >>> found = interval_scores(np.array([0.0, 1.5]), zero, -one, one)
        >>> found["coverage_90"], found["width_90"], round(found["interval_score_90"], 6)
        (0.5, 2.0, 7.0)
    """
    missed = np.maximum(low - y, 0) + np.maximum(y - high, 0)
    return {
        "rmse": metrics.rmse(y, mean),
        "interval_score_90": float(np.mean(high - low + 2 / (1 - COVERAGE) * missed)),
        "coverage_90": metrics.coverage(y, low, high),
        "width_90": float(np.mean(high - low)),
    }


def _normal_scores(y: np.ndarray, mean: np.ndarray, deviation: Any) -> Scores:
    half = _NORMAL * deviation
    return interval_scores(y, mean, mean - half, mean + half)
