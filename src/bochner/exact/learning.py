"""Hyper-parameters of a Gaussian process by its marginal likelihood: many steps on few rows, few on all."""

import dataclasses

import numpy as np
import scipy.optimize
from jaxtyping import Float

from bochner.exact.kernels import AbstractKernel
from bochner.exact.marginal import Noise, negative_log_marginal
from bochner.exact.rows import Rows

_FAR = 12.0
_FAILED = 1e10


@dataclasses.dataclass(frozen=True)
class Effort:
    """How much is spent on learning hyper-parameters.

    Attributes:
        few: rows of the sample on which most steps are made.
        scales: factors of the lengthscales from which it starts, for the marginal likelihood has several modes.
        first: steps from each start, on few rows; then on all from the best and from the usual start.
        then: further steps from the best of them, on few rows.
        all: further steps on all rows.
    """

    few: int = 300
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
    variance: float = 0.5,
    effort: Effort | None = None,
    start: Float[np.ndarray, " parameters"] | None = None,
    seed: int = 0,
) -> Float[np.ndarray, " parameters"]:
    """Find the logarithms of noise and kernel parameters at the mode of their posterior, by L-BFGS.

    The prior of each logarithm is Gaussian around where the kernel starts it. Where a start is given, as found for
    like targets, there are only the steps on all rows.

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
    prior_of_noise, prior_of_kernel = noise.start(), kernel.start(rows.layout, variance)
    mode = np.concatenate([prior_of_noise.values, prior_of_kernel.values])
    deviations = np.concatenate([prior_of_noise.deviations, prior_of_kernel.deviations])
    is_lengthscale = np.concatenate([prior_of_noise.is_lengthscale, prior_of_kernel.is_lengthscale])

    def climb(v, index, n_steps: int):
        some, some_targets, some_noise = rows[index], targets[index], noise[index]

        def objective(v):
            try:
                value, slope = negative_log_marginal(kernel, v, some, some_targets, some_noise)
            except FloatingPointError:
                return _FAILED, np.zeros_like(v)
            z = (v - mode) / deviations
            value, slope = value + 0.5 * float(z @ z), slope + z / deviations
            if not (np.isfinite(value) and np.isfinite(slope).all()):
                return _FAILED, np.zeros_like(v)
            return value, slope

        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            found = scipy.optimize.minimize(
                objective,
                v,
                jac=True,
                method="L-BFGS-B",
                bounds=np.stack([mode - _FAR, mode + _FAR], axis=1),
                options={"maxiter": n_steps, "maxfun": n_steps + n_steps // 3 + 2},
            )
        return (found.x, float(found.fun)) if found.fun < _FAILED else (v, _FAILED)

    n = len(rows)
    everything = slice(None)
    if start is not None:
        return climb(start, everything, effort.all)[0]
    is_few = n > 4 / 3 * effort.few
    sample = everything
    if is_few:
        sample = np.sort(np.random.default_rng(seed).permutation(n)[: effort.few])
    starts = [mode + is_lengthscale * np.log(scale) for scale in effort.scales]
    found = [climb(v, sample, effort.first) for v in starts]
    v = min(found, key=lambda one: one[1])[0]
    v = climb(v, sample, effort.then)[0]
    if not is_few:
        return v
    # Few rows do not show short lengthscales, so the usual start is given a try on all rows too.
    found = [climb(start, everything, effort.first) for start in (v, mode)]
    return climb(min(found, key=lambda one: one[1])[0], everything, effort.all)[0]
