"""Kinds of members beside `Deep`, as users name them; none of them has a matrix of weights to train."""

import dataclasses
from typing import Any

from sklearn.base import BaseEstimator

from bochner.fitting.names import naming_what_was_meant


@naming_what_was_meant
@dataclasses.dataclass(kw_only=True, repr=False, eq=False)
class Constant(BaseEstimator):
    """One law for all rows: a Gaussian or Student t, or how frequent classes are.

    Example:
        >>> from bochner import Constant, DeepGPRegressor
        >>> model = DeepGPRegressor(Constant()).fit([[1.0], [2.0], [3.0]], [0.0, 1.0, 2.0])
        >>> model.predict([[9.0]]).tolist()
        [1.0]
    """


@naming_what_was_meant
@dataclasses.dataclass(kw_only=True, repr=False, eq=False)
class Linear(BaseEstimator):
    """Bayesian linear regression, or the same on Dirichlet targets for classes.

    Example:
        >>> from bochner import DeepGPRegressor, Linear
        >>> model = DeepGPRegressor(Linear()).fit([[1.0], [2.0], [3.0], [4.0]], [0.0, 1.0, 2.0, 3.1])
        >>> bool(abs(model.predict([[5.0]])[0] - 4.1) < 0.3)
        True
    """


@naming_what_was_meant
@dataclasses.dataclass(kw_only=True, repr=False, eq=False)
class Exact(BaseEstimator):
    """Gaussian processes with exact inference, for up to some two thousand rows.

    Their covariance is the sum of a rough one that follows single columns (on ranks), a smooth one and a linear one.
    Transforms of the target and noise that varies with the row are tried, and weighed by left-out rows. For classes,
    the same on Dirichlet targets (Milios et al., 2018). Such a model holds the rows it was fitted to.

    Args:
        kernel: a covariance in place of theirs: one of `bochner.exact.kernels`, or its text, which names columns, such
            as `"rbf(lat, lon) + category(route) * laplace('dep time')"`.
        varying_noise: whether noise that varies with the row is tried.
        density: whether a density of free shape is tried.

    Example:
        >>> import numpy as np
        >>> from bochner import DeepGPRegressor, Exact
        >>> x = np.linspace(0, 6, 50)[:, None]
        >>> model = DeepGPRegressor(Exact(), random_state=0).fit(x, np.sin(x[:, 0]))
        >>> bool(abs(model.predict([[1.0]])[0] - np.sin(1.0)) < 0.02)
        True
        >>> repeating = Exact(kernel="periodic(0, period=6.2832)")
        >>> model = DeepGPRegressor(repeating, random_state=0).fit(x, np.sin(x[:, 0]))
        >>> bool(abs(model.predict([[20.0]])[0] - np.sin(20.0)) < 0.02)
        True
    """

    kernel: Any = None
    varying_noise: Any = True
    density: Any = True


@naming_what_was_meant
@dataclasses.dataclass(kw_only=True, repr=False, eq=False)
class Landmarks(BaseEstimator):
    """The processes of `Exact`, seen from some of the rows, for many rows.

    Parameters of the covariance are learned from a sample, as if it were all; then all rows are taken in through their
    covariance with landmark rows. What the landmarks miss of a row's variance stays in its prediction.

    Args:
        kernel: a covariance in place of theirs, as for `Exact`.
        n_landmarks: how many at most.
        n_learned_from: rows of the sample.
        varying_noise: whether noise that varies with the row is tried.
        density: whether a density of free shape is tried.

    Example:
        >>> import numpy as np
        >>> from bochner import DeepGPRegressor, Landmarks
        >>> x = np.linspace(0, 6, 500)[:, None]
        >>> model = DeepGPRegressor(Landmarks(n_landmarks=50, n_learned_from=200), random_state=0)
        >>> bool(abs(model.fit(x, np.sin(x[:, 0])).predict([[1.0]])[0] - np.sin(1.0)) < 0.02)
        True
    """

    kernel: Any = None
    n_landmarks: Any = 2000
    n_learned_from: Any = 1000
    varying_noise: Any = True
    density: Any = True
