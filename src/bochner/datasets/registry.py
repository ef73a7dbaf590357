"""The data sets by name."""

import difflib

from bochner.datasets import airline
from bochner.datasets.dataset import Dataset
from bochner.datasets.digits import load_mnist
from bochner.datasets.infinite_digits import load_mnist8m
from bochner.datasets.simulated import FUNCTIONS, load_function
from bochner.datasets.uci import N_CLASSES, TARGETS, load_table

_AIRLINES = {
    "airline": airline.load_both,
    "airline_2001": airline.load_2001,
    "airline_2008": airline.load_2008,
    "airline_cities": airline.load_cities,
    "airline_nyc2013": airline.load_new_york,
}
_IMAGES = {"mnist": load_mnist, "mnist8m": load_mnist8m}


def names() -> list[str]:
    """List the names that `load` knows.

    Example:
        >>> from bochner import datasets
        >>> "powerplant" in datasets.names()
        True
    """
    return sorted([*TARGETS, *N_CLASSES, *_AIRLINES, *_IMAGES, *FUNCTIONS])


def load(name: str, *, download: bool = False) -> Dataset:
    """Load a data set from the folder in `BOCHNER_DATA`, else from the cache.

    Args:
        name: one of `names()`.
        download: fetch what is in neither place from its public source, over HTTPS, into the cache.

    Example:
        >>> from bochner import datasets
        >>> datasets.load("power-plant")
        Traceback (most recent call last):
        ValueError: there is no data set 'power-plant'. Did you mean 'powerplant'? `bochner.datasets.names()`, or ...
        >>> datasets.load("step").X.shape
        (50, 1)
    """
    if name in _IMAGES:
        return _IMAGES[name](download=download)
    if name in _AIRLINES:
        return _AIRLINES[name]()
    if name in FUNCTIONS:
        return load_function(name)
    if name in names():
        return load_table(name)
    nearest = difflib.get_close_matches(str(name).lower(), names(), n=1)
    hint = f" Did you mean {nearest[0]!r}?" if nearest else ""
    raise ValueError(
        f"there is no data set {name!r}.{hint} `bochner.datasets.names()`, or `bochner datasets list`, lists all."
    )
