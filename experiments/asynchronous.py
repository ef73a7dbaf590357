"""The supplement's figure: training time and error on MNIST by the number of asynchronous workers.

Runs are real where there are cores for them. For more workers, up to 100, gradients and staleness are real and the
clock is simulated: it replays the times that one worker took here, as if every worker had a core of its own. "Scaled"
divides steps by one plus the staleness of their gradients.
"""

import functools
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from bochner import Deep, DeepGPClassifier, datasets
from bochner.distributed import Asynchronous, Synchronous
from bochner.distributed.server import ParameterShard
from experiments.runner import Experiment, Job
from experiments.simulated_workers import Simulated, Times

STEPS = 2_000
PAPER = {1: (10**1.65, 0.0191), 5: (10**1.10, 0.0213), 10: (10**0.84, 0.037)}
"""Hours and error rates of the supplement's figure, by workers."""


def _jobs(quick: bool) -> Iterable[Job]:
    size = {"steps": 100, "rows": 2_000, "n_rf": 30} if quick else {"steps": STEPS}
    cores = os.cpu_count() or 1
    yield {"mode": "serial", "n": 1, **size}
    for n in (2,) if quick else (1, 2, 5, 10):
        if n <= cores:
            yield {"mode": "async", "n": n, **size}
    for n in () if quick else (2, 4, 8):
        if n <= cores:
            yield {"mode": "sync", "n": n, **size}
    for n in (4,) if quick else (1, 5, 10, 20, 50, 100):
        yield {"mode": "simulated", "n": n, **size}
        if n > 1:
            yield {"mode": "simulated, scaled", "n": n, **size}


def _run(job: Job) -> Mapping[str, Any]:
    if job["mode"] != "sync":
        return _fit(job)
    # The number of devices of a CPU is settled before JAX computes anything.
    flag = f"--xla_force_host_platform_device_count={job['n']}"
    done = subprocess.run(
        [sys.executable, "-m", "experiments.asynchronous", json.dumps(dict(job))],
        env=os.environ | {"XLA_FLAGS": flag},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def _fit(job: Job) -> dict[str, Any]:
    X, y, X_test, y_test = _mnist(job)
    classifier = _classifier(job, _distribution(job))
    started = time.monotonic()
    classifier.fit(X, y)
    report = dict(classifier.distribution_)
    times = report.pop("seconds", {})
    means = {name: float(np.mean(values)) for name, values in times.items() if values}
    return {
        "error_rate": classifier.evaluate(X_test, y_test)["error_rate"],
        "training_seconds": classifier.history_[-1]["seconds"],
        "updates_per_second": _pace(classifier.history_),
        "seconds_with_start": round(time.monotonic() - started, 2),
        **{f"mean_{name}_seconds": value for name, value in means.items()},
        **report,
    }


def _pace(history: list[dict[str, Any]]) -> float:
    """Updates a second of the second half, where nothing starts or compiles any more."""
    middle, last = history[len(history) // 2], history[-1]
    return (last["step"] - middle["step"]) / (last["seconds"] - middle["seconds"])


def _is_simulated(job: Job) -> bool:
    return job["mode"].startswith("simulated")


def _distribution(job: Job) -> Any:
    n = job["n"]
    if _is_simulated(job):
        measured = _measured(job.get("rows"), job.get("n_rf"))
        scaled = job["mode"] == "simulated, scaled"
        return Simulated(n, Times.of(json.loads(measured)), scale_by_staleness=scaled)
    return {"serial": None, "async": Asynchronous(n_workers=n), "sync": Synchronous(n)}[job["mode"]]


@functools.cache
def _measured(rows: int | None, n_rf: int | None) -> str:
    """Measure what one worker's steps and the server's updates take here."""
    job = {"steps": 60, "rows": rows, "n_rf": n_rf}
    X, y, *_ = _mnist(job)
    classifier = _classifier(job, Asynchronous(n_workers=1)).fit(X, y)
    seconds = {
        # The first ones compile.
        name: values[len(values) // 2 :]
        for name, values in classifier.distribution_["seconds"].items()
    }
    return json.dumps(seconds | {"apply": _seconds_of_updates(_n_parameters(classifier))})


def _n_parameters(classifier: DeepGPClassifier) -> int:
    import jax

    return sum(leaf.size for leaf in jax.tree.leaves(classifier.model_))


def _seconds_of_updates(n_parameters: int, n_times: int = 20) -> list[float]:
    shard, zeros = ParameterShard(), np.zeros(n_parameters, np.float32)
    shard.load(1, zeros, None, version=0)
    found = []
    for number in range(n_times + 1):
        started = time.monotonic()
        shard.stage((0, 0, number), zeros)
        shard.is_finite((0, 0, number))
        shard.apply((0, 0, number), 0.1)
        shard.fetch()
        found.append(time.monotonic() - started)
    return found[1:]


def _mnist(job: Job) -> tuple[np.ndarray, ...]:
    data = datasets.load("mnist")
    X, y, X_test, y_test = data.part(data.splits[0])
    rows = job.get("rows")
    return X[:rows], y[:rows], X_test[:rows], y_test[:rows]


def _classifier(job: Job, distributed: Any) -> DeepGPClassifier:
    """The paper's model for MNIST with our initial values and step sizes, which take minutes to its hours.

    What is tried or held out on one device, and not by several workers, is settled, so that all train the same.
    """
    return DeepGPClassifier(
        Deep(
            n_layers=2,
            width=50,
            n_random_features=job.get("n_rf") or 500,
            batch_size=1_000,
            preprocessing="unit",
            learning_rate=0.01,
            max_steps=job["steps"],
            n_members=1,
            omega="prior-fixed",
            validation_fraction=0.0,
        ),
        distributed=distributed,
        random_state=0,
    )


def _report(records: list[dict[str, Any]], folder: Path) -> None:
    table = Table(
        "mode", "workers", "error", "seconds", "updates a second", "mean staleness", "clock"
    )
    for record in records:
        job, result = record["job"], record["result"]
        staleness = result.get("staleness", {"0": 1})
        mean = np.average([int(value) for value in staleness], weights=list(staleness.values()))
        simulated = _is_simulated(job)
        seconds = result["simulated_seconds" if simulated else "training_seconds"]
        pace = job["steps"] / seconds if simulated else result["updates_per_second"]
        table.add_row(
            job["mode"], str(job["n"]), f"{result['error_rate']:.4f}", f"{seconds:.1f}", f"{pace:.1f}",
            f"{mean:.2f}", "simulated" if simulated else "real",
        )  # fmt: skip
    Console().print(table)
    _plot(records, folder / "async.png")


def _plot(records: list[dict[str, Any]], path: Path) -> None:
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
    for mode, marker in zip(
        ("async", "simulated", "simulated, scaled", "sync"), "ox+s", strict=True
    ):
        found = [record for record in records if record["job"]["mode"] == mode]
        if not found:
            continue
        n = [record["job"]["n"] for record in found]
        key = "simulated_seconds" if _is_simulated(found[0]["job"]) else "training_seconds"
        left.plot(n, [r["result"][key] for r in found], marker=marker, label=mode)
        right.plot(n, [r["result"]["error_rate"] for r in found], marker=marker, label=mode)
    right.plot(list(PAPER), [error for _, error in PAPER.values()], "k:", label="the paper's")
    for axes, label in ((left, "training seconds"), (right, "error rate on MNIST")):
        axes.set(xlabel="workers or devices", ylabel=label, xscale="log", yscale="log")
    left.legend()
    right.legend(loc="lower right")
    figure.savefig(path, dpi=120)
    plt.close(figure)


EXPERIMENT = Experiment(
    summary="training time and error on MNIST by the number of workers, asynchronous and in step",
    jobs=_jobs,
    run=_run,
    report=_report,
)

if __name__ == "__main__":
    print(json.dumps(_fit(json.loads(sys.argv[1]))))
