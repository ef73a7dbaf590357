"""A layer of random features, `F -> Phi(F) W`, computed so that Phi stays on chip where that is faster."""

from bochner.ops.fused_layer.activations import Activation, CosineSine, ReluPower, Sine
from bochner.ops.fused_layer.layer import (
    AbstractBackend,
    AutomaticLayer,
    PallasLayer,
    XlaLayer,
    project,
)
from bochner.ops.fused_layer.precision import PRECISIONS, Precision

__all__ = [
    "PRECISIONS",
    "AbstractBackend",
    "Activation",
    "AutomaticLayer",
    "CosineSine",
    "PallasLayer",
    "Precision",
    "ReluPower",
    "Sine",
    "XlaLayer",
    "project",
]
