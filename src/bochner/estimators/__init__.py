"""scikit-learn estimators."""

from bochner.estimators.classifier import DeepGPClassifier
from bochner.estimators.files import load
from bochner.estimators.regressor import DeepGPRegressor
from bochner.estimators.together import fit_together

__all__ = ["DeepGPClassifier", "DeepGPRegressor", "fit_together", "load"]
