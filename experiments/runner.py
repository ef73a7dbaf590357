"""Runs the jobs of an experiment and keeps each result as a JSON line, so that a run can be resumed."""

import dataclasses
import json
import os
import platform
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from bochner import __version__

Job = Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class Experiment:
    """A set of jobs and what to make of their results.

    Attributes:
        summary: one line for the list of experiments.
        jobs: gives the jobs, fewer and shorter if asked to be quick; a job's values identify it.
        run: computes one job's result.
        report: writes tables and plots from all records into a folder.
    """

    summary: str
    jobs: Callable[[bool], Iterable[Job]]
    run: Callable[[Job], Mapping[str, Any]]
    report: Callable[[list[dict[str, Any]], Path], None]


def run_experiment(
    name: str,
    experiment: Experiment,
    folder: Path,
    quick: bool,
    select: Mapping[str, Collection[str]] | None = None,
) -> Path:
    """Run what is not yet in the results file, then report all of it; gives the path of that file.

    With `select`, only jobs that have one of these values each, written as text, are run.
    """
    console = Console(stderr=True)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}{'-quick' if quick else ''}.jsonl"
    records = read_records(path)
    done = {_identity(record["job"]) for record in records}
    jobs = [dict(job) for job in experiment.jobs(quick)]
    with path.open("a", encoding="utf-8") as file:
        for number, job in enumerate(jobs, start=1):
            if _identity(job) in done or not _selected(job, select or {}):
                continue
            console.print(f"{name} {number}/{len(jobs)}: {job}")
            started = time.monotonic()
            result = experiment.run(job)
            record = {
                "job": job,
                "result": dict(result),
                "seconds": round(time.monotonic() - started, 3),
                "machine": machine(),
                "bochner_version": __version__,
            }
            file.write(json.dumps(record) + "\n")
            file.flush()
            os.fsync(file.fileno())
            records.append(record)
    wanted = {_identity(job) for job in jobs}
    experiment.report([record for record in records if _identity(record["job"]) in wanted], folder)
    return path


def read_records(path: Path) -> list[dict[str, Any]]:
    """Read the whole lines of a results file; a line cut off by a crash is dropped and its job runs again."""
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").split("\n")
    if lines[-1]:
        path.write_text("".join(f"{line}\n" for line in lines[:-1]), encoding="utf-8")
    return [json.loads(line) for line in lines[:-1] if line]


def mean_and_deviation(values: Iterable[float]) -> str:
    """Write the mean of some values and their sample deviation."""
    numbers = np.fromiter(values, float)
    return f"{numbers.mean():.3f} ± {numbers.std(ddof=min(1, len(numbers) - 1)):.3f}"


def machine() -> str:
    """Describe the machine in a few words."""
    import jax

    devices = ", ".join(sorted({device.device_kind for device in jax.devices()}))
    return f"{platform.machine()}, {os.cpu_count()} cores, {devices}, JAX {jax.__version__}"


def _selected(job: Job, select: Mapping[str, Collection[str]]) -> bool:
    return all(str(job.get(name)) in values for name, values in select.items())


def _identity(job: Job) -> str:
    return json.dumps(dict(job), sort_keys=True)
