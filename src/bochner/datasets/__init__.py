"""Public data sets with checksums, folds and splits, read from the folder in `BOCHNER_DATA`, a cache, or fetched."""

from bochner.datasets.dataset import Dataset
from bochner.datasets.download import DownloadError
from bochner.datasets.files import DataNotFoundError
from bochner.datasets.registry import load, names

__all__ = ["DataNotFoundError", "Dataset", "DownloadError", "load", "names"]
