import re
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

import bochner
from bochner.cli import app
from bochner.cli.demo import step_function

PLOTS = {
    "digits-calibration.png",
    "digits-learning-curve.png",
    "step-posterior.png",
    "table-calibration.png",
    "table-effects.png",
    "table-shares.png",
}


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo") / "new" / "plots"
    return run("demo", "--max-steps", 20, "--output", folder, "--quiet"), folder


def test_the_demo_writes_its_plots_where_it_says(demo):
    result, folder = demo
    assert result.exit_code == 0, result.output
    assert {path.name for path in folder.iterdir()} == PLOTS
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in folder.iterdir())
    assert folder.name in result.output


def test_the_demo_prints_metrics_beside_baselines(demo):
    output = demo[0].output
    for heading in ("RMSE", "MNLL", "coverage of 90 % intervals", "error rate"):
        assert heading in output
    for model in ("linear regression", "logistic regression", "Gaussian process"):
        assert model in output
    rows = [line for line in output.splitlines() if "bochner" in line and "│" in line]
    assert len(rows) == 3
    assert all(len(re.findall(r"-?\d+\.\d+", row)) == 3 for row in rows)


def test_without_matplotlib_the_demo_says_what_to_install(monkeypatch, tmp_path):
    # The package's attribute `demo` is the command; its module is in sys.modules alone.
    monkeypatch.setattr(sys.modules["bochner.cli.demo"], "find_spec", lambda name: None)
    result = run("demo", "--output", tmp_path)
    assert result.exit_code == 1
    assert "pip install matplotlib" in " ".join(result.output.split())


def test_a_file_in_the_place_of_the_folder_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    result = run("demo", "--output", tmp_path / "file")
    assert result.exit_code == 1
    assert "must name a folder" in " ".join(result.output.split())


def test_the_number_of_steps_must_be_positive(tmp_path):
    result = run("demo", "--max-steps", 0, "--output", tmp_path)
    assert result.exit_code == 2
    assert "--max-steps" in result.output


def test_help_names_the_commands_and_their_options():
    assert "demo" in run("--help").output
    assert run().output.strip() == run("--help").output.strip()
    output = run("demo", "--help").output
    for option in ("--output", "--seed", "--max-steps", "--quiet"):
        assert option in output


def test_the_version_is_that_of_the_package():
    result = run("--version")
    assert result.exit_code == 0
    assert result.output.strip() == f"bochner {bochner.__version__}"


def test_the_step_function_steps_at_zero():
    X, y = step_function(400, seed=0)
    assert X.shape == (400, 1)
    np.testing.assert_allclose(y, X[:, 0] > 0, atol=0.1)
