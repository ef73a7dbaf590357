"""Covariances of rows that users choose: `RBF("lat", "lon") + Laplace() + Category("route") * Laplace("time")`.

Each is one file with its formula for NumPy and JAX, its gradient by hand and its random features, and has a line in
`KERNELS`, by which texts and files name it.
"""

from bochner.exact.kernels.base import AbstractKernel
from bochner.exact.kernels.category import Category
from bochner.exact.kernels.combined import Product, Sum
from bochner.exact.kernels.inputs import Inputs
from bochner.exact.kernels.laplace import Laplace
from bochner.exact.kernels.linear import Constant, Linear
from bochner.exact.kernels.periodic import Periodic
from bochner.exact.kernels.rbf import RBF
from bochner.exact.kernels.texts import kernel_from

KERNELS: dict[str, type[AbstractKernel]] = {
    "rbf": RBF,
    "laplace": Laplace,
    "linear": Linear,
    "constant": Constant,
    "category": Category,
    "periodic": Periodic,
}
"""By the names that texts and files use, which are those of the classes in small letters."""


def parse(text: str) -> AbstractKernel:
    """Make the kernel that a text describes: sums and products of named kernels, each with the columns it sees.

    A name of a column that is no plain word is quoted; a number is a place, counted from zero. Without columns a
    kernel sees all.

    Example:
        >>> from bochner.exact import kernels
        >>> kernel = kernels.RBF("lat", "lon") + kernels.Periodic("the day", period=7)
        >>> str(kernel), kernels.parse("rbf(lat, lon) + periodic('the day', period=7)") == kernel
        ("rbf(lat, lon) + periodic('the day', period=7.0)", True)
        >>> kernels.parse("rbf(lat, lon) + (laplace + 'a')")
        Traceback (most recent call last):
        ValueError: cannot read the kernel: expected one of rbf, laplace, linear, constant, category, periodic.
            rbf(lat, lon) + (laplace + 'a')
                                       ^
    """
    return kernel_from(text, KERNELS)


__all__ = [
    "KERNELS",
    "RBF",
    "AbstractKernel",
    "Category",
    "Constant",
    "Inputs",
    "Laplace",
    "Linear",
    "Periodic",
    "Product",
    "Sum",
    "parse",
]
