"""`--kernel` where models in the space of rows are asked for: a sum of kernels that names columns."""

import numpy as np
import pytest

from bochner import load
from bochner.cli.settings import Settings
from tests.cli.conftest import make_frame

KERNEL = "category(color) + linear(size) + constant"


@pytest.fixture
def fit(call, tmp_path):
    make_frame(100).to_csv(tmp_path / "flats.csv", index=False)

    def run(*words, code=0):
        out = tmp_path / "model.bochner"
        return call(
            "fit", tmp_path / "flats.csv", "--target", "price", "--model", out, "--ignore", "id",
            "--likelihood", "gaussian", "--quiet", *words, code=code,
        ), out  # fmt: skip

    return run


def test_flag_and_file_ask_for_the_same_kernel(fit, tmp_path):
    config = tmp_path / "settings.toml"
    config.write_text(f'members = "exact"\nkernel = "{KERNEL}"\n')
    predicted = []
    for words in (["--members", "exact", "--kernel", KERNEL], ["--config", config]):
        _, out = fit(*words)
        model = load(out)
        assert model.members.kernel == KERNEL
        assert all(one.name.startswith("sum") for one in model.fitted_.standings)
        predicted.append(model.predict(make_frame(20, seed=1)))
    np.testing.assert_array_equal(*predicted)


def test_errors_point_at_the_place(fit):
    printed, _ = fit("--members", "exact", "--kernel", "rbf(size) + lin", code=1)
    assert "there is no kernel 'lin'. Did you mean 'linear'?" in printed.stderr
    assert "rbf(size) + lin\n" in printed.stderr
    assert "\n" + " " * (4 + len("rbf(size) + ")) + "^" in printed.stderr
    printed, _ = fit("--members", "exact", "--kernel", "rbf(sise)", code=1)
    assert "Did you mean 'size'? The columns are 'size', 'color'." in printed.stderr


@pytest.mark.parametrize(
    ("members", "kernel", "expected"),
    [
        ("exact", "rbf(0, 1)", {"exact": "rbf(0, 1)"}),
        ("linear,landmarks", "rbf(a,  b)", {"landmarks": "rbf(a,  b)"}),
        ("exact,deep", "rbf,arccos1", {"exact": None, "deep": ("rbf", "arccos1")}),
        (None, "matern32", {"deep": "matern32"}),
    ],
)
def test_it_is_of_the_deep_model_where_there_is_one(members, kernel, expected):
    values = {"seed": 0, "kernel": kernel}
    made = Settings(values if members is None else {**values, "members": members})
    found = made.estimator("regression").members
    named = found if isinstance(found, list) else [(type(found).__name__.lower(), found)]
    assert {name: one.kernel for name, one in named if hasattr(one, "kernel")} == expected


def test_members_without_kernels_take_none():
    with pytest.raises(ValueError, match="settings of the deep model"):
        Settings({"seed": 0, "members": "linear", "kernel": "rbf"}).estimator("regression")
