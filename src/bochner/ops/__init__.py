"""Fast primitives that the layers are made of."""

from bochner.ops.features import combine
from bochner.ops.sincos import sincos

__all__ = ["combine", "sincos"]
