"""A table and a model that the command line made of it."""

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from bochner.cli import app

SMALL = [
    "--width", "2", "--n-random-features", "10", "--n-mc-predict", "20", "--n-layers", "2",
]  # fmt: skip


def make_frame(n=300, seed=0):
    generator = np.random.default_rng(seed)
    size = generator.normal(size=n)
    color = generator.choice(["red", "green"], size=n)
    price = 2 * size + 3.0 * (color == "red") + 0.1 * generator.normal(size=n)
    size[::19] = np.nan
    return pd.DataFrame(
        {"id": [f"n{i}" for i in range(n)], "size": size, "color": color, "price": price}
    )


@pytest.fixture(scope="session")
def call():
    """Run a command; its exit code must be the one expected."""

    def run(*words, code=0, typed=None):
        result = CliRunner().invoke(app, [str(word) for word in words], input=typed)
        if result.exit_code != code:
            raise AssertionError(
                f"exit code {result.exit_code}: {result.output}"
            ) from result.exception
        return result

    return run


@pytest.fixture(scope="session")
def files(tmp_path_factory, call):
    folder = tmp_path_factory.mktemp("cli")
    make_frame().to_csv(folder / "flats.csv", index=False)
    make_frame(seed=1).to_csv(folder / "new.csv", index=False)
    call(
        "fit", folder / "flats.csv", "--target", "price", "--model", folder / "prices.bochner",
        "--ignore", "id", "--max-steps", 400, "--quiet", *SMALL,
    )  # fmt: skip
    call(
        "fit", folder / "flats.csv", "--target", "color", "--model", folder / "colors.bochner",
        "--ignore", "id", "--max-steps", 200, "--quiet", *SMALL,
    )  # fmt: skip
    call(
        "fit", folder / "flats.csv", "--target", "price", "--model", folder / "stack.bochner",
        "--ignore", "id", "--quiet",
    )  # fmt: skip
    return folder


@pytest.fixture(scope="session")
def linear(tmp_path_factory, call):
    """The same with models that take no time: a table, one to predict, a model of numbers and one of classes."""
    folder = tmp_path_factory.mktemp("linear")
    make_frame(60).to_csv(folder / "flats.csv", index=False)
    make_frame(40, seed=1).to_csv(folder / "new.csv", index=False)
    for target, name in (("price", "prices"), ("color", "colors")):
        call(
            "fit", folder / "flats.csv", "--target", target, "--model", folder / f"{name}.bochner",
            "--ignore", "id", "--members", "linear", "--quiet",
        )  # fmt: skip
    return folder
