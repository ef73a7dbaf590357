"""Deep Gaussian processes through random feature expansions."""

import importlib
from typing import TYPE_CHECKING, Any

from bochner.system.threads import respect_thread_limits
from bochner.version import __version__

if TYPE_CHECKING:
    from bochner.estimators import DeepGPClassifier, DeepGPRegressor, fit_together, load
    from bochner.fitting.kinds import Constant, Exact, Landmarks, Linear
    from bochner.fitting.settings import Deep
    from bochner.system.saving import ModelFileError
    from bochner.tables.casting import TableError
    from bochner.tables.source import open_table
    from bochner.training.checkpoints import CheckpointError

# Imported when asked for, since JAX and scikit-learn take a second, which `bochner --help` need not wait for.
_PLACES = {
    "CheckpointError": "bochner.training.checkpoints",
    "Constant": "bochner.fitting.kinds",
    "Deep": "bochner.fitting.settings",
    "DeepGPClassifier": "bochner.estimators",
    "DeepGPRegressor": "bochner.estimators",
    "Exact": "bochner.fitting.kinds",
    "Landmarks": "bochner.fitting.kinds",
    "Linear": "bochner.fitting.kinds",
    "ModelFileError": "bochner.system.saving",
    "TableError": "bochner.tables.casting",
    "fit_together": "bochner.estimators",
    "load": "bochner.estimators",
    "open_table": "bochner.tables.source",
}

respect_thread_limits()


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(importlib.import_module(_PLACES[name]), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_PLACES})


__all__ = [
    "CheckpointError",
    "Constant",
    "Deep",
    "DeepGPClassifier",
    "DeepGPRegressor",
    "Exact",
    "Landmarks",
    "Linear",
    "ModelFileError",
    "TableError",
    "__version__",
    "fit_together",
    "load",
    "open_table",
]
