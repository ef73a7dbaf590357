"""Held-out rows: how good a model is on them, and which depth they favor."""

import copy
from typing import Any

import numpy as np

from bochner.estimators.rows import Rows
from bochner.prediction import LogDensity, Posterior

_DEPTHS = (1, 2, 3)
_SHARE_TO_JUDGE_DEPTHS = 0.2
_MAX_ROWS_TO_TRY_DEPTHS = 20_000


def mnll_of(posterior: Posterior, rows: Rows) -> float:
    """Compute the mean negative log-likelihood of scaled rows, each counted by its weight."""
    log_density = posterior.map_rows(LogDensity(), rows.X, Y=rows.Y)
    return float(-np.average(log_density, weights=rows.weights))


def try_depths(estimator: Any, rows: Rows) -> dict[int, float]:
    """Fit one model of each depth to most of the rows, and give their MNLL on the others, in the targets' units."""
    if len(rows) > _MAX_ROWS_TO_TRY_DEPTHS:
        generator = np.random.default_rng(0)
        rows = rows[generator.permutation(len(rows))[:_MAX_ROWS_TO_TRY_DEPTHS]]
    order = np.random.default_rng(1).permutation(len(rows))
    n_held_out = max(round(_SHARE_TO_JUDGE_DEPTHS * len(rows)), 1)
    kept, judged = rows[np.sort(order[n_held_out:])], rows[np.sort(order[:n_held_out])]
    scores = {}
    for depth in _DEPTHS:
        trial = copy.copy(estimator).set_params(
            n_layers=depth, checkpoint=None, resume=False, warm_start=False
        )
        trial._fit(kept)
        with trial._on_device():
            mnll = mnll_of(trial._posterior(), trial._scaled(judged))
        scores[depth] = mnll + trial._target_scaling.log_jacobian
    return scores
