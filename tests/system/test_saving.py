"""Model files: the bytes."""

import errno
import hashlib
import json
import os
import re
import resource
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

import bochner
from bochner.system import saving
from bochner.system.saving import (
    ModelFileError,
    format_arrays,
    parse_arrays,
    read_arrays,
    write_arrays,
)

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
    with pytest.raises(ModelFileError, match=r"is damaged"):
        read_arrays(path)


def test_a_foreign_file_is_refused(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("not a model at all, but long enough to have a header\n" * 5)
    with pytest.raises(ModelFileError, match=r"notes\.txt is not a model file"):
        bochner.load(path)
    save_file(ARRAYS, tmp_path / "other.safetensors")
    with pytest.raises(ModelFileError, match="a safetensors file, but not one of bochner's"):
        bochner.load(tmp_path / "other.safetensors")


def test_an_array_of_a_type_that_we_do_not_write_is_refused(path):
    for damaged in (b'"dtype":"BF16"', b'"dtype":"BOOL"'):
        content = path.read_bytes().replace(b'"dtype":"F32"', damaged.ljust(13), 1)
        with pytest.raises(ModelFileError, match="is damaged"):
            parse_arrays(content, "x")


def test_a_file_of_ours_without_a_model_is_refused(path):
    with pytest.raises(ModelFileError, match="holds 'example' and not a model"):
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


def test_a_folder_and_a_device_are_no_model_files(tmp_path):
    with pytest.raises(ModelFileError, match="is a folder; give the name of a model file"):
        read_arrays(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ModelFileError, match="not a regular file"):
        read_arrays(tmp_path / "pipe")


def test_a_large_foreign_file_is_refused_without_reading_it(tmp_path):
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.write((2**40).to_bytes(8, "little"))
        file.truncate(2**41)  # sparse
    with pytest.raises(ModelFileError, match="heads of up to 32,000,000 bytes"):
        read_arrays(path)
    head = b'{"a": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}}'
    path.write_bytes(len(head).to_bytes(8, "little") + head)
    os.truncate(path, 2**41)
    with pytest.raises(ModelFileError, match="not one of bochner's"):
        read_arrays(path)


def test_a_truncated_file_says_how_much_of_it_there_is(path):
    size = path.stat().st_size
    os.truncate(path, size - 1)
    with pytest.raises(
        ModelFileError, match=rf"it has {size - 1:,} bytes, and its head says {size}"
    ):
        read_arrays(path)


def test_numbers_that_json_lacks_come_back(tmp_path):
    header = {"values": [float("inf"), -float("inf"), {"a": float("nan")}, 1e-320]}
    content = format_arrays({}, header)
    assert b"Infinity" not in content
    assert b"NaN" not in content
    high, low, inside, tiny = parse_arrays(content, "x")[1]["values"]
    assert (high, low, tiny) == (float("inf"), -float("inf"), 1e-320)
    assert inside["a"] != inside["a"]


def test_any_safetensors_reader_can_read_the_file(path):
    with safe_open(path, framework="numpy") as file:
        assert sorted(file.keys()) == ["a", "b"]
        np.testing.assert_array_equal(file.get_tensor("a"), ARRAYS["a"])
        assert json.loads(file.metadata()["bochner"])["kind"] == "example"


def test_the_same_contents_give_the_same_bytes():
    contents = [format_arrays(dict(sorted(ARRAYS.items(), reverse=r)), {"x": 1}) for r in (0, 1)]
    assert contents[0] == contents[1]


def test_the_digest_is_the_documented_one(path):
    with safe_open(path, framework="numpy") as file:
        metadata = file.metadata()
    whole = metadata["bochner"].encode()
    whole += b'\n["a", "<f4", [3]]\n' + ARRAYS["a"].tobytes()
    whole += b'\n["b", "<f8", [2, 2]]\n' + ARRAYS["b"].tobytes()
    assert metadata["digest"] == hashlib.sha256(whole).hexdigest()


def test_arrays_without_a_place_in_the_format_are_refused(tmp_path):
    with pytest.raises(TypeError, match="object cannot be stored; x is one"):
        write_arrays(tmp_path / "m", {"x": np.array([None])}, {})
    big = np.arange(3, dtype=">f4")
    write_arrays(tmp_path / "m", {"x": big}, {})
    np.testing.assert_array_equal(read_arrays(tmp_path / "m")[0]["x"], big)


@pytest.mark.parametrize("where", ["os.fsync", "os.replace"])
def test_a_failure_while_writing_leaves_the_old_file_whole(monkeypatch, path, where):
    before = path.read_bytes()

    def fail(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(where, fail)
    with pytest.raises(OSError, match=r"No space left on device.*unchanged") as caught:
        write_arrays(path, {"a": np.zeros(1000)}, {})
    assert caught.value.errno == errno.ENOSPC
    assert path.read_bytes() == before
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_a_file_that_the_system_cuts_short_leaves_the_old_one_whole(path):
    before = path.read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, limits[1]))
    try:
        with pytest.raises(OSError, match=r"File too large.*unchanged"):
            write_arrays(path, {"a": np.zeros(100_000)}, {})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == before
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_a_folder_cannot_be_written_over(tmp_path):
    with pytest.raises(IsADirectoryError, match=r"is a folder; give the name.*model\.bochner"):
        write_arrays(tmp_path, ARRAYS, {})


def test_a_place_that_cannot_be_written_is_named(monkeypatch, path):
    with pytest.raises(OSError, match=r"cannot write .*/inside"):
        write_arrays(path / "inside", ARRAYS, {})

    def refuse(*arguments, **options):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(PermissionError, match=r"cannot write .*Permission denied.*another place"):
        write_arrays(path, ARRAYS, {})
    with pytest.raises(ModelFileError, match=r"cannot be read .*Permission denied"):
        read_arrays(path)


def test_a_link_goes_on_pointing_to_the_file(path, tmp_path):
    link = tmp_path / "latest"
    link.symlink_to(path)
    write_arrays(link, {"a": np.zeros(1)}, {})
    assert link.is_symlink()
    assert list(read_arrays(path)[0]) == ["a"]


KILLED_WHILE_WRITING = """
import os, random, signal, sys, time
import numpy as np
from bochner.system.saving import read_arrays, write_arrays

path, n_kills, r = sys.argv[1], int(sys.argv[2]), random.Random(0)
write_arrays(path, {"a": np.zeros(10)}, {"number": 0})
for _ in range(n_kills):
    child = os.fork()
    if child == 0:
        number = 0
        while True:
            number += 1
            size = 10 if number % 2 else 300_000
            write_arrays(path, {"a": np.full(size, number)}, {"number": number})
    time.sleep(r.uniform(0.0, 0.1))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    arrays, header = read_arrays(path)
    assert np.all(arrays["a"] == header["number"])
print("whole each time")
"""


def test_a_process_killed_while_writing_leaves_a_whole_file(tmp_path):
    path = tmp_path / "model.bochner"
    command = [sys.executable, "-c", KILLED_WHILE_WRITING, str(path), "25"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.stdout == "whole each time\n", done.stderr
    partial = [entry for entry in tmp_path.iterdir() if entry != path]
    assert partial, "no process was killed in the middle of a file"
    assert all(entry.suffix == ".partial" for entry in partial)


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


def file_of(head, n_bytes=0):
    text = json.dumps(head, separators=(",", ":")).encode()
    return len(text).to_bytes(8, "little") + text + bytes(n_bytes)


METADATA = {"bochner": "{}", "digest": "0" * 64}


def entry(start, end, shape=None, dtype="U8"):
    return {"dtype": dtype, "shape": shape or [end - start], "data_offsets": [start, end]}


@pytest.mark.parametrize(
    "arrays",
    [
        {f"a{i}": entry(0, 4) for i in range(3)},
        {"a": entry(0, 4), "b": entry(5, 8)},
        {"a": entry(0, 2), "b": entry(2, 4, [3])},
        {"a": entry(0, 4, [2**70, 0])},
        {"a": entry(0, 4, [1] * 9)},
        {"a": entry(0, 4, [True, 4])},
        {"a": entry(0, 4, dtype="BF16")},
        {"a": entry(0, 4) | {"more": 1}},
        {"a": {}},
        {"a": []},
        {f"a{i}": entry(0, 0) for i in range(101)},
    ],
)
def test_odd_places_of_arrays_are_refused_before_any_is_read(arrays, monkeypatch):
    monkeypatch.setattr(saving, "_digest_of_file", None)
    monkeypatch.setattr(saving, "_MOST_ARRAYS", 100)
    with pytest.raises(ModelFileError, match=r"damaged|model file"):
        parse_arrays(
            file_of({"__metadata__": METADATA, **arrays}, 8 if len(arrays) == 2 else 4), "x"
        )


OPENING = """
import resource, sys, time
from bochner.system.saving import ModelFileError, read_arrays
def used():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
before, began = used(), time.process_time()
try:
    read_arrays(sys.argv[1])
except ModelFileError as error:
    print(error)
print(used() - before, time.process_time() - began)
"""


def measured(path):
    """What opening a file says, and how much memory and time of the processor it took."""
    words = [sys.executable, "-c", OPENING, str(path)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    message, numbers = done.stdout.strip().splitlines()
    return message, *map(float, numbers.split())


def test_a_head_as_large_as_may_be_takes_little_memory(tmp_path):
    head = b'{"a":[' + b"{}," * (saving.LONGEST_HEAD // 3 - 10) + b"{}]}"
    (tmp_path / "head").write_bytes(len(head).to_bytes(8, "little") + head)
    message, memory, seconds = measured(tmp_path / "head")
    assert "it is damaged" in message
    assert memory < 1_500_000_000
    assert seconds < 10
    size = saving.LONGEST_HEAD + 1
    (tmp_path / "longer").write_bytes(size.to_bytes(8, "little") + b" " * size)
    message, memory, seconds = measured(tmp_path / "longer")
    assert "heads of up to 32,000,000 bytes" in message
    assert memory < 10_000_000
    assert seconds < 1


def test_a_sparse_file_is_refused_in_little_memory(tmp_path):
    n = 100_000_000
    path = tmp_path / "sparse"
    path.write_bytes(file_of({"__metadata__": METADATA, "a": entry(0, n)}))
    os.truncate(path, path.stat().st_size + n)
    message, memory, _ = measured(path)
    assert "do not match their digest" in message
    assert memory < 30_000_000
    os.truncate(path, 2**33)
    message, memory, seconds = measured(path)
    assert "up to 4,294,967,296 bytes; it has 8,589,934,592" in message
    assert seconds < 1


def test_what_a_file_cannot_hold_is_not_written(tmp_path, monkeypatch):
    monkeypatch.setattr(saving, "LARGEST_FILE", 1000)
    with pytest.raises(ValueError, match=r"too large for a file: .*1,000 in all"):
        write_arrays(tmp_path / "x", {"a": np.zeros(1000)}, {})
    monkeypatch.setattr(saving, "LONGEST_HEAD", 100)
    with pytest.raises(ValueError, match="of which there may be 100"):
        write_arrays(tmp_path / "x", {}, {"long": "x" * 100})
