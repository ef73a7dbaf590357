"""Ctrl-C is no error; what the system refuses names the file and the remedy."""

import contextlib
import errno
import importlib
import json
import os
import signal
import subprocess
import sys
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


_INTERRUPTED_IMPORT = """
import os, signal, sys

class Interrupting:
    def find_spec(self, name, *_):
        if name == {module!r}:
            os.kill(os.getpid(), {number})

sys.meta_path.insert(0, Interrupting())
sys.argv = ["bochner", "info", "m.bochner"]
from bochner.__main__ import main
main()
"""


@pytest.mark.parametrize(
    ("module", "number"), [("typer", signal.SIGINT), ("jaxlib", signal.SIGTERM)]
)
def test_a_signal_during_the_start_ends_the_process_and_nothing_else(module, number):
    code = _INTERRUPTED_IMPORT.format(module=module, number=int(number))
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (ended.returncode, ended.stdout, ended.stderr) == (-number, "", "")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_that_other_code_makes_an_error_of_is_a_signal(
    call, linear, monkeypatch, number, code
):
    def interrupted(*_):
        try:
            os.kill(os.getpid(), number)
            signal.pause()
        except KeyboardInterrupt:
            raise ImportError("initialization failed") from None

    monkeypatch.setattr(importlib.import_module("bochner.cli.evaluate"), "load_model", interrupted)
    before = [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)]
    told = call("evaluate", linear / "prices.bochner", linear / "new.csv", code=code)
    assert told.stderr.strip() == "Stopped."
    assert [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)] == before
