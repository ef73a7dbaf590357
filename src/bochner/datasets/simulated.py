"""Functions of one input with known truth: the two-layer toy of the paper's supplement, and a step."""

import math
from collections.abc import Callable

import numpy as np

from bochner.datasets.dataset import Dataset

N_POINTS = 50
_NOISE_VARIANCE = 0.01
_SEED = 0


def composed(x: np.ndarray) -> np.ndarray:
    """Compute `h(h(x))` with `h(x) = 2 x exp(-x^2)` (section B of the supplement).

    Example:
        >>> import numpy as np
        >>> from bochner.datasets.simulated import composed
        >>> composed(np.array([0.0, 1.0])).round(4).tolist()
        [0.0, 0.8564]
    """
    for _ in range(2):
        x = 2 * x * np.exp(-(x**2))
    return x


def step(x: np.ndarray) -> np.ndarray:
    """Compute 1 above zero and 0 elsewhere.

    Example:
        >>> import numpy as np
        >>> from bochner.datasets.simulated import step
        >>> step(np.array([-1.0, 1.0])).tolist()
        [0.0, 1.0]
    """
    return np.where(x > 0, 1.0, 0.0)


FUNCTIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {"composed": composed, "step": step}
"""Functions by the name of their data set."""


def load_function(name: str) -> Dataset:
    """Draw 50 inputs between -2 and 2, and their values with a little noise."""
    generator = np.random.default_rng(_SEED)
    x = generator.uniform(-2, 2, size=N_POINTS)
    noise = math.sqrt(_NOISE_VARIANCE) * generator.normal(size=N_POINTS)
    return Dataset(
        name=name,
        X=x[:, None],
        y=FUNCTIONS[name](x) + noise,
        feature_names=("x",),
        target_name="y",
    )
