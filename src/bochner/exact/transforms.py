"""Transforms of the target to something more like a Gaussian, each with its slope and its inverse."""

import abc
import dataclasses

import numpy as np
import scipy.optimize
from jaxtyping import Float

_LONG_TAILED = 2.0


@dataclasses.dataclass(frozen=True)
class AbstractTransform(abc.ABC):
    """An increasing map T of the target to mean zero and deviation one on training rows."""

    @abc.abstractmethod
    def __call__(self, y: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
        """Compute T(y); minus infinity where y is below all values it is made for."""

    @abc.abstractmethod
    def inverse(self, t: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
        """Compute y from T(y)."""

    @abc.abstractmethod
    def log_slope(self, y: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
        """Compute log dT/dy."""


@dataclasses.dataclass(frozen=True)
class Standardized(AbstractTransform):
    """`T(y) = (y - center) / scale`.

    Example:
        >>> import numpy as np
        >>> from bochner.exact.transforms import Standardized
        >>> Standardized.learn(np.array([1.0, 3.0]))(np.array([5.0])).tolist()
        [3.0]
    """

    center: float
    scale: float

    @classmethod
    def learn(
        cls, y: Float[np.ndarray, " n"], weights: Float[np.ndarray, " n"] | None = None
    ) -> "Standardized":
        """Learn center and scale from training targets, of equal weights where None."""
        if not len(y):
            return cls(0.0, 1.0)
        center, scale = moments(y, weights)
        largest = float(np.max(np.abs(y)))
        if not scale > 1e-12 * largest:
            scale = 1e-6 * max(largest, 1e-6)
        return cls(center, scale)

    def __call__(self, y):  # noqa: D102
        return (y - self.center) / self.scale

    def inverse(self, t):  # noqa: D102
        return self.center + self.scale * t

    def log_slope(self, y):  # noqa: D102
        return np.full(np.shape(y), -np.log(self.scale))


@dataclasses.dataclass(frozen=True)
class Log(AbstractTransform):
    """`T(y) = (log y - center) / scale`, for positive targets.

    Example:
        >>> import numpy as np
        >>> from bochner.exact.transforms import Log
        >>> log = Log.learn(np.array([1.0, 100.0]))
        >>> log.inverse(np.array([0.0])).round(6).tolist()
        [10.0]
    """

    after: Standardized

    @classmethod
    def learn(
        cls, y: Float[np.ndarray, " n"], weights: Float[np.ndarray, " n"] | None = None
    ) -> "Log":
        """Learn center and scale of the logarithms."""
        return cls(Standardized.learn(np.log(y), weights))

    def __call__(self, y):  # noqa: D102
        with np.errstate(divide="ignore"):
            return self.after(np.log(np.maximum(y, 0)))

    def inverse(self, t):  # noqa: D102
        with np.errstate(over="ignore"):
            return np.exp(self.after.inverse(t))

    def log_slope(self, y):  # noqa: D102
        with np.errstate(divide="ignore"):
            return -np.log(np.maximum(y, 0)) - np.log(self.after.scale)


@dataclasses.dataclass(frozen=True)
class YeoJohnson(AbstractTransform):
    """Yeo and Johnson's power of standardized targets, standardized again.

    For z >= 0 it is `((z + 1)^p - 1) / p`, below `-((1 - z)^(2 - p) - 1) / (2 - p)`, with logarithms in the limits. The
    power has the largest likelihood on training targets, in [0, 2]: within, all real numbers are values of the map.

    Example:
        >>> import numpy as np
        >>> from bochner.exact.transforms import YeoJohnson
        >>> y = np.exp(np.linspace(-2, 2, 50))
        >>> power = YeoJohnson.learn(y)
        >>> power.power < 1, bool(np.allclose(power.inverse(power(y)), y))
        (True, True)
    """

    before: Standardized
    power: float
    after: Standardized

    @classmethod
    def learn(
        cls, y: Float[np.ndarray, " n"], weights: Float[np.ndarray, " n"] | None = None
    ) -> "YeoJohnson":
        """Learn the power, and center and scale on both sides of it."""
        before = Standardized.learn(y, weights)
        z = before(y)
        slope = moments(np.sign(z) * np.log1p(np.abs(z)), weights)[0]

        def loss(power: float) -> float:
            deviation = moments(_bend(z, power), weights)[1]
            return float(np.log(deviation + 1e-300) - (power - 1) * slope)

        power = float(scipy.optimize.fminbound(loss, 0, 2))  # pyright: ignore[reportArgumentType]
        return cls(before, power, Standardized.learn(_bend(z, power), weights))

    def __call__(self, y):  # noqa: D102
        return self.after(_bend(self.before(y), self.power))

    def inverse(self, t):  # noqa: D102
        return self.before.inverse(_unbend(self.after.inverse(t), self.power))

    def log_slope(self, y):  # noqa: D102
        z = self.before(y)
        bend = (self.power - 1) * np.sign(z) * np.log1p(np.abs(z))
        return bend + self.after.log_slope(z) + self.before.log_slope(y)


def moments(
    values: Float[np.ndarray, " n"], weights: Float[np.ndarray, " n"] | None = None
) -> tuple[float, float]:
    """Compute mean and deviation, of equal weights where None.

    Example:
        >>> import numpy as np
        >>> from bochner.exact.transforms import moments
        >>> moments(np.array([1.0, 5.0]), np.array([3.0, 1.0]))[0]
        2.0
    """
    if weights is None:
        return float(np.mean(values)), float(np.std(values))
    mean = float(np.average(values, weights=weights))
    return mean, float(np.average((values - mean) ** 2, weights=weights)) ** 0.5


def candidates(
    y: Float[np.ndarray, " n"], weights: Float[np.ndarray, " n"] | None = None
) -> dict[str, AbstractTransform]:
    """Give the transforms worth a try for these training targets, the identity first.

    The logarithm is one of them where all are positive and the largest is more than twice the median.

    Example:
        >>> import numpy as np
        >>> from bochner.exact.transforms import candidates
        >>> list(candidates(np.array([1.0, 2.0, 8.0]))), list(candidates(np.array([0.0, 1.0])))
        (['as it is', 'Yeo-Johnson', 'log'], ['as it is'])
    """
    found: dict[str, AbstractTransform] = {"as it is": Standardized.learn(y, weights)}
    if len(np.unique(y)) > 2:
        found["Yeo-Johnson"] = YeoJohnson.learn(y, weights)
        if np.min(y) > 0 and np.max(y) > _LONG_TAILED * np.median(y):
            found["log"] = Log.learn(y, weights)
    return found


def _bend(z, power: float):
    size = np.log1p(np.abs(z))
    p = np.where(z >= 0, power, 2 - power)
    return np.sign(z) * np.where(p == 0, size, np.expm1(p * size) / np.where(p == 0, 1, p))


def _unbend(t, power: float):
    size, p = np.abs(t), np.where(t >= 0, power, 2 - power)
    with np.errstate(over="ignore"):
        log1p = np.where(p == 0, size, np.log1p(p * size) / np.where(p == 0, 1, p))
        return np.sign(t) * np.expm1(log1p)
