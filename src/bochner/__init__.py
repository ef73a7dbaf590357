"""Deep Gaussian processes through random feature expansions."""

from bochner.threads import respect_thread_limits

respect_thread_limits()

from bochner.estimators import DeepGPClassifier, DeepGPRegressor, load  # noqa: E402
from bochner.version import __version__  # noqa: E402

__all__ = ["DeepGPClassifier", "DeepGPRegressor", "__version__", "load"]
