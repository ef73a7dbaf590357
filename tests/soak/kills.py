"""Cases in which a command is killed at a random moment: nothing is lost, and a training that goes on ends the same."""

import random
import shutil
import signal
import time

import numpy as np

from bochner.system.saving import read_arrays
from tests.soak.on_the_command_line import finished, start, written
from tests.soak.outcomes import demand
from tests.soak.settings import random_deep, random_settings
from tests.soak.tables import TARGET, RandomTable

_SIGNALS = [signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT]
_STEPS = 400


def kill_a_training(r: random.Random, table: RandomTable, folder):
    """Kill a training with checkpoints some times, go on, and end with the parameters of an undisturbed one."""
    name = written(r, table, folder)
    deep = random_deep(r) | {"max_steps": _STEPS}
    if table.task == "classification":
        deep.pop("objective", None)
    settings = random_settings(r, table.task)
    settings.members, settings.deep, settings.estimator = ["deep"], deep, {}
    common = ["fit", name, "--target", TARGET, "--task", table.task, "--quiet", *settings.flags()]
    began = time.monotonic()
    whole = ["--model", "whole.bochner", "--checkpoint", "one", "--checkpoint-seconds", "0"]
    finished(folder, *common, *whole)
    taken = time.monotonic() - began
    words = [*common, "--model", "m.bochner", "--checkpoint", "two", "--checkpoint-seconds", "0"]
    n_kills = 0
    for _ in range(r.choice([1, 1, 2, 3])):
        n_kills += _killed(r, folder, [*words, "--resume"], r.uniform(0.2, 1.1) * taken)
    finished(folder, *words, "--resume")
    one, other = (read_arrays(folder / f"{m}.bochner")[0] for m in ("whole", "m"))
    _demand_equal(one, other)
    left = {path.name for path in (folder / "two").iterdir()}
    odd = {n for n in left if not (n == "in-use" or n.endswith(".checkpoint"))}
    demand(not odd, f"left in the folder of checkpoints: {odd}")
    return n_kills


def kill_a_prediction(r: random.Random, table: RandomTable, folder):
    """Kill a fit over an old model and a prediction over old predictions: each file is the old one or the new one."""
    name = written(r, table, folder)
    common = ["--target", TARGET, "--task", table.task, "--quiet", "--members", "linear"]
    began = time.monotonic()
    finished(folder, "fit", name, "--model", "m.bochner", *common)
    fit_seconds = time.monotonic() - began
    began = time.monotonic()
    finished(folder, "predict", "m.bochner", name, "-o", "p.csv", "--quiet")
    seconds = time.monotonic() - began
    arrays, predictions = read_arrays(folder / "m.bochner")[0], (folder / "p.csv").read_bytes()
    n_kills = _killed(
        r, folder, ["fit", name, "--model", "m.bochner", *common], r.uniform(0, 1.2) * fit_seconds
    )
    _demand_equal(arrays, read_arrays(folder / "m.bochner")[0])  # old or new, it is whole
    words = ["predict", "m.bochner", name, "-o", "p.csv", "--quiet"]
    n_kills += _killed(r, folder, words, r.uniform(0, 1.2) * seconds)
    demand((folder / "p.csv").read_bytes() == predictions, "half of the predictions are written")
    shutil.copy(folder / "m.bochner", folder / "copy.bochner")
    finished(folder, "predict", "copy.bochner", name, "-o", "q.csv", "--quiet")
    demand((folder / "q.csv").read_bytes() == predictions, "predictions of the same file differ")
    return n_kills


def _demand_equal(one, other):
    demand(one.keys() == other.keys(), "the file has other arrays")
    for name, array in one.items():
        demand(np.array_equal(array, other[name]), f"{name} is another")


def _killed(r, folder, words, after_seconds) -> bool:
    """Send a signal after some seconds; tell whether the command was still there to hear it."""
    process = start(folder, words)
    number = r.choice(_SIGNALS)
    deadline = time.monotonic() + after_seconds
    while process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)
    ended = process.poll() is not None
    if not ended:
        process.send_signal(number)
    _, errors = process.communicate(timeout=120)
    if ended:
        demand(process.returncode == 0, f"exit code {process.returncode}: {errors[-1500:]}")
    elif number != signal.SIGKILL:
        # Before Python hears it, a signal ends the process as the system does.
        fine = process.returncode in (0, 128 + number, -number)
        demand(fine, f"exit code {process.returncode} after signal {number}: {errors[-1500:]}")
    return not ended
