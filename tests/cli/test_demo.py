import json
import sys

import numpy as np
import pytest

import bochner
from bochner.cli.landscape import Landscape, interval_scores

PICTURES = {"maps.png", "calibration.png", "effects.png"}


@pytest.fixture(scope="module")
def demo(tmp_path_factory, call):
    folder = tmp_path_factory.mktemp("demo") / "new" / "pages"
    return json.loads(call("demo", "--output", folder, "--quiet", "--json").stdout), folder


def test_the_demo_writes_its_page_and_pictures_where_it_says(demo):
    found, folder = demo
    assert {path.name for path in folder.iterdir()} == {*PICTURES, found["page"]}
    assert all((folder / name).read_bytes().startswith(b"\x89PNG") for name in found["pictures"])
    page = (folder / found["page"]).read_text(encoding="utf-8")
    assert page.count("data:image/png;base64,") == len(PICTURES)
    assert "://" not in page
    assert f"{found['scores']['bochner']['rmse']:.1f}" in page


def test_the_demo_beats_its_baselines_with_honest_intervals(demo):
    own, *others = demo[0]["scores"].values()
    assert len(others) == 3
    for name in ("rmse", "interval_score_90"):
        assert own[name] < min(other[name] for other in others)
    assert (
        abs(own["coverage_90"] - 0.9) < 0.04
    )  # of one draw of 500 points; chance at the others is 0.013


def test_held_out_points_are_none_of_the_known_ones():
    land = Landscape.surveyed(seed=0)
    together = np.concatenate([land.X, land.X_test])
    assert len(np.unique(together, axis=0)) == len(together) == 2500
    north, east = (land.X[0][::-1] / [0.0927, 0.0743]).round().astype(int)
    assert land.heights[north, east] == land.y[0]


def test_the_interval_score_is_least_at_the_quantiles():
    y = np.random.default_rng(0).normal(size=20_000)
    scores = [interval_scores(y, 0 * y, -e + 0 * y, e + 0 * y) for e in (1.3, 1.645, 2.0)]
    assert np.argmin([found["interval_score_90"] for found in scores]) == 1
    assert scores[1]["coverage_90"] == pytest.approx(0.9, abs=0.01)


@pytest.mark.parametrize("package", ["matplotlib", "jinja2"])
def test_what_is_not_installed_is_named_with_its_remedy(call, monkeypatch, tmp_path, package):
    # The package's attribute `demo` is the command; its module is in sys.modules alone.
    demo = sys.modules["bochner.cli.demo"]
    monkeypatch.setattr(demo, "find_spec", lambda name: None if name == package else object())
    said = " ".join(call("demo", "--output", tmp_path, code=1).output.split())
    assert package in said
    assert "pip install bochner[plots]" in said


def test_a_file_in_the_place_of_the_folder_is_told(call, tmp_path):
    (tmp_path / "file").write_text("")
    said = call("demo", "--output", tmp_path / "file", code=1).output
    assert "must name a folder" in " ".join(said.split())


def test_help_names_the_commands_and_their_options(call):
    assert "demo" in call("--help").output
    output = call("demo", "--help").output
    for option in ("--output", "--seed", "--json", "--quiet"):
        assert option in output


def test_the_version_is_that_of_the_package(call):
    assert call("--version").output.strip() == f"bochner {bochner.__version__}"
