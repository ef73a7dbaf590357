"""Public data sets with checksums, folds and splits, read from the folder in `BOCHNER_DATA`."""

from bochner.datasets.files import DataNotFoundError
from bochner.datasets.registry import Dataset, load, names

__all__ = ["DataNotFoundError", "Dataset", "load", "names"]
