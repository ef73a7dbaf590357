"""Model files: the bytes."""

import os
import re
import stat
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

import bochner
from bochner import saving
from bochner.saving import ModelFileError, read_arrays, write_arrays

ARRAYS = {"a": np.arange(3, dtype=np.float32), "b": np.full((2, 2), 1e300)}


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "model.bochner"
    write_arrays(path, ARRAYS, {"kind": "example", "values": [1, None, "ü"]})
    return path


def test_arrays_and_header_come_back_as_they_were(path):
    arrays, header = read_arrays(path)
    assert arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(arrays[name], array)
        assert arrays[name].dtype == array.dtype
    assert (header["kind"], header["values"]) == ("example", [1, None, "ü"])
    assert header["bochner_version"] == bochner.__version__


def test_strided_arrays_are_written_in_their_own_order(tmp_path):
    matrix = np.arange(6.0).reshape(2, 3)
    write_arrays(tmp_path / "m", {"t": matrix.T, "s": matrix[:, ::2]}, {})
    arrays, _ = read_arrays(tmp_path / "m")
    np.testing.assert_array_equal(arrays["t"], matrix.T)
    np.testing.assert_array_equal(arrays["s"], matrix[:, ::2])


def test_any_flipped_byte_is_noticed(path, tmp_path):
    content = path.read_bytes()
    damaged = tmp_path / "damaged"
    for position in range(len(content)):
        flipped = bytearray(content)
        flipped[position] ^= 0x01
        damaged.write_bytes(flipped)
        with pytest.raises(ModelFileError):
            read_arrays(damaged)


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.99])
def test_a_truncated_file_is_refused(path, share):
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(ModelFileError, match="not a model file, or it is damaged"):
        read_arrays(path)


def test_a_foreign_file_is_refused(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("not a model at all, but long enough to have a header\n" * 5)
    with pytest.raises(ModelFileError, match=r"notes\.txt is not a model file"):
        bochner.load(path)
    save_file(ARRAYS, tmp_path / "other.safetensors")
    with pytest.raises(ModelFileError, match="a safetensors file, but not one of bochner's"):
        bochner.load(tmp_path / "other.safetensors")


def test_a_file_of_ours_without_a_model_is_refused(path):
    with pytest.raises(ModelFileError, match="lacks part of a model"):
        bochner.load(path)


def test_a_file_of_a_newer_version_asks_for_an_upgrade(monkeypatch, tmp_path):
    with monkeypatch.context() as patch:
        patch.setattr(saving, "FORMAT_VERSION", 99)
        patch.setattr(saving, "__version__", "42.0")
        write_arrays(tmp_path / "new", ARRAYS, {})
    with pytest.raises(ModelFileError, match=r"written by bochner 42\.0.*format 99.*Upgrade"):
        read_arrays(tmp_path / "new")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no model file at .*nowhere"):
        bochner.load(tmp_path / "nowhere")


@pytest.mark.parametrize("where", ["os.fsync", "os.replace"])
def test_a_failure_while_writing_leaves_the_old_file_whole(monkeypatch, path, where):
    before = path.read_bytes()

    def fail(*arguments):
        raise OSError("disk full")

    monkeypatch.setattr(where, fail)
    with pytest.raises(OSError, match="disk full"):
        write_arrays(path, {"a": np.zeros(1000)}, {})
    assert path.read_bytes() == before
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_folders_are_made_and_others_may_read_as_the_mask_allows(tmp_path):
    path = tmp_path / "some" / "folder" / "model"
    mask = os.umask(0o022)
    try:
        write_arrays(path, ARRAYS, {})
    finally:
        os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o644


def test_nothing_in_the_library_uses_pickle():
    pattern = re.compile(r"^\s*(import|from)\s+(pickle|cloudpickle|dill|joblib|shelve)\b", re.M)
    for file in Path(bochner.__file__).parent.rglob("*.py"):
        source = file.read_text()
        assert not pattern.search(source), file
        assert "allow_pickle=True" not in source, file
