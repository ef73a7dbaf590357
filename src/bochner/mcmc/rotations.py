"""Hamiltonian Monte Carlo for posteriors near N(0, I): what the Gaussian does is a rotation, and exact.

Weights with the prior N(0, I), and parameters in units of their posterior at the mode, have a density
`N(z | 0, I) exp(l(z))`. Between kicks by the gradient of l, position and momentum rotate in their plane (Beskos et al.,
2011), so that the error of a step comes from l alone: thousands of weights of which the data say little cost no
smaller steps.
"""

import dataclasses
import time
from collections.abc import Callable
from typing import Protocol

import numpy as np
from jaxtyping import Float

from bochner.mcmc.diagnostics import effective_sample_size, split_rhat

_ACCEPTED, _LARGEST_STEP, _PATH = 0.8, 1.5, 1.0
_FIRST_ROUND = 100
_MOST_KEPT = 200
_MOST_STEPS = 32
_DIVERGED = 1000.0
_SAME = 1e-6

Positions = Float[np.ndarray, "chains d"]
Told = Callable[[float, str], None]
"""Told the share of the work that is done, and what is being done."""


class AbstractTarget(Protocol):
    """A density `N(z | 0, I) exp(l(z))`, and what is watched of each draw."""

    def __call__(self, Z: Positions) -> tuple[Float[np.ndarray, " chains"], Positions]:
        """Compute l and its gradient at the position of each chain."""
        ...

    def watched(self, Z: Positions) -> Float[np.ndarray, "chains watched"]:
        """Compute the quantities by which convergence is judged."""
        ...


@dataclasses.dataclass(frozen=True)
class Chains:
    """Draws of several chains of each of several posteriors.

    Attributes:
        positions: a part of the draws, evenly spaced.
        worst_rhat: largest split R-hat of what was watched, within each posterior.
        smallest_ess: smallest effective sample size of it.
        n_divergent: draws whose trajectory left the region where its steps make sense.
        n_samples: draws of each chain.
    """

    positions: Float[np.ndarray, "posteriors chains kept d"]
    worst_rhat: float
    smallest_ess: float
    n_divergent: int
    n_samples: int


@dataclasses.dataclass(frozen=True)
class Effort:
    """How long chains go on.

    Attributes:
        n_chains: of each posterior.
        n_warmup: steps of each chain in which its step size is learned, of which none is kept.
        until: when to stop, on the clock of `time.monotonic`.
        rhat: largest R-hat with which they may stop before that.
        ess: smallest effective sample size with which they may.
    """

    n_chains: int = 2
    n_warmup: int = 200
    until: float = np.inf
    rhat: float = 1.02
    ess: float = 300.0


def sample(
    target: AbstractTarget, starts: Positions, effort: Effort, *, seed: int, told: Told
) -> Chains:
    """Run chains until they agree or time is up; those of the same posterior follow each other.

    Example:
        >>> import numpy as np
        >>> from bochner.mcmc.rotations import Effort, sample
        >>> class Shifted:  # N(z | 0, 1) exp(2 z) is N(2, 1), but for a constant
        ...     def __call__(self, Z):
        ...         return 2 * Z[:, 0], np.full_like(Z, 2.0)
        ...     def watched(self, Z):
        ...         return Z
        >>> chains = sample(Shifted(), np.zeros((2, 1)), Effort(), seed=0, told=lambda share, text: None)
        >>> bool(abs(chains.positions.mean() - 2) < 0.2), bool(chains.worst_rhat < 1.02)
        (True, True)
    """
    walk = _Walk(target, starts, np.random.default_rng(seed))
    begun, watched, kept, stride = time.monotonic(), [], [], 1
    worst, least, check_at = np.inf, 0.0, _FIRST_ROUND
    for number in range(1, effort.n_warmup + 1):
        walk.step(learning_rate=number**-0.5)
        told(*_progress(begun, effort, f"warm-up, step {number:,} of {effort.n_warmup:,}"))
        if time.monotonic() > effort.until:
            break
    walk.n_divergent = 0
    while True:
        walk.step()
        watched.append(target.watched(walk.Z))
        if len(watched) % stride == 0:
            kept.append(walk.Z.astype(np.float32))
        if len(kept) == _MOST_KEPT:
            kept, stride = kept[1::2], 2 * stride
        is_late = time.monotonic() > effort.until
        if len(watched) >= 4 and (is_late or len(watched) == check_at):
            check_at *= 2
            worst, least = _agreement(np.stack(watched, axis=1), effort.n_chains)
            if is_late or (worst < effort.rhat and least > effort.ess):
                break
        text = f"{len(watched):,} draws of each chain"
        if np.isfinite(worst):
            text += f", R-hat up to {worst:.3f}, effective size {least:.0f}"
        told(*_progress(begun, effort, text))
    positions = np.stack(kept or [walk.Z], axis=1)
    return Chains(
        positions.reshape(-1, effort.n_chains, *positions.shape[1:]),
        worst,
        least,
        walk.n_divergent,
        len(watched),
    )


def _progress(begun: float, effort: Effort, text: str) -> tuple[float, str]:
    now = time.monotonic()
    return min((now - begun) / max(effort.until - begun, 1e-9), 1.0), text


def _agreement(
    watched: Float[np.ndarray, "all samples watched"], n_chains: int
) -> tuple[float, float]:
    """Compute the worst R-hat and the least effective sample size within each posterior."""
    most = float(n_chains * watched.shape[1])
    rhats, sizes = [1.0], [most]
    for own in watched.reshape(-1, n_chains, *watched.shape[1:]):
        # What is the same in all draws, as where nothing is left to sample, agrees.
        varies = np.ptp(own, axis=(0, 1)) > _SAME * np.max(np.abs(own), axis=(0, 1))
        if varies.any():
            rhats.append(float(np.max(split_rhat(own[..., varies]))))
            sizes.append(float(np.min(effective_sample_size(own[..., varies]))))
    return max(rhats), min(sizes)


class _Walk:
    """The state of all chains."""

    def __init__(self, target: AbstractTarget, Z: Positions, rng: np.random.Generator):
        self.target, self.rng, self.Z = target, rng, np.array(Z)
        self.value, self.gradient = target(self.Z)
        self.log_step = np.full(len(Z), np.log(0.1))
        self.n_divergent = 0

    def step(self, learning_rate: float = 0.0) -> None:
        """Propose the end of a trajectory, and take it or stay."""
        size = np.exp(self.log_step)[:, None]
        # Of random length, so that no trajectory comes back to where it began again and again.
        length = _PATH * self.rng.uniform(0.5, 1.5)
        n_steps = min(int(np.ceil(length / size.max())), _MOST_STEPS)
        momentum = self.rng.standard_normal(self.Z.shape)
        cosine, sine = np.cos(size), np.sin(size)
        Z, p, value, gradient = self.Z, momentum, self.value, self.gradient
        for _ in range(n_steps):
            p = p + 0.5 * size * gradient
            Z, p = cosine * Z + sine * p, cosine * p - sine * Z
            value, gradient = self.target(Z)
            p = p + 0.5 * size * gradient
        gain = _energy(value, Z, p) - _energy(self.value, self.Z, momentum)
        gain = np.where(np.isfinite(gain), gain, -np.inf)
        taken = np.log(self.rng.uniform(size=len(gain))) < gain
        self.n_divergent += int(np.sum(gain < -_DIVERGED))
        self.Z = np.where(taken[:, None], Z, self.Z)
        self.gradient = np.where(taken[:, None], gradient, self.gradient)
        self.value = np.where(taken, value, self.value)
        self.log_step += learning_rate * (np.exp(np.minimum(gain, 0.0)) - _ACCEPTED)
        self.log_step = np.minimum(self.log_step, np.log(_LARGEST_STEP))


def _energy(value, Z, momentum) -> Float[np.ndarray, " chains"]:
    return value - 0.5 * np.sum(Z**2, axis=1) - 0.5 * np.sum(momentum**2, axis=1)
