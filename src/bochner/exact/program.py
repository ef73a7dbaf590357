"""Models in the space of rows as functions of a matrix in JAX: to be compiled, exported, or differentiated.

All is in double precision: trace these functions, and export them, inside `jax.enable_x64(True)`; `in_double` does so
for plain calls.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from bochner.exact.classes import LEAST_PROBABILITY, ClassPart
from bochner.exact.densities import DensityPart
from bochner.exact.dirichlet import N_DRAWS, N_NODES
from bochner.exact.encode_program import encoded, encoder
from bochner.exact.landmarks import LandmarkProcess
from bochner.exact.laws import BEYOND, N_NODES_OF_MOMENTS, quantile
from bochner.exact.linear_algebra import half_solve
from bochner.exact.matrix import MatrixColumns
from bochner.exact.parts import Part
from bochner.exact.process import LEAST_SHARE, Process
from bochner.exact.rows import Rows
from bochner.exact.transforms import AbstractTransform, Log, Standardized, YeoJohnson
from bochner.exact.varying_noise import BOUND, NoiseModel


def in_double(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function in double precision, whatever the precision elsewhere.

    Example:
        >>> import jax.numpy as jnp, numpy as np
        >>> from bochner.exact.program import in_double
        >>> in_double(lambda x: x.astype(jnp.float64) / 3)(np.ones(1, np.float32)).dtype
        dtype('float64')
    """
    compiled = jax.jit(function)

    @functools.wraps(function)
    def call(*arguments: Any) -> Any:
        with jax.enable_x64(True):
            return compiled(*arguments)

    return call


def regression_program(
    parts: Sequence[Part | DensityPart],
    weights: Float[np.ndarray, " parts"],
    extent: tuple[float, float],
    columns: MatrixColumns,
) -> Callable[[Array], tuple[Array, Array]]:
    """Make the function from a matrix to mean and standard deviation of a mixture.

    Args:
        parts: the models.
        weights: of the models; those of none are left out.
        extent: least and largest training target, as for `Mixture`.
        columns: the encoding of the matrix.

    Example:
        >>> import numpy as np
        >>> from bochner.exact import Regression
        >>> from bochner.exact.matrix import MatrixColumns
        >>> from bochner.exact.program import in_double, regression_program
        >>> X = np.linspace(0, 6, 40)[:, None]
        >>> columns = MatrixColumns.learn(X, [(0,)])
        >>> model = Regression.fit(columns(X), np.sin(X[:, 0]))
        >>> predict = in_double(regression_program(model.parts, model.weights, model.extent, columns))
        >>> bool(np.allclose(predict(X)[0], model.predict(columns(X)).mean))
        True
    """
    kept = [(float(w), part) for w, part in zip(weights, parts, strict=True) if w]
    total, encode = sum(w for w, _ in kept), encoder(columns)

    def predict(X: Float[Array, "batch d"]) -> tuple[Array, Array]:
        given = Given(encode(X))
        moments = [_moments(part, given, extent) for _, part in kept]
        shares = [w / total for w, _ in kept]
        mean = sum(w * m for w, (m, _) in zip(shares, moments, strict=True))
        spread = sum(w * (v + (m - mean) ** 2) for w, (m, v) in zip(shares, moments, strict=True))
        return jnp.asarray(mean), jnp.sqrt(jnp.asarray(spread))

    return predict


def class_program(
    parts: Sequence[ClassPart], weights: Float[np.ndarray, " parts"], columns: MatrixColumns
) -> Callable[[Array], Array]:
    """Make the function from a matrix to the probability of each class under a mixture.

    Example:
        >>> import numpy as np
        >>> from bochner.exact import Classification
        >>> from bochner.exact.matrix import MatrixColumns
        >>> from bochner.exact.program import class_program, in_double
        >>> X = np.linspace(0, 6, 40)[:, None]
        >>> columns = MatrixColumns.learn(X, [(0,)])
        >>> model = Classification.fit(columns(X), (np.sin(X[:, 0]) > 0).astype(int), 2)
        >>> predict = in_double(class_program(model.parts, model.weights, columns))
        >>> bool(np.allclose(predict(X), model.predict_proba(columns(X))))
        True
    """
    kept = [(float(w), part) for w, part in zip(weights, parts, strict=True) if w]
    encode = encoder(columns)

    def predict(X: Float[Array, "batch d"]) -> Array:
        given = Given(encode(X))
        return jnp.asarray(sum(w * _probabilities(part, given) for w, part in kept))

    return predict


class Given:
    """Rows in one trace, with the covariances that several functions use.

    Example:
        >>> import jax, numpy as np
        >>> from bochner.exact.columns import Columns
        >>> from bochner.exact.encode_program import encoded
        >>> from bochner.exact.kernels import RBF
        >>> from bochner.exact.process import Process
        >>> from bochner.exact.program import Given
        >>> x = np.array([-1.0, 1.0])
        >>> rows = Columns.learn([x])([x])
        >>> process = Process.condition(RBF(), np.zeros(2), rows, x, np.full(2, 1e-6))
        >>> with jax.enable_x64(True):
        ...     mean, variance = Given(encoded(rows)).moments(process)
        >>> bool(np.allclose(mean, process.predict(rows)[0]))
        True
    """

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.n = rows.numbers.shape[0]
        self._made: dict[Any, Any] = {}

    def moments(self, process: Any) -> tuple[Array, Array]:
        """Compute mean and variance of a function, without noise."""
        if isinstance(process, LandmarkProcess):
            features, missing = self.features(process.landmarks)
            leverages = features @ jnp.asarray(_inverse_of(process)).T
            return features @ process.weights, jnp.sum(leverages**2, axis=1) + missing
        cross = self.cross(process)
        prior = process.kernel.diagonal(process.v, self.rows)
        explained = jnp.sum((cross @ jnp.asarray(_inverse_of(process)).T) ** 2, axis=1)
        return cross @ process.weights, jnp.maximum(prior - explained, LEAST_SHARE * prior)

    def mean(self, process: Process) -> Array:
        """Compute the mean of an exact function alone."""
        return self.cross(process) @ process.weights

    def cross(self, of: Any) -> Array:
        """Compute covariances with the rows of a process or with landmarks."""
        # Objects and not their numbers are the keys, so that they live as long as these.
        key = (of.kernel, id(of.v), id(of.rows))
        if key not in self._made:
            made = of.kernel.covariance(of.v, self.rows, encoded(of.rows))
            self._made[key] = (made, of)
        return self._made[key][0]

    def noise(self, model: NoiseModel | None) -> Array:
        """Compute what the variance of noise is multiplied by."""
        if model is None:
            return jnp.ones((self.n,))
        bounded = jnp.clip(self.mean(model.process), -BOUND, BOUND)
        return jnp.exp(bounded * model.deviation - model.level)

    def features(self, landmarks: Any) -> tuple[Array, Array]:
        """Compute the features of landmarks, and what they miss of the variance."""
        key = ("features", id(landmarks))
        if key not in self._made:
            features = self.cross(landmarks) @ jnp.asarray(_inverse_of(landmarks)).T
            prior = landmarks.kernel.diagonal(landmarks.v, self.rows)
            missing = jnp.maximum(prior - jnp.sum(features**2, axis=1), LEAST_SHARE * prior)
            self._made[key] = ((features, missing), landmarks)
        return self._made[key][0]


def inverse_transform(transform: AbstractTransform, t: Array) -> Array:
    """Compute y from T(y)."""
    match transform:
        case Standardized(center, scale):
            return center + scale * t
        case Log(after):
            return jnp.exp(inverse_transform(after, t))
        case YeoJohnson(before, power, after):
            bent = inverse_transform(after, t)
            size = jnp.abs(bent)
            above, below = _unbent(size, power), -_unbent(size, 2 - power)
            return inverse_transform(before, jnp.where(bent >= 0, above, below))
    raise TypeError(f"transforms of type {type(transform).__name__} have no program.")


def _unbent(size: Array, power: float) -> Array:
    return jnp.expm1(jnp.log1p(power * size) / power) if power else jnp.expm1(size)


def _inverse_of(has_factor: Any) -> np.ndarray:
    """Invert a factor where the program is made, for it then has products of matrices only."""
    factor = has_factor.factor
    return half_solve(factor, np.eye(len(factor)))


def _moments(
    part: Part | DensityPart, given: Given, extent: tuple[float, float]
) -> tuple[Array, Array]:
    """Compute mean and variance of the target."""
    if isinstance(part, DensityPart):
        return moments_of_density(part, given)
    if part.process is None:
        location, variance = jnp.zeros((given.n,)), jnp.full((given.n,), part.noise)
    else:
        location, variance = given.moments(part.process)
        variance = variance + part.noise * given.noise(part.noise_model)
    return moments_of_target(part, location, variance, extent)


def moments_of_density(part: DensityPart, given: Given) -> tuple[Array, Array]:
    """Compute mean and variance of the target under a density of free shape."""
    cells, shapes = part.cells, part.shapes
    functions = given.features(part.landmarks)[0] @ part.weights
    p = jax.nn.softmax(functions @ shapes.directions + np.log(shapes.frequencies)[None], axis=1)
    mean = p @ cells.means
    apart = (cells.means[None] - mean[:, None]) ** 2 + cells.variances[None]
    return mean, jnp.sum(p * apart, axis=1)


def moments_of_target(
    part: Part, location: Array, variance: Array, extent: tuple[float, float]
) -> tuple[Array, Array]:
    """Compute mean and variance of the target, given those of the transformed one before tails."""
    scale, degrees = part.tails.factor * jnp.sqrt(variance), part.tails.degrees
    if isinstance(part.transform, Standardized):
        widening = degrees / (degrees - 2) if np.isfinite(degrees) else 1.0
        of_y = widening * (scale * part.transform.scale) ** 2
        return inverse_transform(part.transform, location), of_y
    nodes, weights = np.polynomial.legendre.leggauss(N_NODES_OF_MOMENTS)
    z = quantile(0.5 + nodes / 2, degrees)
    y = inverse_transform(part.transform, location[:, None] + scale[:, None] * z[None])
    y = clip_to(extent, y)
    mean = y @ (weights / 2)
    return mean, ((y - mean[:, None]) ** 2) @ (weights / 2)


def clip_to(extent: tuple[float, float], y: Array) -> Array:
    """Take what lies far beyond all training targets as lying less far."""
    margin = BEYOND * (extent[1] - extent[0])
    return jnp.clip(y, extent[0] - margin, extent[1] + margin)


def _probabilities(part: ClassPart, given: Given) -> Array:
    n_classes = len(part.frequencies)
    if part.functions is None:
        return jnp.broadcast_to(part.frequencies[None], (given.n, n_classes))
    functions: Any = part.functions
    found = [given.moments(process) for process in functions.processes]
    mean, variance = (jnp.stack(one, axis=1) for one in zip(*found, strict=True))
    mean = (mean + functions.offsets[None]) / part.temperature
    p = _softmax_of_gaussians(mean, jnp.sqrt(variance) / part.temperature)
    p = jnp.maximum(p, LEAST_PROBABILITY)
    return p / jnp.sum(p, axis=1, keepdims=True)


def _softmax_of_gaussians(mean: Array, deviation: Array) -> Array:
    n_classes = mean.shape[1]
    if n_classes == 2:
        nodes, weights = np.polynomial.hermite_e.hermegauss(N_NODES)
        spread = jnp.sqrt(jnp.sum(deviation**2, axis=1))
        z = (mean[:, 0] - mean[:, 1])[:, None] + spread[:, None] * nodes[None]
        first = jax.nn.sigmoid(z) @ (weights / np.sum(weights))
        return jnp.stack([first, 1 - first], axis=1)

    def add(total: Array, draw: Array) -> tuple[Array, None]:
        shift = draw[None] * deviation
        both = jax.nn.softmax(mean + shift, axis=1) + jax.nn.softmax(mean - shift, axis=1)
        return total + both, None

    draws = np.random.default_rng(0).normal(size=(N_DRAWS, n_classes))
    total, _ = jax.lax.scan(add, jnp.zeros_like(mean), jnp.asarray(draws))
    return total / (2 * N_DRAWS)
