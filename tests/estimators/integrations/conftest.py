"""A table and models of it, which tests only ask something."""

import numpy as np
import pyarrow as pa
import pytest

from bochner import DeepGPClassifier, DeepGPRegressor, Linear


@pytest.fixture(scope="package")
def flats():
    """An Arrow table with a key, a number, a text and two targets."""
    rng = np.random.default_rng(0)
    n = 60
    size, place = rng.uniform(20, 120, n), rng.choice(["north", "south"], n)
    price = 3 * size + 40 * (place == "north") + rng.normal(0, 10, n)
    return pa.table(
        {
            "key": np.arange(n),
            "size": size,
            "place": place,
            "price": price,
            "dear": np.where(price > np.median(price), "yes", "no"),
        }
    )


@pytest.fixture(scope="package")
def files(flats, tmp_path_factory):
    """Model files: `price.bochner` and `dear.bochner`."""
    folder = tmp_path_factory.mktemp("models")
    price = DeepGPRegressor(Linear(), random_state=0).fit(flats, "price", ignore=["key", "dear"])
    price.save(folder / "price.bochner")
    dear = DeepGPClassifier(Linear(), random_state=0).fit(flats, "dear", ignore=["key", "price"])
    dear.save(folder / "dear.bochner")
    return folder
