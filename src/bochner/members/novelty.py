"""How far rows are from the training rows, as the members see it."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from bochner.exact.densities import DensityPart
from bochner.exact.linear_algebra import factorize, half_solve
from bochner.exact.novelty import open_share
from bochner.fitting.deep_fit import DeepFit
from bochner.members.fitted import Fitted
from bochner.members.parts import AbstractPart, DeepPart, RowsPart
from bochner.members.predictors import AbstractPredictor, SideBySide

_NOISE, _MOST_ENTRIES = 0.01, 20_000_000


def novelty(fitted: Fitted, X: Float[np.ndarray, "n d"]) -> Float[np.ndarray, " n"]:
    """Compute for each row the share of the prior variance of functions that the training rows leave open there.

    It is the mean over members that have local functions, by their weights.
    """
    shares, weights = [], []
    for weight, part in _weighed(fitted.predictor):
        found = (
            _of_deep(part.fit, fitted.background, X)
            if isinstance(part, DeepPart)
            else _of_rows(part, X)
        )
        if found is not None:
            shares.append(found)
            weights.append(weight)
    if not shares:
        raise ValueError(
            "only members with local functions know how far a row is from theirs, and this fit has none with weight: "
            "fit `Exact()`, `Landmarks()` or `Deep()` for it."
        )
    return np.average(shares, axis=0, weights=weights)


def _weighed(predictor: AbstractPredictor) -> list[tuple[float, AbstractPart]]:
    if isinstance(predictor, SideBySide):
        return [pair for target in predictor.targets for pair in _weighed(target)]
    weights = getattr(predictor, "weights", np.ones(1))
    return list(zip(weights, predictor.parts, strict=True))


def _of_rows(part: AbstractPart, X: np.ndarray) -> np.ndarray | None:
    assert isinstance(part, RowsPart)
    model: Any = part.part
    several = getattr(getattr(model, "functions", None), "processes", ())
    alone = getattr(model, "process", None)
    if isinstance(model, DensityPart):
        alone = model.landmarks
    rows = part.columns(X)
    found = [open_share(one, rows) for one in (several if alone is None else (alone,))]
    known = [share for share in found if share is not None]
    return np.mean(known, axis=0) if known else None


def _of_deep(fit: DeepFit, background: np.ndarray, X: np.ndarray) -> np.ndarray | None:
    """Compute the open share of the first layer's covariance, given the training rows that a fit keeps.

    What a posterior over weights leaves open says less: a factorized one is as wide far out as between the rows.
    """
    if not len(background):
        return None
    endless = np.full(fit.d_in, np.inf)
    scaling = dataclasses.replace(fit.input_scaling, limit=endless)  # what is far stays far
    center = fit.input_scaling.center.copy()
    center[[*scaling.effects]] = (
        np.nan
    )  # an effect, which is no number of a value: what is missing has none
    X = np.where(np.isnan(X), center, X)
    features = fit.model.each()[0].layers[0].features
    known = jnp.asarray(scaling(background), jnp.float32)
    K = np.asarray(features.covariance(known, known), np.float64)
    factor = factorize(K + _NOISE * np.diag(np.diag(K)))
    at_once, found = max(1, _MOST_ENTRIES // background.size), [np.zeros(0)]
    for start in range(0, len(X), at_once):
        rows = jnp.asarray(scaling(X[start : start + at_once]), jnp.float32)
        across = np.asarray(features.covariance(known, rows), np.float64)
        prior = np.asarray(jax.vmap(lambda x: features.covariance(x[None], x[None])[0, 0])(rows))
        found.append(np.clip(1 - np.sum(half_solve(factor, across) ** 2, axis=0) / prior, 0, 1))
    return np.concatenate(found)
