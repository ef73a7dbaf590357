"""Covariance functions, one file each, and their names in configurations."""

from collections.abc import Callable
from functools import partial

from bochner.kernels.arccosine import ArcCosine
from bochner.kernels.base import AbstractKernel
from bochner.kernels.matern import Matern
from bochner.kernels.rbf import RBF

KERNELS: dict[str, Callable[..., AbstractKernel]] = {
    "rbf": RBF,
    "arccos0": partial(ArcCosine, degree=0),
    "arccos1": partial(ArcCosine, degree=1),
    "arccos2": partial(ArcCosine, degree=2),
    "matern12": partial(Matern, smoothness=0.5),
    "matern32": partial(Matern, smoothness=1.5),
    "matern52": partial(Matern, smoothness=2.5),
}
"""Constructors by the name used in configurations; each takes `log_variance` and `log_lengthscale`."""

__all__ = ["KERNELS", "RBF", "AbstractKernel", "ArcCosine", "Matern"]
