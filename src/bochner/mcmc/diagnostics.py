"""Whether chains agree, and how many independent draws they are worth."""

import blackjax.diagnostics
import jax
import numpy as np
from jaxtyping import Float

Draws = Float[np.ndarray, "chains samples ..."]
"""Draws of several chains, whatever their shape."""


def split_rhat(draws: Draws) -> Float[np.ndarray, "..."]:
    """Compute split R-hat: the spread of all half chains over that within them, 1 where chains agree.

    Returns:
        In the shape of one draw, without the axes of chains and samples.

    Example:
        >>> import numpy as np
        >>> from bochner.mcmc import split_rhat
        >>> draws = np.random.default_rng(0).normal(size=(4, 1000))
        >>> bool(split_rhat(draws) < 1.01), bool(split_rhat(draws + np.arange(4)[:, None]) > 1.5)
        (True, True)
    """
    return _of_halves(blackjax.diagnostics.potential_scale_reduction, draws)


def effective_sample_size(draws: Draws) -> Float[np.ndarray, "..."]:
    """Compute how many independent draws give a mean of the same precision, all chains together.

    Returns:
        In the shape of one draw, without the axes of chains and samples.

    Example:
        >>> import numpy as np
        >>> from bochner.mcmc import effective_sample_size
        >>> draws = np.random.default_rng(0).normal(size=(4, 1000))
        >>> bool(3000 < effective_sample_size(draws) < 5000)
        True
    """
    return _of_halves(blackjax.diagnostics.effective_sample_size, draws)


def _of_halves(statistic, draws: Draws) -> np.ndarray:
    """Apply a statistic to chains cut in two, so that a chain that drifts disagrees with itself."""
    draws = np.asarray(draws, np.float64)
    half = draws.shape[1] // 2
    if half < 2:
        raise ValueError(f"diagnostics need at least 4 samples a chain; got {draws.shape[1]}.")
    halves = np.concatenate([draws[:, :half], draws[:, -half:]])
    flat = halves.reshape(*halves.shape[:2], -1)
    if flat.shape[2] == 0:
        return np.empty(draws.shape[2:])
    with jax.enable_x64(True), jax.numpy_rank_promotion("allow"):
        return np.asarray(jax.jit(statistic)(flat)).reshape(draws.shape[2:])
