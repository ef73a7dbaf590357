"""Our deep model on all splits of every table with several seeds, all splits trained together: is there a collapse?"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.report import markdown
from benchmarks.suite.tables import ALL_STANDARD
from bochner import Deep, DeepGPClassifier, DeepGPRegressor, datasets, fit_together
from experiments.provenance import origin
from experiments.runner import Experiment, Job, mean_and_deviation

N_SPLITS = {"protein": 5, "kin40k": 5, "eeg": 5, "spam": 5}
"""Standard splits are twenty but for protein; random ones are five."""

SEEDS = range(3)
_FIRST_UNSEEN = 10
"""The splits before it were looked at while the method was explored; where there are fewer, all were."""

TABLES = (*ALL_STANDARD, *N_SPLITS)


def jobs(quick: bool) -> Iterable[Job]:
    """Each table with each seed; quickly, two splits of one, hardly trained."""
    if quick:
        yield {"data": "yacht", "seed": 0, "n_splits": 2, "max_steps": 30}
        return
    for name in TABLES:
        for seed in SEEDS:
            yield {"data": name, "seed": seed, "n_splits": N_SPLITS.get(name, 20)}


def run(job: Job) -> Mapping[str, Any]:
    """Fit all splits together, and measure each on its test rows, beside a constant."""
    data = datasets.load(job["data"])
    kind: Any = DeepGPClassifier if data.is_classification else DeepGPRegressor
    parts = [data.split(number) for number in range(job["n_splits"])]
    deep = Deep(max_steps=job.get("max_steps"))
    models = [kind(deep, random_state=job["seed"]) for _ in parts]
    fit_together(models, [(X, y) for X, y, _, _ in parts])
    scores = [
        {**model.evaluate(X_test, y_test), "mnll_of_constant": _constant(y, y_test, data.is_classification)}
        for model, (_, y, X_test, y_test) in zip(models, parts, strict=True)
    ]  # fmt: skip
    return {
        "splits": scores,
        "mnll": float(np.mean([score["mnll"] for score in scores])),
        "training_seconds": round(models[0].history_[-1]["seconds"], 2),
    }


def _constant(y: np.ndarray, y_test: np.ndarray, classification: bool) -> float:
    """The MNLL of one Gaussian for all rows, or of the frequencies of the classes."""
    if classification:
        labels, counts = np.unique(y, return_counts=True)
        shares = counts[np.searchsorted(labels, y_test)] / len(y)
        return float(-np.mean(np.log(shares)))
    variance = np.var(y)
    return float(0.5 * np.mean((y_test - y.mean()) ** 2 / variance + np.log(2 * np.pi * variance)))


def report(records: list[dict[str, Any]], folder: Path) -> None:
    """Print means over splits and seeds, the unseen splits apart, and the worst of all against a constant."""
    table = Table(
        "", "fits", "log-likelihood", "the same, unseen splits", "RMSE or error", "coverage or ECE",
        "worst log-likelihood", "its constant's", "collapses", "training s",
        title="The deep model on all splits and seeds",
    )  # fmt: skip
    lines = []
    for name in dict.fromkeys(record["job"]["data"] for record in records):
        own = [record for record in records if record["job"]["data"] == name]
        scores = [score for record in own for score in record["result"]["splits"]]
        unseen = [s for record in own for s in record["result"]["splits"][_FIRST_UNSEEN:]]
        error = "rmse" if "rmse" in scores[0] else "error_rate"
        calibration = "coverage_90" if "coverage_90" in scores[0] else "ece"
        worst = max(scores, key=lambda score: score["mnll"])
        seconds = np.mean([record["result"]["training_seconds"] for record in own])
        lines.append(
            [
                name,
                str(len(scores)),
                mean_and_deviation(-score["mnll"] for score in scores),
                mean_and_deviation(-score["mnll"] for score in unseen) if unseen else "",
                mean_and_deviation(score[error] for score in scores),
                f"{np.mean([score[calibration] for score in scores]):.3f}",
                f"{-worst['mnll']:.3f}",
                f"{-worst['mnll_of_constant']:.3f}",
                str(sum(score["mnll"] > score["mnll_of_constant"] for score in scores)),
                f"{seconds:.0f}",
            ]
        )
        table.add_row(*lines[-1])
    Console(width=150).print(table)
    if any("max_steps" in record["job"] for record in records):
        return  # quick numbers mean nothing, and must not take the place of others
    heads = [str(column.header) for column in table.columns]
    text = f"{markdown(heads[0], heads[1:], lines)}\n{origin(records)}\n"
    (folder / "splits.md").write_text(text, encoding="utf-8")


EXPERIMENT = Experiment(
    summary="our deep model on all splits and seeds", jobs=jobs, run=run, report=report
)
