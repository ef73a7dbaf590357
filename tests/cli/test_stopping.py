"""Ctrl-C is no error; what the system refuses names the file and the remedy."""

import contextlib
import errno
import importlib
import json
import os
from pathlib import Path

import pytest

from bochner.cli.output import Output
from bochner.training import TrainingStoppedError


def raising(error):
    def raises(*_, **__):
        raise error

    return raises


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (KeyboardInterrupt(), 130, "Stopped."),
        (TrainingStoppedError("Go on with --resume.", 2), 130, "Stopped. Go on with --resume."),
        (TrainingStoppedError("Go on with --resume.", 15), 143, "Stopped. Go on with --resume."),
    ],
)
def test_a_stopped_command_says_stopped_and_not_error(
    call, linear, monkeypatch, error, code, words
):
    module = importlib.import_module("bochner.cli.evaluate")
    monkeypatch.setattr(module, "load_model", raising(error))
    result = call("evaluate", linear / "prices.bochner", linear / "new.csv", code=code)
    assert result.stderr.strip() == words
    told = call("evaluate", linear / "prices.bochner", linear / "new.csv", "--json", code=code)
    assert json.loads(told.stdout)["error"]


@pytest.mark.parametrize(
    ("number", "remedy"),
    [
        (errno.ENOSPC, "Make room there"),
        (errno.EROFS, "Choose a place"),
        (errno.ENOENT, "Check the"),
    ],
)
def test_errors_of_the_system_name_the_path_and_the_remedy(
    call, linear, monkeypatch, number, remedy
):
    module = importlib.import_module("bochner.cli.evaluate")
    error = OSError(number, os.strerror(number), "/a/folder")
    monkeypatch.setattr(module, "load_model", raising(error))
    told = call("evaluate", linear / "prices.bochner", linear / "new.csv", code=1).stderr
    assert f"Error: /a/folder: {os.strerror(number)}. {remedy}" in " ".join(told.split())


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
def test_a_full_standard_output_is_named(monkeypatch):
    full = open("/dev/full", "w")  # noqa: SIM115  closing it fails, too
    monkeypatch.setattr("sys.stdout", full)
    with pytest.raises(OSError, match="cannot write to standard output") as caught:
        Output("--output", "-", {}).write(b"1,2\n")
    assert "name a file in another place by --output" in str(caught.value)
    monkeypatch.undo()
    with contextlib.suppress(OSError):
        full.close()


def test_an_export_to_a_folder_is_refused(call, linear, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    message = call("export", linear / "prices.bochner", "-o", ".", code=1).output
    assert "--output must name a file; . is a folder." in " ".join(message.split())
