"""Section 4.1: error and MNLL against training time beside other methods, on the paper's folds and standard splits."""

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from bochner import DeepGPClassifier, DeepGPRegressor, datasets
from experiments import baselines
from experiments.baselines import Observer, classification_scores, regression_scores
from experiments.runner import Experiment, Job, mean_and_deviation
from experiments.watched import RandomFeatureClassifier, RandomFeatureRegressor

DATA = ("powerplant", "protein", "spam", "eeg", "mnist")
KERNELS = {"dgp-rbf": "rbf", "dgp-arc": "arccos1"}
DEFAULTS = "bochner"
PAPER_METHODS = (*KERNELS, "dgp-ep", "dnn", "var-gp")
MORE_METHODS = ("mc-dropout", "dsvi-2", "lightgbm", "catboost")
SHALLOW = ("var-gp", "dsvi-2", "lightgbm", "catboost", DEFAULTS)
"""Methods whose depth is their own affair: they run once, with the models of one hidden layer."""

_STEPS = {"mnist": (38_000, 40_000)}
"""With one Monte Carlo sample, and in all; about a minute on two cores, or on a GPU for MNIST."""
_OTHER_STEPS = (80_000, 84_000)
_LABELS = {"rmse": "RMSE", "error_rate": "error rate", "mnll": "MNLL"}
_COLORS = {
    "dgp-rbf": "#1f5fa8", "dgp-arc": "#6baed6", "dgp-ep": "#d9822b", "dnn": "#4d9a4d", "var-gp": "#8a5fb0",
}  # fmt: skip


def _jobs(quick: bool) -> Iterable[Job]:
    if quick:
        for method in ("dgp-rbf", "dgp-ep", "dnn"):
            yield {
                "part": "paper", "data": "powerplant", "n_hidden": 1, "fold": 0, "method": method, "quick": True,
            }  # fmt: skip
        return
    for name in DATA:
        for n_hidden in (1, 2):
            for fold in range(3):
                for method in (*PAPER_METHODS, DEFAULTS):
                    if n_hidden == 1 or method not in SHALLOW:
                        yield {
                            "part": "paper", "data": name, "n_hidden": n_hidden, "fold": fold, "method": method,
                        }  # fmt: skip
    # The paper's folds test on about sqrt(n) rows, too few to rank methods by.
    for name in DATA[:-1]:
        for fold in range(3):
            for method in (*KERNELS, "dgp-ep", "var-gp", *MORE_METHODS, DEFAULTS):
                yield {
                    "part": "standard", "data": name, "n_hidden": 1, "fold": fold, "method": method,
                }  # fmt: skip


def _rows(job: Job) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    data = datasets.load(job["data"])
    if job["data"] == "mnist":  # one test part, of which the folds are seeds
        return data.part(data.splits[0])
    if job["part"] == "paper":
        return data.fold(job["fold"])
    return data.split(job["fold"])


def settings(job: Job) -> dict[str, Any]:
    """What a baseline is asked for: the settings of section 4.1 in the paper's part, its own elsewhere."""
    method, mnist = job["method"], job["data"] == "mnist"
    own: dict[str, Any] = {}
    if method in ("dnn", "mc-dropout", "dgp-ep", "var-gp", "dsvi-2"):
        # Folds come standardized, as in the paper; elsewhere raw columns are scaled robustly.
        scaled = "none" if job["part"] == "paper" else "robust"
        own["preprocessing"] = "unit" if mnist else scaled
    if method in ("dnn", "mc-dropout"):
        own |= {"n_hidden": job["n_hidden"], "n_steps": 40_000}
        if mnist:
            own |= {"units": 800, "batch_size": 1000, "learning_rate": 0.001}
    if method == "dgp-ep":
        own |= {"n_layers": job["n_hidden"] + 1, "n_steps": 2_000}
        if mnist:
            own |= {"width": 50, "n_inducing": 500, "learning_rate": 0.001}
    if method == "var-gp":
        own |= {"batch_size": 200}
    if job.get("quick"):
        own |= {"n_steps": 30 if method == "dgp-ep" else 500}
        own |= {"n_inducing": 20} if method == "dgp-ep" else {}
    return own


def _method(job: Job, classification: bool) -> Any:
    if job["method"] not in KERNELS:
        make = baselines.classifier if classification else baselines.regressor
        return make(job["method"], **settings(job))
    mnist, quick = job["data"] == "mnist", job.get("quick", False)
    many_from, n_steps = (600, 600) if quick else _STEPS.get(job["data"], _OTHER_STEPS)
    asked: dict[str, Any] = {
        "kernel": KERNELS[job["method"]],
        "n_layers": job["n_hidden"] + 1,
        "max_steps": n_steps,
    }
    if quick:
        asked["theta_from"] = 0
    if not mnist:
        asked["preprocessing"] = "none" if job["part"] == "paper" else "robust"
    kind = RandomFeatureClassifier if classification else RandomFeatureRegressor
    return kind("paper-mnist" if mnist else "paper", asked, many_from)


def _run(job: Job) -> Mapping[str, Any]:
    classification = datasets.load(job["data"]).is_classification
    X, y, X_test, y_test = _rows(job)
    if job["method"] == DEFAULTS:
        kind, started = DeepGPClassifier if classification else DeepGPRegressor, time.monotonic()
        estimator = kind(random_state=job["fold"]).fit(X, y)
        seconds = round(time.monotonic() - started, 2)
        return {**estimator.evaluate(X_test, y_test), "training_seconds": seconds, "curve": []}
    scores: Any = classification_scores if classification else regression_scores
    observer = Observer(lambda predictor: scores(predictor(X_test), y_test))
    predictor = _method(job, classification).fit(X, y, seed=job["fold"], observer=observer)
    seconds = observer.records[-1]["seconds"] if observer.records else observer.seconds()
    error = "error_rate" if classification else "rmse"
    return {
        **scores(predictor(X_test), y_test),
        "training_seconds": seconds,
        "curve": [
            {name: record[name] for name in ("step", "seconds", error, "mnll")}
            for record in observer.records
        ],
    }


def _report(records: list[dict[str, Any]], folder: Path) -> None:
    groups = defaultdict(list)
    for record in records:
        job = record["job"]
        groups[job["part"], job["data"], job["n_hidden"], job["method"]].append(record["result"])
    panels = dict.fromkeys(key[:3] for key in groups)
    for part, data, n_hidden in panels:
        table = Table(
            "method", "folds", "RMSE or error", "MNLL", "seconds",
            title=f"{data}, {n_hidden} hidden, {'the paper' if part == 'paper' else 'standard'} splits",
        )  # fmt: skip
        members = [(key[3], found) for key, found in groups.items() if key[:3] == (part, data, n_hidden)]  # fmt: skip
        for method, results in sorted(members, key=lambda m: np.mean([r["mnll"] for r in m[1]])):
            error = "rmse" if "rmse" in results[0] else "error_rate"
            table.add_row(
                method,
                str(len(results)),
                mean_and_deviation(result[error] for result in results),
                mean_and_deviation(result["mnll"] for result in results),
                f"{np.mean([result['training_seconds'] for result in results]):.1f}",
            )
        Console(width=100).print(table)
    if any(record["job"].get("quick") for record in records):
        return
    for n_hidden in (1, 2):
        chosen = {k: v for k, v in groups.items() if k[0] == "paper" and k[2] == n_hidden}
        if chosen:
            _draw(chosen, folder / f"comparison-{n_hidden}.png")


def _draw(groups: Mapping[tuple[str, str, int, str], list[dict[str, Any]]], path: Path) -> None:
    import matplotlib.pyplot as plt

    names = list(dict.fromkeys(key[1] for key in groups))
    figure, axes = plt.subplots(
        2, len(names), figsize=(3.4 * len(names), 5.2), layout="constrained", squeeze=False
    )
    for (_, data, _, method), results in groups.items():
        column = names.index(data)
        curves = [result["curve"] for result in results if result["curve"]]
        if not curves:
            continue
        error = "rmse" if "rmse" in curves[0][0] else "error_rate"
        n_looks = min(len(curve) for curve in curves)
        for row, metric in enumerate((error, "mnll")):
            seconds = np.mean([[look["seconds"] for look in c[:n_looks]] for c in curves], axis=0)
            values = np.mean([[look[metric] for look in c[:n_looks]] for c in curves], axis=0)
            axes[row, column].plot(seconds, values, label=method.upper(), color=_COLORS.get(method))
            axes[row, column].set_xscale("log")
            axes[row, column].xaxis.set_major_formatter("{x:g}")
            axes[row, column].xaxis.set_minor_formatter("")
            axes[row, column].set_ylabel(_LABELS[metric])
    for column, name in enumerate(names):
        axes[0, column].set_title(name)
        axes[1, column].set_xlabel("seconds of training")
    axes[0, 0].legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=110)
    plt.close(figure)


EXPERIMENT = Experiment(
    summary="error and MNLL over training time beside DGP-EP, DNN, VAR-GP and today's methods (section 4.1)",
    jobs=_jobs,
    run=_run,
    report=_report,
)
