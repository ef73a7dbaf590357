"""Deep Gaussian processes through random feature expansions."""

from bochner.system.threads import respect_thread_limits

respect_thread_limits()

from bochner.estimators import (  # noqa: E402
    DeepGPClassifier,
    DeepGPRegressor,
    fit_together,
    load,
)
from bochner.version import __version__  # noqa: E402

__all__ = ["DeepGPClassifier", "DeepGPRegressor", "__version__", "fit_together", "load"]
