"""Where a record comes from: the commit, whether the tree was clean, versions, the machine, the day."""

import collections
import datetime
import functools
import importlib.metadata
import os
import platform
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).resolve().parent.parent
_ALWAYS = ("jax", "numpy", "scipy", "scikit-learn")


def provenance(packages: Sequence[str] = ()) -> dict[str, Any]:
    """Describe the code and the machine of a result, with the versions of further packages.

    Example:
        >>> from experiments.provenance import provenance
        >>> sorted(provenance())
        ['clean', 'commit', 'cores', 'date', 'processor', 'versions']
    """
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    versions = {name: version for name in (*_ALWAYS, *packages) if (version := _version(name))}
    return {
        **_tree(),
        "date": today,
        "versions": {"python": platform.python_version(), **versions},
        "processor": _processor(),
        "cores": os.cpu_count(),
    }


def origin(records: Iterable[Mapping[str, Any]]) -> str:
    """Say in a sentence of which commits records are, which matters where they are several.

    Example:
        >>> from experiments.provenance import origin
        >>> origin([{"commit": "1a2b", "clean": True}, {"commit": "3c4d", "clean": False}, {}])
        'Records of several commits: 1a2b (1), 3c4d with changes (1), unknown (1).'
    """
    counts = collections.Counter(_commit_of(record) for record in records)
    told = ", ".join(f"{name} ({n})" for name, n in sorted(counts.items()))
    return f"Records of {'several commits' if len(counts) > 1 else 'one commit'}: {told}."


def _commit_of(record: Mapping[str, Any]) -> str:
    if not record.get("commit"):
        return "unknown"
    return record["commit"] if record.get("clean") else f"{record['commit']} with changes"


@functools.cache
def _tree() -> dict[str, Any]:
    """The commit as this process found it, and whether anything but results differed from it."""
    commit = _git("rev-parse", "HEAD")
    changed = _git("status", "--porcelain", "--", ".", ":!*/results/*", ":!docs", ":!*.md")
    return {"commit": commit[:12] or None, "clean": bool(commit) and not changed}


def _git(*arguments: str) -> str:
    try:
        found = subprocess.run(
            ["git", *arguments], cwd=_ROOT, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return found.stdout.strip()


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


@functools.cache
def _processor() -> str:
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
