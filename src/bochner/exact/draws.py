"""Functions drawn from models in the space of rows, in JAX: by Matheron's rule, with random features for the prior.

A draw from the posterior is a draw from the prior, corrected by what the data say of it (Wilson et al., 2020):
`f(x) = g(x) + k(x, X) (K + D)^-1 (t - g(X) - e)` for a prior draw g and noise e of variance D. So the correction is
exact, and only g is made of features.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
from jaxtyping import Array

from bochner.exact.classes import ClassPart
from bochner.exact.densities import DensityPart
from bochner.exact.encode_program import encoded, encoder
from bochner.exact.landmarks import LandmarkProcess
from bochner.exact.linear_algebra import half_solve, solve
from bochner.exact.matrix import MatrixColumns
from bochner.exact.parts import Part
from bochner.exact.program import Given, moments_of_density, moments_of_target
from bochner.exact.rows import Rows

_N_FEATURES = 2048
_BLOCK = 4096

Function = Callable[[Any], Any]
Draws = tuple[Callable[[np.random.Generator], Any], Callable[[Given, Any], Array]]
"""What draws the arrays of a function, and the program that takes them."""


def draw_functions(
    part: Part | DensityPart | ClassPart,
    columns: MatrixColumns,
    extent: tuple[float, float],
    n: int,
    rng: np.random.Generator,
) -> list[Function]:
    """Draw functions of a matrix: the mean of the target given the function, or the probability of each class.

    Arrays of NumPy are evaluated in double precision. Those of JAX can be traced and differentiated; they are computed
    in double precision and returned in their own.

    Args:
        part: the model.
        columns: the encoding of the matrix.
        extent: least and largest training target.
        n: how many.
        rng: what draws.

    Example:
        >>> import numpy as np
        >>> from bochner.exact import Regression
        >>> from bochner.exact.draws import draw_functions
        >>> from bochner.exact.matrix import MatrixColumns
        >>> X = np.linspace(0, 6, 40)[:, None]
        >>> columns = MatrixColumns.learn(X, [(0,)])
        >>> model = Regression.fit(columns(X), np.sin(X[:, 0]))
        >>> (f,) = draw_functions(model.parts[-1], columns, model.extent, 1, np.random.default_rng(0))
        >>> np.abs(f(X) - np.sin(X[:, 0])).max() < 0.1
        np.True_
    """
    if isinstance(part, ClassPart):
        draw, program = _classes(part)
    elif isinstance(part, DensityPart):  # functions are taken as most probable
        draw, program = _nothing, lambda given, _: moments_of_density(part, given)[0]
    else:
        draw, program = _target(part, extent)
    encode = encoder(columns)

    def of_matrix(drawn: Any, X: Array) -> Array:
        return program(Given(encode(X)), drawn)

    # What is drawn is an argument, so that all functions share what is compiled for one.
    compiled = jax.jit(of_matrix)
    # A row's values depend on that row alone, so derivatives of sums over rows are those of each row.
    slopes = jax.jit(lambda drawn, X: jax.jacrev(lambda X: jnp.sum(of_matrix(drawn, X), axis=0))(X))
    return [_of_rows(compiled, slopes, draw(rng)) for _ in range(n)]


def _nothing(rng: np.random.Generator) -> None:
    return None


def _target(part: Part, extent: tuple[float, float]) -> Draws:
    if part.process is None:
        return _nothing, lambda given, _: moments_of_target(
            part, jnp.zeros((given.n,)), jnp.full((given.n,), part.noise), extent
        )[0]
    # Tails widen the law as a whole, and so the function too.
    degrees = part.tails.degrees
    widening = degrees / (degrees - 2) if np.isfinite(degrees) else 1.0
    draw, function = _function(
        part.process, part.tails.factor * widening**0.5, _Prior(part.process)
    )

    def mean(given: Given, drawn: Any) -> Array:
        noise = part.noise * given.noise(part.noise_model)
        return moments_of_target(part, function(given, drawn), noise, extent)[0]

    return draw, mean


def _classes(part: ClassPart) -> Draws:
    if part.functions is None:
        return _nothing, lambda given, _: jnp.broadcast_to(
            part.frequencies[None], (given.n, len(part.frequencies))
        )
    model: Any = part.functions
    prior = _Prior(model.processes[0])
    draws = [_function(process, 1.0, prior)[0] for process in model.processes]
    _, function = _function(model.processes[0], 1.0, prior)

    def draw(rng: np.random.Generator) -> Any:
        return jax.tree.map(lambda *own: np.stack(own), *[draw(rng) for draw in draws])

    def probabilities(given: Given, drawn: Any) -> Array:
        given.cross(prior.known)  # the same for all classes, and so made before the loop
        f = jax.lax.map(lambda own: function(given, own), drawn).T
        return jax.nn.softmax((f + model.offsets[None]) / part.temperature, axis=1)

    return draw, probabilities


class _Prior:
    """Functions of the prior of a process, at any rows and at those it knows."""

    def __init__(self, process: Any) -> None:
        self.known = process.landmarks if isinstance(process, LandmarkProcess) else process
        kernel, v, rows = self.known.kernel, self.known.v, self.known.rows
        self.features = kernel.features(v, rows.layout, _N_FEATURES)
        self._at_known = jax.jit(lambda own, weights: self(encoded(rows), own, weights))

    def draw(self, rng: np.random.Generator, spread: float) -> tuple[Any, np.ndarray]:
        """Draw the features and their weights."""
        own = self.features.draw(rng)
        return own, spread * rng.normal(size=_N_FEATURES) / _N_FEATURES**0.5

    def __call__(self, A: Rows, own: Any, weights: Any) -> Array:
        return self.features.at(A, own) @ weights

    def at_known(self, own: Any, weights: np.ndarray) -> np.ndarray:
        """Compute a drawn function at the rows of the process, or at its landmarks."""
        with jax.enable_x64(True):
            return np.asarray(self._at_known(own, weights))


def _function(process: Any, spread: float, prior: _Prior) -> Draws:
    """Draw functions whose deviations from the mean are so many times as large."""
    known = prior.known

    def draw(rng: np.random.Generator) -> Any:
        own, weights = prior.draw(rng, spread)
        g = prior.at_known(own, weights)
        if isinstance(process, LandmarkProcess):
            drawn = spread * _half(process.factor, rng.normal(size=len(process.weights)))
            of_features = process.weights + drawn - half_solve(known.factor, g)
            return own, weights, _half(known.factor, of_features)
        noise = spread * np.sqrt(process.noise) * rng.normal(size=len(process.noise))
        return own, weights, process.weights - solve(process.factor, g + noise)

    def function(given: Given, drawn: Any) -> Array:
        own, weights, of_rows = drawn
        return prior(given.rows, own, weights) + given.cross(known) @ of_rows

    return draw, function


def _half(factor: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Solve `L' x = b`, whose covariance is `(L L')^-1` where that of b is the identity."""
    return scipy.linalg.solve_triangular(factor, b, lower=True, trans=1, check_finite=False)


def _of_rows(
    compiled: Callable[[Any, Any], Array], slopes: Callable[[Any, Any], Array], drawn: Any
) -> Function:
    """Let a function of rows in double precision take any rows; derivatives are in double precision too."""

    @jax.custom_jvp
    def traced(X: Array) -> Array:
        with jax.enable_x64(True):
            return compiled(drawn, X).astype(X.dtype)

    @traced.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        (X,), (dX,) = primals, tangents
        with jax.enable_x64(True):
            J = jnp.moveaxis(slopes(drawn, X), -2, 0).astype(X.dtype)
        return traced(X), jnp.einsum("n...d,nd->n...", J, dX)

    def call(X: Any) -> Any:
        if isinstance(X, jax.Array):
            return traced(X if jnp.issubdtype(X.dtype, jnp.floating) else X.astype(float))
        X = np.asarray(X, np.float64)
        starts = range(0, max(len(X), 1), _BLOCK)
        with jax.enable_x64(True):
            return np.concatenate([compiled(drawn, X[start : start + _BLOCK]) for start in starts])

    return call
