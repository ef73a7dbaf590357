"""Scaling of inputs and targets: learned in float64, applied before the cast to float32."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from bochner.rows.effects import Effects, with_effects

_MAD_TO_DEVIATION = 1.4826
_KNEE = 5.0
_LONG_TAIL = 10.0
_MARGIN = 2.0
FEWEST_PIXELS = 64
"""Columns that an image has at least."""

_ONE_SCALE = 0.9
# The deviation, beside the largest value, of numbers that differ in their last digits alone.
_ROUNDING = 64 * float(np.finfo(np.float64).eps)
BY_COLUMN = ("robust", "compressed", "standard")
"""Preprocessings that give each column its own scale, unless it varies by rounding alone."""


@dataclasses.dataclass(frozen=True)
class InputScaling:
    """A map of each column: center, scale, compress, clip.

    With `z = (x - center) / scale`, values beyond the knee become `knee + log(1 + |z| - knee)` with the sign of z:
    heavy tails keep their order, and wild values come near. Values beyond the limit then are clipped to it. Before all
    that, numbers of a category's values become their effects.

    Example:
        >>> import numpy as np
        >>> from bochner.rows.scaling import InputScaling
        >>> one = np.ones(1)
        >>> scaling = InputScaling(center=one, scale=2 * one, knee=5 * one, limit=10 * one)
        >>> scaling(np.array([[3.0], [1e6]])).tolist()
        [[1.0], [10.0]]
    """

    center: Float[np.ndarray, " d_in"]
    scale: Float[np.ndarray, " d_in"]
    knee: Float[np.ndarray, " d_in"]
    limit: Float[np.ndarray, " d_in"]
    effects: Effects = dataclasses.field(default_factory=dict)

    def __call__(self, X: Any) -> Any:
        """Scale the rows of X; JAX arrays stay JAX arrays, so that the map can be differentiated."""
        module = jnp if isinstance(X, jax.Array) else np
        return module.clip(self._compressed(X, module), -self.limit[None, :], self.limit[None, :])

    def n_clipped(self, X: Float[np.ndarray, "n d_in"]) -> int:
        """Count the rows of which some value is clipped."""
        beyond = np.abs(self._compressed(X, np)) > self.limit[None, :]
        return int(np.sum(np.any(beyond, axis=1)))

    def _compressed(self, X: Any, module: Any) -> Any:
        X = with_effects(X, self.effects, module)
        scaled = (X - self.center[None, :]) / self.scale[None, :]
        beyond = module.maximum(module.abs(scaled) - self.knee[None, :], 0.0)
        # The clipped part carries the gradient at the center, where the sign is zero.
        inner = module.clip(scaled, -self.knee[None, :], self.knee[None, :])
        return inner + module.sign(scaled) * module.log1p(beyond)


def robust(X: Float[np.ndarray, "n d_in"]) -> InputScaling:
    """Center by the median, scale by the median absolute deviation, compress beyond five deviations.

    Columns whose median deviation is zero (mostly one value) are scaled by the standard deviation, of the central
    98 % of values where that is not zero; so are those whose median deviation is rounding beside these values. A few
    wild values move nothing. Later values are clipped where they lie far outside both five deviations and all values
    seen here: by two deviations, or a factor of seven in the tails.

    Example:
        >>> import numpy as np
        >>> from bochner.rows.scaling import robust
        >>> x = np.append(np.linspace(-1, 1, 999), 1e5)[:, None]
        >>> bool(abs(robust(x).center[0]) < 0.01), bool(robust(x).scale[0] < 1)
        (True, True)
    """
    return _with_limit(X, *_medians(X), np.full(X.shape[1], _KNEE))


def compressed(X: Float[np.ndarray, "n d_in"]) -> InputScaling:
    """As `robust`, with logarithms from the center on in columns with long tails, as counts and frequencies have.

    A tail is long where some value lies beyond ten deviations. Elsewhere logarithms would only blur what is far from
    the center, such as times of day.

    Example:
        >>> import numpy as np
        >>> from bochner.rows.scaling import compressed
        >>> long, short = np.append(np.linspace(-1, 1, 999), 1e5), np.linspace(-1, 1, 1000)
        >>> compressed(np.stack([long, short], axis=1)).knee.tolist()
        [0.0, 5.0]
    """
    center, scale = _medians(X)
    tails = np.max(np.abs((X - center) / scale), axis=0)
    return _with_limit(X, center, scale, np.where(tails > _LONG_TAIL, 0.0, _KNEE))


def _with_limit(
    X: Float[np.ndarray, "n d_in"], center: np.ndarray, scale: np.ndarray, knee: np.ndarray
) -> InputScaling:
    open_ended = InputScaling(center, scale, knee, np.full(X.shape[1], np.inf))
    five_deviations = knee + np.log1p(_KNEE - knee)
    limit = np.maximum(five_deviations, np.max(np.abs(open_ended(X)), axis=0)) + _MARGIN
    return dataclasses.replace(open_ended, limit=limit)


def _medians(X: Float[np.ndarray, "n d_in"]) -> tuple[np.ndarray, np.ndarray]:
    Z, exponent = _in_units_of_largest(X)
    center = np.median(Z, axis=0)
    scale = _MAD_TO_DEVIATION * np.median(np.abs(Z - center), axis=0)
    least = _ROUNDING * _central_size(Z)
    for deviation in (_central_deviation(Z), np.std(Z, axis=0)):
        scale = np.where(scale > least, scale, deviation)
    return np.ldexp(center, exponent), _usable(scale, Z, exponent)


def standard(X: Float[np.ndarray, "n d_in"]) -> InputScaling:
    """Center by the mean, scale by the sample standard deviation; a constant column is only centered.

    Example:
        >>> import numpy as np
        >>> from bochner.rows.scaling import standard
        >>> standard(np.array([[1.0], [3.0]])).center.tolist()
        [2.0]
    """
    Z, exponent = _in_units_of_largest(X)
    scale = np.std(Z, axis=0, ddof=min(1, len(X) - 1))
    return _affine(np.ldexp(np.mean(Z, axis=0), exponent), _usable(scale, Z, exponent))


def rounding_alone(X: Float[np.ndarray, "n d_in"]) -> Bool[np.ndarray, " d_in"]:
    """Tell which columns vary, yet only in the last digits of their largest value: they are treated as constant.

    Example:
        >>> import numpy as np
        >>> from bochner.rows.scaling import rounding_alone
        >>> small, noise = np.array([1e-15, 3e-15]), 1e9 + np.array([0.0, 1e-6])
        >>> rounding_alone(np.stack([small, noise, [7.0, 7.0]], axis=1)).tolist()
        [False, True, False]
    """
    Z, _ = _in_units_of_largest(X)
    return _is_rounding(Z) & (np.ptp(X, axis=0) > 0)


def unit(X: Float[np.ndarray, "n d_in"]) -> InputScaling:
    """Divide everything by the largest absolute value, as one does with the pixels of an image.

    Example:
        >>> import numpy as np
        >>> from bochner.rows.scaling import unit
        >>> unit(np.array([[0.0, 255.0]])).scale.tolist()
        [255.0, 255.0]
    """
    largest = np.max(np.abs(X), initial=0.0) or 1.0
    return _affine(np.zeros(X.shape[1]), np.full(X.shape[1], largest))


def like_pixels(X: Float[np.ndarray, "n d_in"]) -> bool:
    """Tell whether the columns are many and share one scale that starts at zero, as the pixels of an image do.

    Each column on a scale of its own would then blow up pixels that are nearly always dark.

    Example:
        >>> import numpy as np
        >>> from bochner.rows.scaling import like_pixels
        >>> images = np.tile([0.0, 255.0], (64, 1)).T
        >>> like_pixels(images), like_pixels(images * np.arange(1, 65))
        (True, False)
    """
    if X.shape[1] < FEWEST_PIXELS or np.min(X) < 0:
        return False
    largest = np.max(X, axis=0)
    return bool(np.median(largest) >= _ONE_SCALE * np.max(largest) > 0)


def none(X: Float[np.ndarray, "n d_in"]) -> InputScaling:
    """Leave the inputs as they are.

    Example:
        >>> import numpy as np
        >>> from bochner.rows.scaling import none
        >>> none(np.ones((2, 1)))(np.ones((2, 1))).tolist()
        [[1.0], [1.0]]
    """
    return _affine(np.zeros(X.shape[1]), np.ones(X.shape[1]))


PREPROCESSINGS: dict[str, Callable[[np.ndarray], InputScaling]] = {
    "robust": robust,
    "compressed": compressed,
    "standard": standard,
    "unit": unit,
    "none": none,
}
"""Ways to learn an `InputScaling`, by the name used in configurations."""


@dataclasses.dataclass(frozen=True)
class TargetScaling:
    """An affine map of each target, and its inverse.

    Example:
        >>> import numpy as np
        >>> from bochner.rows.scaling import TargetScaling
        >>> scaling = TargetScaling.standard(np.array([[1.0], [3.0]]))
        >>> float(scaling.log_jacobian) == float(np.log(scaling.scale[0]))
        True
    """

    center: Float[np.ndarray, " targets"]
    scale: Float[np.ndarray, " targets"]

    @classmethod
    def standard(cls, Y: Float[np.ndarray, "n targets"]) -> "TargetScaling":
        """Learn mean and sample standard deviation; a constant target is only centered."""
        scaling = standard(Y)
        # In units of a large value, noise that is learned from rounding would be large.
        return cls(scaling.center, np.where(rounding_alone(Y), 1.0, scaling.scale))

    @classmethod
    def none(cls, n_targets: int) -> "TargetScaling":
        """Leave the targets as they are."""
        return cls(np.zeros(n_targets), np.ones(n_targets))

    @property
    def log_jacobian(self) -> float:
        """What a row's log density loses when it is stated in the targets' own units."""
        return float(np.sum(np.log(self.scale)))

    def __call__(self, Y: Any) -> Any:
        """Scale targets."""
        return (Y - self.center[None, :]) / self.scale[None, :]

    def inverse(self, Y: Any) -> Any:
        """Give targets in their own units."""
        return Y * self.scale[None, :] + self.center[None, :]


def _affine(center: np.ndarray, scale: np.ndarray) -> InputScaling:
    endless = np.full(len(center), np.inf)
    return InputScaling(center, scale, knee=endless, limit=endless)


def _in_units_of_largest(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Divide each column by a power of two near its largest value, which is exact; so squares stay in range."""
    _, exponent = np.frexp(np.max(np.abs(X), axis=0))
    return np.ldexp(X, -exponent), exponent


def _is_rounding(Z: np.ndarray) -> np.ndarray:
    return np.std(Z, axis=0) <= _ROUNDING * np.max(np.abs(Z), axis=0)


def _usable(scale: np.ndarray, Z: np.ndarray, exponent: np.ndarray) -> np.ndarray:
    """Give scales in the columns' own units: one where nothing varies, and where rounding does, what hides it."""
    own = np.maximum(np.ldexp(scale, exponent), np.finfo(scale.dtype).tiny)
    largest = np.ldexp(np.ones_like(scale), exponent)
    hiding = np.where(np.ptp(Z, axis=0) > 0, np.maximum(largest, 1.0), 1.0)
    return np.where(_is_rounding(Z), hiding, own)


def _central_size(Z: np.ndarray) -> np.ndarray:
    """Find the largest of the central 98 % of values, without even one that is wild."""
    low = np.quantile(Z, 0.01, axis=0, method="higher")
    high = np.quantile(Z, 0.99, axis=0, method="lower")
    return np.maximum(np.abs(low), np.abs(high))


def _central_deviation(X: np.ndarray) -> np.ndarray:
    low, high = np.quantile(X, [0.01, 0.99], axis=0)
    return np.std(np.clip(X, low, high), axis=0)
