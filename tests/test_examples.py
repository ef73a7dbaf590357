"""Every example runs, shortened where it trains for long."""

import runpy
from pathlib import Path

import jax
import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_the_example_runs(path, monkeypatch):
    plt = pytest.importorskip("matplotlib.pyplot")
    monkeypatch.setenv("BOCHNER_SHORT", "1")
    with jax.numpy_rank_promotion("allow"):  # as users have it
        runpy.run_path(str(path), run_name="__main__")
    plt.close("all")
