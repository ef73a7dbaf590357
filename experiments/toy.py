"""Depth on a toy: the two-layer function of the supplement, `h(h(x))` with `h(x) = 2 x exp(-x^2)`, and a step."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from bochner import Deep, DeepGPRegressor
from bochner.datasets.simulated import FUNCTIONS
from experiments.runner import Experiment, Job, mean_and_deviation


def _data(function: str, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2, 2, size=n)
    return x[:, None], FUNCTIONS[function](x) + 0.1 * rng.normal(size=n)


def _jobs(quick: bool) -> Iterable[Job]:
    for function in FUNCTIONS:
        for n_layers in (1, 2) if quick else (1, 2, 3):
            for seed in range(1 if quick else 5):
                yield {
                    "function": function,
                    "n_layers": n_layers,
                    "seed": seed,
                    "max_steps": 300 if quick else 5_000,
                }


def _run(job: Job) -> Mapping[str, Any]:
    X, y = _data(job["function"], 50, seed=job["seed"])
    X_test, y_test = _data(job["function"], 1000, seed=1000 + job["seed"])
    model = DeepGPRegressor(
        Deep(n_layers=job["n_layers"], max_steps=job["max_steps"]), random_state=job["seed"]
    ).fit(X, y)
    return {**model.evaluate(X_test, y_test), "elbo": model.elbo_}


def _report(records: list[dict[str, Any]], folder: Path) -> None:
    groups = defaultdict(list)
    for record in records:
        groups[record["job"]["function"], record["job"]["n_layers"]].append(record["result"])
    names = ("rmse", "mnll", "coverage_90", "elbo")
    table = Table("function", "layers", *names)
    for (function, n_layers), results in groups.items():
        cells = [mean_and_deviation(result[name] for result in results) for name in names]
        table.add_row(function, str(n_layers), *cells)
    Console().print(table)


EXPERIMENT = Experiment(
    summary="one to three layers on a composed function and a step, 50 points",
    jobs=_jobs,
    run=_run,
    report=_report,
)
