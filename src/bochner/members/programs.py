"""What members predict, as programs that JAX can export."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bochner.exact.classes import ClassPart
from bochner.exact.matrix import MatrixColumns
from bochner.exact.program import class_program, regression_program
from bochner.fitting.deep_fit import DeepFit
from bochner.prediction.statistics import Moments, Probabilities
from bochner.rows.effects import with_effects
from bochner.rows.scaling import InputScaling

LawProgram = Callable[[jax.Array], tuple[jax.Array, jax.Array]]
"""From encoded rows to mean and variance of the target, or to probabilities of classes and zeros."""


def program_of_rows(
    models: list[Any], weights: np.ndarray, columns: MatrixColumns, extent: tuple[float, float]
) -> LawProgram:
    """Give mean and variance, or probabilities, of a mixture of models in the space of rows."""
    if isinstance(models[0], ClassPart):
        classes = class_program(models, weights, columns)

        def probabilities(X: jax.Array) -> tuple[jax.Array, jax.Array]:
            found = classes(X)
            return found, jnp.zeros_like(found)

        return probabilities
    moments = regression_program(models, weights, extent, columns)

    def regression(X: jax.Array) -> tuple[jax.Array, jax.Array]:
        mean, std = moments(X)
        return mean, std**2

    return regression


def program_of_deep(fit: DeepFit, *, one_target: bool = False) -> LawProgram:
    """Give mean and variance, or probabilities, of a deep model."""
    posterior, scale_inputs = fit.posterior(), _float32_scaling(fit.input_scaling)

    def classification(X: jax.Array) -> tuple[jax.Array, jax.Array]:
        found = posterior.at(Probabilities(), scale_inputs(X), {})
        found = found / jnp.sum(found, axis=1, keepdims=True)
        return found, jnp.zeros_like(found)

    def regression(X: jax.Array) -> tuple[jax.Array, jax.Array]:
        moments, scaling = posterior.at(Moments(), scale_inputs(X), {}), fit.target_scaling
        center, scale = (jnp.float32(v)[None, :] for v in (scaling.center, scaling.scale))
        mean = moments["mean"] * scale + center
        variance = (moments["epistemic"] + moments["aleatoric"]) * scale**2
        return (mean[:, 0], variance[:, 0]) if one_target else (mean, variance)

    return classification if fit.task.classification else regression


def _float32_scaling(scaling: InputScaling) -> Callable[[jax.Array], jax.Array]:
    """Give the scaling for float32, with the center as a sum of two numbers, so that its digits are not lost."""
    with np.errstate(over="ignore", under="ignore"):
        high = scaling.center.astype(np.float32)
        scale = scaling.scale.astype(np.float32)
    if not np.all(np.isfinite(high) & np.isfinite(scale) & (scale > np.finfo(np.float32).tiny)):
        raise ValueError(
            "the inputs have columns that float32 cannot hold. Change their units, fit again, and export then."
        )
    rest = dataclasses.replace(
        scaling,
        center=(scaling.center - high.astype(np.float64)).astype(np.float32),
        scale=scale,
        knee=scaling.knee.astype(np.float32),
        limit=scaling.limit.astype(np.float32),
        effects={},
    )
    return lambda X: rest(with_effects(X, scaling.effects, jnp) - high[None, :])
