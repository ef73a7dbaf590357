import pytest


def test_an_export_to_onnx_is_one_file(call, linear, tmp_path, monkeypatch):
    pytest.importorskip("onnx")
    monkeypatch.chdir(tmp_path)
    call("export", linear / "prices.bochner", "--format", "onnx", "--quiet")
    assert [path.name for path in tmp_path.iterdir()] == ["model.onnx"]
    (tmp_path / "model.onnx").write_text("mine")
    again = call("export", linear / "prices.bochner", "--format", "onnx", code=1)
    assert "model.onnx exists" in " ".join(again.output.split())


def test_a_format_that_is_none_is_refused(call, linear):
    found = call("export", linear / "prices.bochner", "--format", "onxx", code=1).output
    assert "`format` must be one of 'stablehlo', 'onnx'" in " ".join(found.split())
