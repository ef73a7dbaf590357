"""Covariances of encoded rows: rough, smooth, linear, constant; their sums and products."""

from bochner.exact.kernels.base import AbstractKernel
from bochner.exact.kernels.combined import Product, Sum
from bochner.exact.kernels.laplace import Laplace
from bochner.exact.kernels.linear import Constant, Linear
from bochner.exact.kernels.rbf import RBF

__all__ = ["RBF", "AbstractKernel", "Constant", "Laplace", "Linear", "Product", "Sum"]
