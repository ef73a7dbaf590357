"""Rows of a kind that is not in the training rows, told from others: by `novelty`, and by distances to neighbors."""

from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import NearestNeighbors

from benchmarks.suite import tables
from bochner import DeepGPClassifier, DeepGPRegressor, Exact

TABLES = ("airfoil", "wdbc")
N_TRAIN, N_JUDGED, N_SEEDS = 300, 200, 5
WAYS = {
    "beyond": "the fifth of the rows that is largest along the first principal component",
    "mixed": "rows like the others in each column, and unlike them in how columns go together",
}


def measure(names: tuple[str, ...] = TABLES) -> list[dict[str, Any]]:
    """Give the area under the ROC curve of each score, for each table, way and seed."""
    return [
        {"table": name, "way": way, "seed": seed, **_areas(name, way, seed)}
        for name in names
        for way in WAYS
        for seed in range(N_SEEDS)
    ]


def means(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Give the mean over seeds, with the standard error of the difference."""
    found = []
    for name, way in dict.fromkeys((one["table"], one["way"]) for one in records):
        own = [one for one in records if (one["table"], one["way"]) == (name, way)]
        areas = {score: np.array([one[score] for one in own]) for score in ("novelty", "neighbor")}
        gain = areas["novelty"] - areas["neighbor"]
        error = float(gain.std(ddof=1) / len(gain) ** 0.5) if len(gain) > 1 else float("nan")
        rounded = {score: float(values.mean()) for score, values in areas.items()}
        found.append({"table": name, "way": way, **rounded, "error_of_difference": error})
    return found


def _areas(name: str, way: str, seed: int) -> dict[str, float]:
    X, y, classes = _numbers(name)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(X))
    outside = np.zeros(len(X), bool)
    if way == "beyond":
        Z = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-9)
        along = Z @ np.linalg.svd(Z, full_matrices=False)[2][0]
        outside = along > np.quantile(along, 0.8)
    inside = order[~outside[order]]
    train, known = inside[:N_TRAIN], X[inside[N_TRAIN:][:N_JUDGED]]
    strange = X[order[outside[order]][:N_JUDGED]]
    if way == "mixed":
        strange = np.stack([rng.permutation(column) for column in known.T], axis=1)
    kind = DeepGPClassifier if classes else DeepGPRegressor
    model = kind(Exact(), random_state=seed).fit(X[train], y[train])
    judged = np.vstack([known, strange])
    truth = np.repeat([0, 1], [len(known), len(strange)])
    scale = np.maximum(X[train].std(axis=0), 1e-9)
    distances = NearestNeighbors(n_neighbors=1).fit(X[train] / scale).kneighbors(judged / scale)[0]
    return {
        "novelty": float(roc_auc_score(truth, model.novelty(judged))),
        "neighbor": float(roc_auc_score(truth, distances[:, 0])),
    }


def _numbers(name: str) -> tuple[np.ndarray, np.ndarray, bool]:
    table = tables.load(name)
    columns = [c for c in table.rows.column_names if c != table.target]
    X = np.stack([table.rows[column].to_numpy() for column in columns], axis=1)
    y = table.rows[table.target].to_numpy(zero_copy_only=False)
    return X.astype(np.float64), y, table.classification
