"""Hyper-parameters of a Gaussian process by its marginal likelihood: many steps on few rows, few on all."""

import contextlib
import dataclasses

import numpy as np
import scipy.optimize
from jaxtyping import Float, Int

from bochner.exact.deadlines import NEVER, is_past
from bochner.exact.kernels import AbstractKernel
from bochner.exact.kernels.base import Start
from bochner.exact.marginal import Noise, negative_log_marginal
from bochner.exact.rows import Rows

USUAL_VARIANCE = 0.5
"""Of standardized targets, about what the function explains."""

_FAR = 12.0
_FAILED = 1e10


class _OutOfTimeError(Exception):
    """Ends a climb."""


@dataclasses.dataclass(frozen=True)
class Effort:
    """How much is spent on learning hyper-parameters.

    Attributes:
        few: rows of the sample on which most steps are made.
        some: rows of a larger sample, on which what was found is held against the usual start.
        scales: factors of the lengthscales from which it starts, for the marginal likelihood has several modes.
        first: steps from each start, on few rows; then on some from the best and from the usual start.
        then: further steps from the best of them, on few rows.
        all: further steps on some, and on all rows.
    """

    few: int = 300
    some: int = 600
    scales: tuple[float, ...] = (1.0, 0.3)
    first: int = 15
    then: int = 40
    all: int = 12


def learn(
    kernel: AbstractKernel,
    rows: Rows,
    targets: Float[np.ndarray, "n targets"],
    noise: Noise,
    *,
    variance: float = USUAL_VARIANCE,
    effort: Effort | None = None,
    start: Float[np.ndarray, " parameters"] | None = None,
    seed: int = 0,
    until: float = NEVER,
) -> Float[np.ndarray, " parameters"]:
    """Find the logarithms of noise and kernel parameters at the mode of their posterior, by L-BFGS.

    The prior of each logarithm is Gaussian around where the kernel starts it. Where a start is given, as found for
    like targets, there are only the steps on all rows. Once the deadline `until` is reached it stops at the best found.

    Example:
        >>> import numpy as np
        >>> from bochner.exact.columns import Columns
        >>> from bochner.exact.kernels import RBF
        >>> from bochner.exact.learning import learn
        >>> from bochner.exact.marginal import LearnedNoise
        >>> x = np.linspace(-3, 3, 50)
        >>> noisy = np.sin(3 * x) + 0.1 * np.random.default_rng(0).normal(size=50)
        >>> v = learn(RBF(), Columns.learn([x])([x]), noisy[:, None], LearnedNoise(np.ones(50)))
        >>> bool(0.05 < np.exp(v[0]) ** 0.5 < 0.2)
        True
    """
    effort = effort or Effort()
    prior = prior_of(kernel, rows, noise, variance)
    mode, deviations, is_lengthscale = prior.values, prior.deviations, prior.is_lengthscale

    def climb(v, index, n_steps: int):
        some, some_targets, some_noise = rows[index], targets[index], noise[index]
        best: tuple[np.ndarray, float] = (v, _FAILED)
        if is_past(until):
            return best

        def objective(v):
            nonlocal best
            if best[1] < _FAILED and is_past(until):
                raise _OutOfTimeError
            try:
                value, slope = negative_log_marginal(kernel, v, some, some_targets, some_noise)
            except FloatingPointError:
                return _FAILED, np.zeros_like(v)
            z = (v - mode) / deviations
            value, slope = value + 0.5 * float(z @ z), slope + z / deviations
            if not (np.isfinite(value) and np.isfinite(slope).all()):
                return _FAILED, np.zeros_like(v)
            if value < best[1]:
                best = (v.copy(), value)
            return value, slope

        with (
            np.errstate(over="ignore", under="ignore", invalid="ignore"),
            contextlib.suppress(_OutOfTimeError),
        ):
            scipy.optimize.minimize(
                objective,
                v,
                jac=True,
                method="L-BFGS-B",
                bounds=np.stack([mode - _FAR, mode + _FAR], axis=1),
                options={"maxiter": n_steps, "maxfun": n_steps + n_steps // 3 + 2},
            )
        return best

    def best_of(starts, index):
        return min((climb(v, index, effort.first) for v in starts), key=lambda one: one[1])[0]

    few, some, everyone = _samples(len(rows), effort, seed)
    if start is None:
        starts = [mode + is_lengthscale * np.log(scale) for scale in effort.scales]
        start = climb(best_of(starts, few), few, effort.then)[0]
        if few is everyone or not effort.all:
            return start
        # Few rows do not show short lengthscales, so the usual start is given another try.
        start = best_of([start, mode], some)
        if some is not everyone:
            start = climb(start, some, effort.all)[0]
    return climb(start, everyone, effort.all)[0]


def prior_of(
    kernel: AbstractKernel, rows: Rows, noise: Noise, variance: float = USUAL_VARIANCE
) -> Start:
    """Give the Gaussian prior of the logarithms of noise and kernel parameters, whose mode is where they start."""
    parts = (noise.start(), kernel.start(rows.layout, variance))
    names = [field.name for field in dataclasses.fields(Start)]
    return Start(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def _samples(n: int, effort: Effort, seed: int) -> list[slice | Int[np.ndarray, " some"]]:
    """Choose few rows, some, and all; where a sample would be nearly as large as the next, it is the next."""
    order = np.random.default_rng(seed).permutation(n)
    samples: list[slice | Int[np.ndarray, " some"]] = [slice(None)]
    larger = n
    for size in (effort.some, effort.few):
        is_less = larger > 4 / 3 * size
        samples.insert(0, np.sort(order[:size]) if is_less else samples[0])
        larger = size if is_less else larger
    return samples
