"""Fast primitives that the kernels and the bound are made of."""

from bochner.ops.fourier import fourier_features
from bochner.ops.sample_mean import sample_mean
from bochner.ops.sincos import sincos

__all__ = ["fourier_features", "sample_mean", "sincos"]
