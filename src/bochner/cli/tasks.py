"""Which task a target poses, said on the way."""

from typing import Any

from bochner.cli.common import note


def find_task(source: Any, target: str, task: str, quiet: bool) -> str:
    """Give the task asked for, or the one that the target poses."""
    from bochner.fitting.config import check_choice
    from bochner.fitting.sources import task_of

    check_choice("task", task, ["auto", "regression", "classification"])
    if task != "auto":
        return task
    found, reason = task_of(source, target)
    other = "regression" if found == "classification" else "classification"
    note(f"Task: {found} (of the target: {reason}); --task {other} overrides.", quiet)
    return found
