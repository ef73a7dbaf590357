"""Small tables, and members that are fitted to them in a moment."""

from typing import Any

import numpy as np

from bochner import Constant, Deep, Exact, Linear
from bochner.fitting.held_out import Named
from bochner.fitting.resolving import Asked
from bochner.fitting.rows import Rows
from bochner.fitting.session import Session
from bochner.fitting.task import Classification, Regression
from bochner.members.training import Training

TINY = {
    "objective": "elbo",
    "n_layers": 1,
    "n_random_features": 6,
    "n_mc_predict": 20,
    "n_mc_train": 1,
    "batch_size": 30,
    "max_steps": 40,
    "theta_from": 0,
}
SIMPLE = [("constant", Constant()), ("linear", Linear())]


def every_kind() -> list[tuple[str, Any]]:
    """A member of each kind that a small table has."""
    return [*SIMPLE, ("exact", Exact()), ("deep", Deep(**TINY))]


def curve(n: int = 60, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A wave along the first of two columns, which are in units of their own."""
    generator = np.random.default_rng(seed)
    X = generator.uniform(-2, 2, size=(n, 2))
    y = 20.0 + 3.0 * np.sin(2 * X[:, 0]) + 0.3 * generator.normal(size=n)
    return X * [1.0, 100.0], y


def sides(n: int = 60, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Three classes, by bands of the first column."""
    X, y = curve(n, seed)
    return X, np.array(["high", "low", "middle"])[np.digitize(y, [19.0, 21.0])]


def training(X: np.ndarray, y: np.ndarray, *, classes: bool = False, **settings: Any) -> Training:
    """What members learn from, as the estimators make it."""
    task = Classification.of(y) if classes else Regression()
    rows = Rows(np.asarray(X, float), task.targets(y, X), np.ones(len(X)))
    sources = tuple((place,) for place in range(X.shape[1]))
    session = Session(max_seconds=settings.pop("max_seconds", None))
    asked = Asked(Deep(), settings.pop("likelihood", None), seed=0, session=session)
    named = Named(tuple(f"column {place}" for place in range(X.shape[1])))
    return Training(rows, task, sources, asked, named=named, **settings)
