"""Records of fits: one line each, in a file for each system, the newest line of a fit being its record."""

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

Record = dict[str, Any]
Key = tuple[str, str, int]


def key_of(record: Mapping[str, Any]) -> Key:
    """Name the fit of a record or a job."""
    return record["system"], record["data"], record["split"]


def path_of(folder: Path, system: str) -> Path:
    """Give the file of a system.

    Example:
        >>> from pathlib import Path
        >>> from benchmarks.suite.records import path_of
        >>> path_of(Path("suite"), "bochner, paper").name
        'bochner-paper.jsonl'
    """
    return folder / f"{system.replace(',', '').replace(' ', '-')}.jsonl"


def read(folder: Path, systems: Iterable[str]) -> dict[Key, Record]:
    """Read the records of systems; a line that a crash cut off is passed over, and its fit runs again."""
    found = {}
    for system in systems:
        path = path_of(folder, system)
        if not path.exists():
            continue
        for line in path.read_text(encoding="utf-8").split("\n")[:-1]:
            record = json.loads(line)
            found[key_of(record)] = record
    return found


def append(folder: Path, record: Record) -> None:
    """Add a record to the file of its system, and see to it that it is on the disk."""
    folder.mkdir(parents=True, exist_ok=True)
    path = path_of(folder, record["system"])
    if path.exists() and not path.read_bytes().endswith(b"\n"):
        whole = path.read_text(encoding="utf-8").rpartition("\n")
        path.write_text(whole[0] + whole[1], encoding="utf-8")
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(record) + "\n")
        file.flush()
        os.fsync(file.fileno())


def tidy(folder: Path, systems: Iterable[str]) -> None:
    """Keep one line a fit, in a fixed order, so that files of two runs are easy to compare."""
    for system in systems:
        records = read(folder, [system])
        if records:
            lines = [json.dumps(records[key]) for key in sorted(records)]
            partial = path_of(folder, system).with_suffix(".partial")
            partial.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
            partial.replace(path_of(folder, system))
