"""How long `bochner check` takes on small tables, whether its chains agree, and what it finds."""

import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bochner import Deep, DeepGPRegressor, datasets
from bochner.mcmc import check_posterior
from experiments.runner import Experiment, Job

DATA = ("yacht", "energy", "boston")
MEMBERS = ("auto", "deep")


def _jobs(quick: bool) -> Iterable[Job]:
    if quick:
        yield {"data": "yacht", "members": "auto", "seed": 0, "n_rows": 30, "max_seconds": 10}
        return
    for members in MEMBERS:
        for name in DATA:
            yield {"data": name, "members": members, "seed": 0, "n_rows": 100, "max_seconds": 170}


def _run(job: Job) -> Mapping[str, Any]:
    data = datasets.load(job["data"])
    members = Deep() if job["members"] == "deep" else "auto"
    model = DeepGPRegressor(members, random_state=job["seed"]).fit(data.X, data.y)
    clock, processor = time.monotonic(), time.process_time()
    found = check_posterior(
        model, data.X, data.y, n_rows=job["n_rows"], max_seconds=job["max_seconds"]
    )
    spent = {
        "seconds": time.monotonic() - clock,
        "processor_seconds": time.process_time() - processor,
    }
    return {**found.numbers(), "converged": found.converged, "verdict": found.verdict, **spent}


def _report(records: list[dict[str, Any]], folder: Path) -> None:
    names = ("worst_rhat", "smallest_ess", "seconds", "processor_seconds")
    table = Table(
        "data", "members", "sampled", *(name.replace("_", " ") for name in names), "ratio"
    )
    for record in records:
        job, result = record["job"], record["result"]
        ratio = result.get("function_std_ratio", {}).get("median")
        cells = [f"{result[name]:.4g}" for name in names]
        cells.append("no verdict" if ratio is None else f"{ratio:.2f}")
        table.add_row(job["data"], job["members"], result["sampled"], *cells)
    Console(width=130).print(table)


EXPERIMENT = Experiment(
    summary="`bochner check` on small tables: R-hat, effective sizes, time, and what it finds",
    jobs=_jobs,
    run=_run,
    report=_report,
)
