"""Training that is killed at any moment and resumed ends with the parameters of an undisturbed run, bit for bit."""

import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from bochner.system.saving import read_arrays
from tests.cli.conftest import make_frame

STEPS = 3000


class Training:
    """`bochner fit` as a process of its own."""

    def __init__(self, folder):
        self.folder = folder
        make_frame(600).to_csv(folder / "flats.csv", index=False)
        self.environment = os.environ | {
            "JAX_COMPILATION_CACHE_DIR": str(folder / "cache"),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        }

    def start(self, model, checkpoint):
        words = [
            "fit", "flats.csv", "--target", "price", "--model", model, "--ignore", "id",
            "--max-steps", STEPS, "--width", 2, "--n-random-features", 20, "--batch-size", 50,
            "--checkpoint", checkpoint, "--checkpoint-seconds", 0, "--resume", "--validation-fraction", 0.1,
        ]  # fmt: skip
        return subprocess.Popen(
            [sys.executable, "-m", "bochner", *map(str, words)],
            cwd=self.folder, env=self.environment, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def run(self, model, checkpoint):
        process = self.start(model, checkpoint)
        _, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors
        return errors

    def wait_for_checkpoint(self, process, checkpoint, step=0):
        """Wait until a checkpoint of at least this step is there, or the process has ended."""
        while process.poll() is None and self.newest_step(checkpoint) < step:
            time.sleep(0.002)

    def newest_step(self, checkpoint):
        names = (self.folder / checkpoint).glob("step-*.checkpoint")
        return max((int(path.stem.removeprefix("step-")) for path in names), default=-1)

    def arrays(self, model):
        return read_arrays(self.folder / model)[0]


@pytest.fixture(scope="module")
def training(tmp_path_factory):
    training = Training(tmp_path_factory.mktemp("kill"))
    training.run("whole.bochner", "whole")
    return training


def assert_equal(one, other):
    assert one.keys() == other.keys()
    for name, array in one.items():
        np.testing.assert_array_equal(array, other[name], err_msg=name)


def kill_and_resume(training, name, generator):
    """Kill one training, shortly after checkpoints drawn at random, until it is faster; give how often it was killed.

    Moments are counted in steps rather than seconds, so that a machine's speed does not decide whether there is
    anything to kill.
    """
    n_kills = 0
    for step in sorted(generator.sample(range(STEPS), 4)):
        process = training.start(f"{name}.bochner", name)
        training.wait_for_checkpoint(process, name, step)
        time.sleep(generator.uniform(0, 0.05))
        process.kill()
        process.communicate()
        if process.returncode == 0:
            break
        n_kills += 1
    training.run(f"{name}.bochner", name)
    assert_equal(training.arrays(f"{name}.bochner"), training.arrays("whole.bochner"))
    return n_kills


def test_sigkill_at_random_moments_changes_nothing(training):
    assert kill_and_resume(training, "short", random.Random(0)) > 0


@pytest.mark.slow
def test_sigkill_at_thirty_random_moments_changes_nothing(training):
    generator, n_kills, n_runs = random.Random(1), 0, 0
    while n_kills < 30:
        n_runs += 1
        n_kills += kill_and_resume(training, f"run{n_runs}", generator)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_the_chunk_and_say_how_to_go_on(training, number):
    name = f"signal{number}"
    process = training.start(f"{name}.bochner", name)
    training.wait_for_checkpoint(process, name)
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + number, errors
    assert "To go on:  bochner fit flats.csv" in errors
    assert "Traceback" not in errors
    training.run(f"{name}.bochner", name)
    assert_equal(training.arrays(f"{name}.bochner"), training.arrays("whole.bochner"))
