"""Runs the jobs of an experiment and keeps each result as a JSON line, so that a run can be resumed."""

import collections
import contextlib
import dataclasses
import functools
import json
import multiprocessing
import os
import platform
import time
from collections.abc import Callable, Collection, Generator, Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from bochner import __version__
from bochner.system.terminal import PlainConsole
from experiments.provenance import origin, provenance

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


class NoSuchJobError(ValueError):
    """No job has the values that were selected."""


def run_experiment(
    name: str,
    experiment: Experiment,
    folder: Path,
    quick: bool,
    select: Mapping[str, Collection[str]] | None = None,
    processes: int = 1,
) -> Path:
    """Run what is not yet in the results file, then report all of it; gives the path of that file.

    With `select`, only jobs that have one of these values each, written as text, are run. With several processes each
    has its share of the cores; a job that fails there, or whose process is killed, lets the others end first.

    Raises:
        NoSuchJobError: if no job has the selected values.
    """
    console = PlainConsole(stderr=True)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}{'-quick' if quick else ''}.jsonl"
    records = read_records(path)
    done = {_identity(record["job"]) for record in records}
    jobs = [dict(job) for job in experiment.jobs(quick)]
    chosen = [job for job in jobs if _selected(job, select or {})]
    if not chosen:
        raise NoSuchJobError(f"no job of {name} has {_known_values(jobs, select or {})}")
    open_jobs = [job for job in chosen if _identity(job) not in done]
    run_jobs = _one_by_one if processes == 1 else functools.partial(_side_by_side, processes)
    found = run_jobs(experiment.run, open_jobs, console)
    # Closed at once when something fails here, so that no process goes on.
    with path.open("a", encoding="utf-8") as file, contextlib.closing(found):
        for number, record in enumerate(found, start=1):
            progress = f"{name} {number}/{len(open_jobs)} in {record['seconds']:.0f} s"
            console.print(f"{progress}: {record['job']}")
            file.write(json.dumps(record) + "\n")
            file.flush()
            os.fsync(file.fileno())
            records.append(record)
    order = {_identity(job): number for number, job in enumerate(jobs)}
    wanted = [record for record in records if _identity(record["job"]) in order]
    experiment.report(sorted(wanted, key=lambda record: order[_identity(record["job"])]), folder)
    console.print(origin(wanted))
    return path


Run = Callable[[Job], Mapping[str, Any]]
Records = Generator[dict[str, Any], None, None]


def _one_by_one(run: Run, jobs: list[dict[str, Any]], console: Console) -> Records:
    for job in jobs:
        console.print(f"running {job}")
        yield _record(run, job)


def _side_by_side(
    processes: int, run: Run, jobs: list[dict[str, Any]], console: Console
) -> Records:
    cores = _cores()
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        # Read when NumPy is imported, which is before a process knows its share.
        os.environ.setdefault(name, str(max(len(cores) // processes, 1)))
    # Each would take most of a GPU's memory for itself.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    shares = [[int(core) for core in share] for share in np.array_split(cores, processes)]
    waiting, error = collections.deque(jobs), None
    pools = [_pool(share) for share in shares]
    running: dict[Future, tuple[int, dict[str, Any]]] = {}
    try:
        for slot in range(processes):
            _submit_next(pools[slot], slot, run, waiting, running)
        console.print(f"running {len(running)} of {len(jobs)} jobs at a time")
        while running:
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                slot, job = running.pop(future)
                try:
                    yield future.result()
                except BrokenProcessPool as found:
                    console.print(f"its process was killed: {job}")
                    error, pools[slot] = error or found, _pool(shares[slot])
                except Exception as found:
                    console.print(f"failed: {job}: {found!r}")
                    error = error or found
                _submit_next(pools[slot], slot, run, waiting, running)
    finally:
        # Where all went well nothing is running any more; else nobody waits for it.
        for pool in pools:
            pool.shutdown(wait=False, cancel_futures=True)
        if running:
            for process in multiprocessing.active_children():
                process.terminate()
    if error is not None:
        raise error


def _pool(share: list[int]) -> ProcessPoolExecutor:
    """One process with its cores; a pool of several would break as a whole when one of them is killed."""
    # Forked processes would inherit JAX's threads half alive.
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(1, context, initializer=_take_share, initargs=(share,))


def _submit_next(
    pool: ProcessPoolExecutor,
    slot: int,
    run: Run,
    waiting: collections.deque[dict[str, Any]],
    running: dict[Future, tuple[int, dict[str, Any]]],
) -> None:
    if waiting:
        job = waiting.popleft()
        running[pool.submit(_record, run, job)] = slot, job


def _take_share(share: list[int]) -> None:
    """Keep the process, before JAX or PyTorch start their threads, to its share of the cores."""
    if share and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, share)


def _cores() -> list[int]:
    """The cores that this process may use; not every system tells."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def _record(run: Run, job: dict[str, Any]) -> dict[str, Any]:
    started = time.monotonic()
    result = run(job)
    return {
        "job": job,
        "result": dict(result),
        "seconds": round(time.monotonic() - started, 3),
        "machine": machine(),
        "bochner_version": __version__,
        **provenance(),
    }


def read_records(path: Path) -> list[dict[str, Any]]:
    """Read the whole lines of a results file; a line cut off by a crash is dropped and its job runs again."""
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").split("\n")
    if lines[-1]:
        path.write_text("".join(f"{line}\n" for line in lines[:-1]), encoding="utf-8")
    return [json.loads(line) for line in lines[:-1] if line]


def mean_and_deviation(values: Iterable[float], digits: int = 3) -> str:
    """Write the mean of some values and, where they are several, their sample deviation."""
    numbers = np.fromiter(values, float)
    mean = f"{numbers.mean():.{digits}f}"
    return mean if len(numbers) == 1 else f"{mean} ± {numbers.std(ddof=1):.{digits}f}"


def accelerator(machine: str) -> str:
    """Name the device in the words of `machine`, where that is not a CPU."""
    device = [*machine.split(", "), "", ""][2]
    return "" if device == "cpu" else device


def machine() -> str:
    """Describe the machine in a few words."""
    import jax

    devices = ", ".join(sorted({device.device_kind for device in jax.devices()}))
    used, there = len(_cores()), os.cpu_count()
    cores = f"{there} cores" if used == there else f"{used} of {there} cores"
    return f"{platform.machine()}, {cores}, {devices}, JAX {jax.__version__}"


def _selected(job: Job, select: Mapping[str, Collection[str]]) -> bool:
    return all(str(job.get(name)) in values for name, values in select.items())


def _known_values(jobs: list[dict[str, Any]], select: Mapping[str, Collection[str]]) -> str:
    """Name what was asked for, and what there is."""
    texts = []
    for name, values in select.items():
        known = dict.fromkeys(str(job[name]) for job in jobs if name in job)
        there = f"there is {', '.join(known)}" if known else "no job has such a value"
        texts.append(f"{name}={','.join(values)} ({there})")
    return "; ".join(texts) + "."


def _identity(job: Job) -> str:
    return json.dumps(dict(job), sort_keys=True)
