"""How the cost of bochner's step grows with the model, and what comes before the first step."""

import dataclasses
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TypedDict

from benchmarks import bochner_model
from benchmarks.configurations import CONFIGURATIONS, A, Configuration
from benchmarks.speed import Contestant, repeated
from bochner.gp.reparameterization import DrawWeights

_DOUBLINGS = 3
_REPETITIONS = 5


class Growth(TypedDict):
    """Milliseconds a step while one size of configuration A is doubled again and again."""

    what: str
    sizes: list[int]
    ms_per_step: list[float]


class FirstStep(TypedDict):
    """Seconds from the call of `train` to its first step in a new process, and the process's peak memory."""

    config: str
    n_layers: int
    n_mc: int
    seconds: float
    seconds_with_cache: float
    peak_megabytes: float


def measure() -> list[Growth]:
    """Double the number of features, the batch, the samples, the width and the depth, one at a time."""
    base = dataclasses.replace(A, n_layers=3)
    sizes = [
        _double(what, getattr(base, what), base) for what in ("n_rf", "batch", "width", "n_layers")
    ]
    return [*sizes, _double("n_mc", 2, base)]


def _double(what: str, size: int, base: Configuration) -> Growth:
    doubled = [size * 2**i for i in range(_DOUBLINGS + 1)]
    contestants = []
    for value in doubled:
        n_mc = value if what == "n_mc" else 1
        configuration = base if what == "n_mc" else dataclasses.replace(base, **{what: value})
        run, unit = bochner_model.make(configuration, n_mc, DrawWeights())
        contestants.append(Contestant(what, repeated(run), unit))
    for contestant in contestants:
        contestant.warm_up()
    for _ in range(_REPETITIONS):
        for contestant in contestants:
            contestant.repeat()
    return Growth(
        what=what,
        sizes=doubled,
        ms_per_step=[statistics.median(contestant.milliseconds) for contestant in contestants],
    )


def first_steps() -> list[FirstStep]:
    """Measure in new processes: compilation from nothing, then with JAX's persistent cache filled."""
    cases = [("A", 2, 1), ("A", 2, 100), ("A", 5, 1), ("A", 30, 1), ("B", 2, 1), ("B", 2, 10)]
    return [_first_step(*case) for case in cases]


def _first_step(name: str, n_layers: int, n_mc: int) -> FirstStep:
    arguments = [name, str(n_layers), str(n_mc)]
    with tempfile.TemporaryDirectory() as cache:
        environment = os.environ | {
            "JAX_COMPILATION_CACHE_DIR": cache,
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        }
        cold, warm = (_new_process(arguments, environment) for _ in range(2))
    return FirstStep(
        config=name,
        n_layers=n_layers,
        n_mc=n_mc,
        seconds=cold["seconds"],
        seconds_with_cache=warm["seconds"],
        peak_megabytes=cold["peak_megabytes"],
    )


def _new_process(arguments: list[str], environment: dict[str, str]) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.growth", *arguments]
    finished = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return json.loads(finished.stdout.splitlines()[-1])


def _train_one_step(name: str, n_layers: int, n_mc: int) -> dict[str, float]:
    import time

    import jax

    from bochner.rows.table import Table
    from bochner.training import Budget, Plan, train

    configuration = dataclasses.replace(CONFIGURATIONS[name], n_layers=n_layers)
    model = bochner_model.start_model(configuration)
    table = Table.of(*configuration.data())
    started = time.perf_counter()
    train(
        model,
        table,
        plan=Plan(n_mc=n_mc, n_mc_final=n_mc),
        budget=Budget(max_steps=1),
        batch_size=configuration.batch,
        reparameterization=DrawWeights(),
        key=jax.random.key(0),
    )
    seconds = time.perf_counter() - started
    return {"seconds": seconds, "peak_megabytes": _peak_megabytes()}


def _peak_megabytes() -> float:
    # The kernel's own high-water mark: the one of `getrusage` starts from that of the parent process.
    lines = Path("/proc/self/status").read_text().splitlines()
    kilobytes = next(line.split()[1] for line in lines if line.startswith("VmHWM"))
    return int(kilobytes) / 1024


if __name__ == "__main__":
    print(json.dumps(_train_one_step(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
