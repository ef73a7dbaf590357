"""The parts of the page about other tools run as they stand, where their libraries are installed."""

import re
import runpy
from pathlib import Path

import jax
import pytest

PAGE = Path(__file__).parents[3] / "docs/integrations.md"
NEEDS = {
    "scikit-learn": ["sklearn"],
    "Ray Data, Dask, Spark": ["pyarrow"],
    "ONNX": ["onnx", "onnxruntime"],
    "skpro": ["skpro"],
    "BoTorch": ["torch", "botorch"],
}
HEAVY = {"BoTorch"}


def parts():
    found = []
    for part in PAGE.read_text(encoding="utf-8").split("\n## ")[1:]:
        name, _, text = part.partition("\n")
        marks = [pytest.mark.slow] if name in HEAVY else []
        found.append(pytest.param(name, text, id=name, marks=marks))
    return found


@pytest.mark.parametrize(("name", "text"), parts())
def test_a_part_runs(name, text, tmp_path, monkeypatch):
    for library in NEEDS[name]:
        pytest.importorskip(library)
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert blocks
    script = tmp_path / "part.py"
    script.write_text("\n".join(blocks), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    with jax.numpy_rank_promotion("allow"):  # as users have it
        runpy.run_path(str(script), run_name="__main__")
