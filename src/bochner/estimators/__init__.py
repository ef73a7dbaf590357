"""scikit-learn estimators."""

from bochner.estimators.classifier import DeepGPClassifier
from bochner.estimators.files import load
from bochner.estimators.regressor import DeepGPRegressor

__all__ = ["DeepGPClassifier", "DeepGPRegressor", "load"]
