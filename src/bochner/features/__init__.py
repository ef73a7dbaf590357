"""Feature maps of layers, and the names they have in configurations."""

from bochner.features.maps import AbstractFeatureMap
from bochner.features.random_features import RandomFeatures
from bochner.kernels import KERNELS

__all__ = ["FEATURE_MAPS", "AbstractFeatureMap", "RandomFeatures"]

FEATURE_MAPS: dict[str, type[AbstractFeatureMap]] = {
    **dict.fromkeys(KERNELS, RandomFeatures),
}
"""Classes by the name used in configurations, where a kernel's name stands for its random features."""
