"""Tables larger than memory: time and peak memory of `bochner fit` and `bochner predict` on generated Parquet."""

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypedDict

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from rich.console import Console
from rich.table import Table

_INPUTS = 8
_ROW_GROUP = 500_000
_BATCH_SIZE = 500


class Record(TypedDict):
    """One command on one table."""

    command: str
    rows: int
    seconds: float
    rows_per_second: float
    peak_megabytes: float


def make_table(path: Path, n_rows: int, seed: int = 0) -> None:
    """Write a table of 8 inputs and a target that is a smooth function of them with noise."""
    generator = np.random.default_rng(seed)
    names = [f"x{i}" for i in range(_INPUTS)]
    schema = pa.schema([(name, pa.float32()) for name in [*names, "y"]])
    with pyarrow.parquet.ParquetWriter(path, schema, compression="none") as writer:
        for start in range(0, n_rows, _ROW_GROUP):
            X = generator.normal(size=(min(_ROW_GROUP, n_rows - start), _INPUTS)).astype("f4")
            y = np.sin(2 * X[:, 0]) * X[:, 1] + np.abs(X[:, 2]) + 0.1 * X[:, 3]
            y += 0.2 * generator.normal(size=len(X))
            columns = [*X.T, y.astype("f4")]
            writer.write_table(pa.table([pa.array(c) for c in columns], schema=schema))


def measure(rows: Sequence[int], commands: Sequence[str], folder: Path) -> Iterator[Record]:
    """Fit one pass over each table and predict it, small tables in memory and large ones from disk."""
    for n_rows in rows:
        table, model = folder / f"table-{n_rows}.parquet", folder / f"model-{n_rows}.bochner"
        if not table.exists():
            make_table(table, n_rows)
        if "fit" in commands:
            yield _fit(table, model, n_rows)
        if "predict" in commands:
            yield _predict(table, model, n_rows)


def _fit(table: Path, model: Path, n_rows: int) -> Record:
    return _timed(
        [
            "fit", str(table), "--target", "y", "--model", str(model), "--quiet",
            "--max-steps", str(max(n_rows // _BATCH_SIZE, 1)), "--batch-size", str(_BATCH_SIZE),
        ],
        n_rows,
    )  # fmt: skip


def _predict(table: Path, model: Path, n_rows: int) -> Record:
    out = table.with_name(f"predicted-{n_rows}.parquet")
    record = _timed(
        ["predict", str(model), str(table), "--output", str(out), "--draws", "10", "--quiet"],
        n_rows,
    )
    predicted = pyarrow.parquet.ParquetFile(out).metadata.num_rows
    out.unlink()
    if predicted != n_rows:
        raise RuntimeError(f"{predicted} rows were predicted of {n_rows}")
    return record


def _timed(arguments: list[str], n_rows: int) -> Record:
    # A process of its own for each command, so that each has its own peak memory.
    code = (
        "import json, resource, subprocess, sys, time; started = time.monotonic();"
        "subprocess.run([sys.executable, '-m', 'bochner', *sys.argv[1:]], check=True, stdout=subprocess.DEVNULL);"
        "print(json.dumps([time.monotonic() - started, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss]))"
    )
    command = [sys.executable, "-c", code, *arguments]
    finished = subprocess.run(command, check=True, capture_output=True, text=True)
    seconds, kilobytes = json.loads(finished.stdout.splitlines()[-1])
    return Record(
        command=arguments[0],
        rows=n_rows,
        seconds=seconds,
        rows_per_second=n_rows / seconds,
        peak_megabytes=kilobytes / 1024,
    )


def print_table(records: list[Record]) -> None:
    """Print the measurements."""
    table = Table(title="Generated Parquet, 8 inputs, one pass; start and compilation included")
    for column in ("command", "rows", "seconds", "rows a second", "peak memory, MB"):
        table.add_column(column, justify="right")
    for r in records:
        table.add_row(
            r["command"], f"{r['rows']:,}", f"{r['seconds']:.0f}",
            f"{r['rows_per_second']:,.0f}", f"{r['peak_megabytes']:,.0f}",
        )  # fmt: skip
    Console().print(table)
