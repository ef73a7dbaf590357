"""A layer of random features, `F -> Phi(F) W`, computed so that Phi stays on chip where that is faster."""

from bochner.ops.fused_layer.activations import Activation, CosineSine, ReluPower, Sine
from bochner.ops.fused_layer.layer import AbstractPath, PallasLayer, XlaLayer
from bochner.ops.fused_layer.precision import Precision

__all__ = [
    "AbstractPath",
    "Activation",
    "CosineSine",
    "PallasLayer",
    "Precision",
    "ReluPower",
    "Sine",
    "XlaLayer",
]
