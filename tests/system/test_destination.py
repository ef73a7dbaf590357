import errno
import os
import stat

import pytest

from bochner.system.destination import Destination


def names(folder):
    return sorted(entry.name for entry in folder.iterdir())


def no_room(*arguments):
    raise OSError(errno.ENOSPC, "No space left on device")


def test_the_file_appears_whole_at_the_end(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("old")
    with Destination(path).open() as file:
        file.write(b"new")
        file.flush()
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert names(tmp_path) == ["notes.txt"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit, OSError])
def test_an_error_of_the_block_stays_what_it_is_and_leaves_nothing(tmp_path, error):
    path = tmp_path / "notes.txt"
    path.write_text("old")

    def write():
        with Destination(path).open() as file:
            file.write(b"new")
            raise error("of the block")

    with pytest.raises(error, match=r"^of the block$"):
        write()
    assert path.read_text() == "old"
    assert names(tmp_path) == ["notes.txt"]


@pytest.mark.parametrize("where", ["os.fsync", "os.replace"])
def test_an_error_at_the_end_names_the_file(monkeypatch, tmp_path, where):
    monkeypatch.setattr(where, no_room)
    with (
        pytest.raises(OSError, match=r"cannot write .*notes\.txt .*No space left"),
        Destination(tmp_path / "notes.txt").open() as file,
    ):
        file.write(b"new")
    assert names(tmp_path) == []


def test_a_check_changes_nothing(tmp_path):
    path = tmp_path / "notes.txt"
    Destination(path).check()
    assert names(tmp_path) == []
    path.write_text("old")
    Destination(path).check()
    assert path.read_text() == "old"
    assert names(tmp_path) == ["notes.txt"]


def test_a_check_notices_a_full_disk_and_removes_what_it_wrote(monkeypatch, tmp_path):
    monkeypatch.setattr("os.fsync", no_room)
    with pytest.raises(OSError, match="No space left"):
        Destination(tmp_path / "notes.txt").check()
    assert names(tmp_path) == []


def test_a_check_notices_a_missing_folder_and_a_name_that_is_too_long(tmp_path):
    with pytest.raises(FileNotFoundError):
        Destination(tmp_path / "folder" / "notes.txt").check()
    with pytest.raises(OSError, match="too long"):
        Destination(tmp_path / ("x" * 300)).check()


def test_a_protected_file_is_not_replaced(monkeypatch, tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("old")
    path.chmod(0o444)
    # The superuser may write everything, so the system's answer is given here.
    monkeypatch.setattr("os.access", lambda place, mode: bool(os.stat(place).st_mode & 0o200))
    with pytest.raises(PermissionError, match="write-protected"):
        Destination(path).check()
    with pytest.raises(OSError, match="write-protected"), Destination(path).open():
        pass
    assert path.read_text() == "old"


def test_permissions_stay(tmp_path):
    path = tmp_path / "secret.txt"
    path.write_text("old")
    path.chmod(0o600)
    with Destination(path).open() as file:
        file.write(b"new")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_pipe_is_written_and_not_replaced(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        place = Destination(path)
        place.check()
        assert place.is_special
        with place.open() as file:
            file.write(b"through")
        assert os.read(reader, 100) == b"through"
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(path.stat().st_mode)
    assert names(tmp_path) == ["pipe"]
