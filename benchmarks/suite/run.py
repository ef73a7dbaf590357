"""Which fits there are, and running those without a record: the first split of all tables before the second of any."""

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.suite import records, systems, tables, work
from benchmarks.suite.processes import run_jobs
from experiments.provenance import provenance


def splits_of(system: str, name: str) -> tuple[int, ...]:
    """Give the splits that a system runs: the first ones all do, and our default all standard ones too."""
    splits = tables.splits_of(name)
    if tables.n_rows(name) > systems.PLACES[system].one_split_above:
        return splits[:1]
    if system == systems.OURS[0] and name in tables.ALL_STANDARD:
        return (*splits, *(one for one in tables.ALL_STANDARD[name] if one not in splits))
    return splits


def _is_for(system: str, name: str) -> bool:
    place = systems.PLACES[system]
    within = place.least_rows <= tables.n_rows(name) <= place.most_rows
    return within and name not in place.not_for


def jobs(
    chosen_systems: Sequence[str],
    chosen_tables: Sequence[str],
    chosen_splits: Collection[int] | None = None,
) -> list[dict[str, Any]]:
    """List fits in the order in which they are run: by the place of a split, then by rows."""
    found: list[tuple[int, int, dict[str, Any]]] = []
    for name in chosen_tables:
        for system in chosen_systems:
            if not _is_for(system, name):
                continue
            for place, split in enumerate(splits_of(system, name)):
                if chosen_splits is None or split in chosen_splits:
                    job = {"system": system, "data": name, "split": split}
                    found.append((place, tables.n_rows(name), job))
    return [job for *_, job in sorted(found, key=lambda one: one[:2])]


def run(
    folder: Path,
    todo: Sequence[dict[str, Any]],
    *,
    processes: int,
    stale: bool = False,
    console: Console | None = None,
) -> Iterator[records.Record]:
    """Run the fits that have no record, or a failure of another commit, or, if asked, any record of another commit.

    Each record is kept at once.
    """
    console = console or Console(stderr=True)
    known = records.read(folder, systems.NAMES)
    commit = provenance()["commit"]

    def is_open(job: dict[str, Any]) -> bool:
        record = known.get(records.key_of(job))
        if record is None:
            return True
        return record.get("commit") != commit and (stale or "failed" in record)

    waiting = [job for job in todo if is_open(job)]
    console.print(f"{len(waiting)} of {len(todo)} fits to run, {processes} at a time")
    for number, record in enumerate(run_jobs(waiting, processes, _seconds), start=1):
        records.append(folder, record)
        console.print(f"{number}/{len(waiting)} {_told(record)}", markup=False, soft_wrap=True)
        yield record


def _seconds(job: work.Job) -> float:
    return systems.PLACES[job["system"]].seconds or tables.seconds_of(job["data"])


def _told(record: records.Record) -> str:
    name = f"{record['data']} {record['split']}, {record['system']}"
    if "failed" in record:
        return f"{name}: FAILED, {record['failed']}"
    scores = record["scores"]
    error = scores.get("rmse", scores.get("error_rate"))
    stopped = ", stopped" if record["stopped"] else ""
    return (
        f"{name}: log-likelihood {scores['log_likelihood']:.3f}, error {error:.4g}, "
        f"{record['fit_cpu_seconds']:.0f} s{stopped}"
    )
