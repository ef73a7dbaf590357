"""The estimators with no option set: test log-likelihood and error on the standard splits and on EEG."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from bochner import DeepGPClassifier, DeepGPRegressor, datasets
from experiments.runner import Experiment, Job, mean_and_deviation

REGRESSION = ("powerplant", "protein", "concrete", "energy", "wine_red", "boston", "yacht")
# The first ten splits were looked at while the method was explored; protein has only five.
SPLITS = {name: range(10, 15) for name in REGRESSION} | {"protein": range(5)}


def _jobs(quick: bool) -> Iterable[Job]:
    steps = {"max_steps": 300} if quick else {}
    for name in ("yacht",) if quick else REGRESSION:
        for split in SPLITS[name][: 1 if quick else None]:
            yield {"data": name, "split": split, **steps}
    for seed in range(1 if quick else 5):
        yield {"data": "eeg", "split": seed, **steps}


def _run(job: Job) -> Mapping[str, Any]:
    data = datasets.load(job["data"])
    if data.splits:
        test_rows = data.splits[job["split"]]
    else:
        order = np.random.default_rng(job["split"]).permutation(len(data.y))
        test_rows = order[: len(order) // 10]
    X, y, X_test, y_test = data.part(test_rows)
    estimator = DeepGPClassifier if data.is_classification else DeepGPRegressor
    model = estimator(random_state=job["split"], max_steps=job.get("max_steps")).fit(X, y)
    trained = model.history_[-1]["seconds"]
    return {**model.evaluate(X_test, y_test), "training_seconds": round(trained, 2)}


def _report(records: list[dict[str, Any]], folder: Path) -> None:
    groups = defaultdict(list)
    for record in records:
        groups[record["job"]["data"]].append(record["result"])
    table = Table(
        "data", "splits", "test log-likelihood", "RMSE or error", "coverage or ECE", "seconds"
    )
    for name, results in groups.items():
        first = results[0]
        error, calibration = ("rmse", "coverage_90") if "rmse" in first else ("error_rate", "ece")
        table.add_row(
            name,
            str(len(results)),
            mean_and_deviation(-result["mnll"] for result in results),
            mean_and_deviation(result[error] for result in results),
            f"{np.mean([result[calibration] for result in results]):.3f}",
            f"{np.mean([result['training_seconds'] for result in results]):.0f}",
        )
    Console().print(table)


EXPERIMENT = Experiment(
    summary="the estimators with no option set, on the standard splits and on EEG",
    jobs=_jobs,
    run=_run,
    report=_report,
)
