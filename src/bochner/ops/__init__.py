"""Fast primitives that the kernels, the layers and the bound are made of."""

from bochner.ops.clipping import with_clipped_gradient
from bochner.ops.fourier import fourier_features
from bochner.ops.fused_layer import (
    PRECISIONS,
    AbstractBackend,
    AutomaticLayer,
    PallasLayer,
    XlaLayer,
)
from bochner.ops.sample_mean import sample_mean
from bochner.ops.sincos import sincos

__all__ = [
    "PRECISIONS",
    "AbstractBackend",
    "AutomaticLayer",
    "PallasLayer",
    "XlaLayer",
    "fourier_features",
    "sample_mean",
    "sincos",
    "with_clipped_gradient",
]
