"""Tables of the measurements."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from benchmarks.growth import FirstStep, Growth
from benchmarks.speed import Record
from benchmarks.threads import n_threads


def print_speed(records: Sequence[Record]) -> None:
    """Print milliseconds a step, with how many times bochner's that is."""
    cases = list(dict.fromkeys((record["config"], record["n_mc"]) for record in records))
    systems = list(dict.fromkeys(record["system"] for record in records))
    found = {(r["config"], r["n_mc"], r["system"]): r["ms_per_step"] for r in records}
    table = Table(title=f"Milliseconds a training step, {n_threads()} threads (times bochner's)")
    table.add_column("system")
    for name, n_mc in cases:
        table.add_column(f"{name}, {n_mc} sample{'s' if n_mc > 1 else ''}", justify="right")
    for system in systems:
        cells = []
        for case in cases:
            milliseconds = found.get((*case, system))
            ours = found.get((*case, "bochner"))
            ratio = f" ({milliseconds / ours:.1f}x)" if milliseconds and ours else ""
            cells.append("-" if milliseconds is None else f"{milliseconds:.3g}{ratio}")
        table.add_row(system, *cells)
    Console().print(table)


def print_growth(rows: Sequence[Growth]) -> None:
    """Print how a step's cost grows, relative to the smallest size."""
    table = Table(title="Growth of bochner's step, from configuration A with 3 layers")
    table.add_column("doubled")
    table.add_column("milliseconds a step, and times the first")
    for row in rows:
        first = row["ms_per_step"][0]
        cells = [
            f"{size}: {milliseconds:.3g} ({milliseconds / first:.1f}x)"
            for size, milliseconds in zip(row["sizes"], row["ms_per_step"], strict=True)
        ]
        table.add_row(row["what"], "   ".join(cells))
    Console().print(table)


def print_first_step(rows: Sequence[FirstStep]) -> None:
    """Print the time to the first step and the peak memory."""
    table = Table(title="From the call of train to the first step, in a new process")
    for column in (
        "configuration",
        "layers",
        "samples",
        "seconds",
        "with cache",
        "peak memory, MB",
    ):
        table.add_column(column, justify="right")
    for row in rows:
        table.add_row(
            row["config"],
            str(row["n_layers"]),
            str(row["n_mc"]),
            f"{row['seconds']:.2f}",
            f"{row['seconds_with_cache']:.2f}",
            f"{row['peak_megabytes']:.0f}",
        )
    Console().print(table)


def markdown(title: str, systems: list[str], lines: list[list[str]]) -> str:
    """Write a table as Markdown, its title in the corner."""
    head = f"| {title} | {' | '.join(systems)} |\n| --- |{' --- |' * len(systems)}\n"
    return head + "".join(f"| {' | '.join(line)} |\n" for line in lines)
