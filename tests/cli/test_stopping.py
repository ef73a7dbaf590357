"""Ctrl-C is no error; what the system refuses names the file and the remedy."""

import importlib
import json

import pytest

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
