"""What is better and what is worse than in other records, beyond noise."""

from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.suite import pairing, standing, systems, tables
from benchmarks.suite.records import read


def changes(folder: Path, other: Path) -> list[tuple[str, str, pairing.Difference]]:
    """Compare each system with itself in other records: system, table, and the gain in log-likelihood."""
    here, there = (read(one, systems.NAMES) for one in (folder, other))
    found = []
    for system in systems.NAMES:
        for name in tables.NAMES:
            one, two = (standing.by_split(records, system, name) for records in (here, there))
            gain = pairing.difference(one, two, name)
            if gain is not None:
                found.append((system, name, gain))
    return found


def print_changes(folder: Path, other: Path) -> None:
    """Print the gains and losses that are beyond two paired standard errors, the worst first."""
    table = Table("system", "table", "gain in log-likelihood", "± error", title="Beyond noise")
    compared = changes(folder, other)
    decided = [one for one in compared if one[2].verdict != "tie"]
    for system, name, gain in sorted(decided, key=lambda one: one[2].value):
        color = "green" if gain.value > 0 else "red"
        table.add_row(system, name, f"{gain.value:+.4f}", f"{gain.error:.4f}", style=color)
    console = Console()
    console.print(table)
    console.print(f"{len(compared)} compared, {len(decided)} beyond noise.")
