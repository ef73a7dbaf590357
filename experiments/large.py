"""Table 1: MNIST, the MNIST8M-like digits and flights, with RBF and arc-cosine kernels, beside cited results."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from bochner import DeepGPClassifier, datasets
from bochner.datasets.infinite_digits import N_IMAGES, N_TEST, InfiniteDigits
from experiments import baselines
from experiments.baselines import Observer, classification_scores
from experiments.baselines.interface import ClassificationPredictor
from experiments.runner import Experiment, Job
from experiments.watched import RandomFeatureClassifier, probabilities

CITED = {
    "mnist": [
        ("the paper, RBF, 1 hidden layer", 98.04, None),
        ("the paper, RBF, 2 hidden layers", 97.93, None),
        ("the paper, RBF, 1 hidden layer, fed inputs", 98.2, None),
        ("variational GP with MCMC (Hensman et al. 2015)", 98.04, None),
        ("AutoGP (Krauth et al. 2017)", 98.45, None),
        ("DNN (Simard et al. 2003)", 98.5, None),
        ("SVM (Schoelkopf 1997)", 98.6, None),
    ],
    "mnist8m": [
        ("the paper, RBF", 99.14, 0.0454),
        ("the paper, arc-cosine", 99.04, 0.0465),
        ("AutoGP (Krauth et al. 2017)", 99.11, None),
    ],
    "airline_nyc2013": [
        ("the paper, RBF (2008, 5 million flights)", 78.55, 0.4583),
        ("the paper, arc-cosine (2008)", 72.76, 0.5335),
        ("SV-DKL (Wilson et al. 2016; 2008)", 78.1, 0.457),
    ],
}
"""Accuracy in percent and MNLL as published; those of flights are of another year."""

KERNELS = ("rbf", "arccos1")
DEFAULTS = "defaults"
_IMAGES = ("mnist", "mnist8m")
_N_TEST_ROWS_WATCHED = 5_000
_N_DIGITS_TO_START = 1_000
_LONGER = {140_000: 4, 400_000: 6}
"""The first color of trainings of these numbers of steps."""

OURS: dict[str, dict[str, Any]] = {
    "images": {
        "feed_inputs": True,
        "frequencies": "orthogonal",
        "local_reparameterization": True,
        "schedule": "cosine",
        "initial_log_var": -6.0,
        "n_mc_train": 1,
        "theta_from": 0,
        "n_random_features": 1_000,
        "lengthscale_factor": 0.5,
        "learning_rate": 0.003,
    },
    "flights": {
        "feed_inputs": True,
        "width": 10,
        "n_random_features": 500,
        "lengthscale_factor": 0.5,
        "frequencies": "orthogonal",
        "local_reparameterization": True,
        "schedule": "cosine",
        "initial_log_var": -6.0,
        "n_mc_train": 1,
        "theta_from": 0,
        "batch_size": 1_000,
        "learning_rate": 0.03,
    },
}
"""What differs from the paper's settings under `settings: ours`."""


def _jobs(quick: bool) -> Iterable[Job]:
    if quick:
        size: dict[str, Any] = {"max_steps": 40, "n_test": 500, "n_draws": 2}
        for name in ("mnist", "mnist8m"):
            yield _job(name, "paper", **size)
        yield _job("airline_nyc2013", "ours", **size)
        return
    for kernel in KERNELS:
        for feed in (False, True):
            for n_hidden in (1, 2, 3, 4):
                yield _job("mnist", "paper", kernel, n_hidden, feed, max_steps=40_000)
    # The MNLL still falls after 40,000 steps, and rises before 400,000: test rows of that run peak near step 140,000.
    # So the run that ends there is a peak, as the paper's numbers are, and not a fair choice.
    for kernel in KERNELS:
        yield _job("mnist", "paper", kernel, max_steps=400_000)
    for n_hidden, feed in ((1, False), (1, True), (2, False)):
        yield _job("mnist", "paper", "rbf", n_hidden, feed, max_steps=140_000)
    yield _job("mnist", "ours", max_steps=40_000)
    yield {"data": "mnist", "settings": DEFAULTS}
    for name, steps in (("airline_nyc2013", 60_000), ("airline", 100_000)):
        for kernel in KERNELS:
            yield _job(name, "paper", kernel, max_steps=steps)
        yield _job(name, "ours", max_steps=steps)
        yield {"data": name, "settings": DEFAULTS}
        yield {"data": name, "settings": "lightgbm"}
    for kernel in KERNELS:
        yield _job("mnist8m", "paper", kernel, max_steps=100_000)
    yield _job("mnist8m", "ours", max_steps=100_000)


def _job(
    data: str,
    settings: str,
    kernel: str = "rbf",
    n_hidden: int = 1,
    feed: bool = False,
    **size: int,
) -> dict[str, Any]:
    return {
        "data": data, "settings": settings, "kernel": kernel, "n_hidden": n_hidden,
        "feed_inputs": feed or settings == "ours", **size,
    }  # fmt: skip


def _method(job: Job) -> RandomFeatureClassifier:
    images = job["data"] in _IMAGES
    asked: dict[str, Any] = {
        "kernel": job["kernel"],
        "n_layers": job["n_hidden"] + 1,
        "feed_inputs": job["feed_inputs"],
        "max_steps": job["max_steps"],
    }
    if "n_draws" in job:
        asked |= {"n_mc_train": job["n_draws"], "n_mc_predict": job["n_draws"]}
    if job["settings"] == "ours":
        asked |= OURS["images" if images else "flights"]
    # The paper turns to 100 samples after half of the time, which is the last thirtieth of the steps.
    return RandomFeatureClassifier(
        "paper-mnist" if images else "paper", asked, many_samples_from=job["max_steps"] * 29 // 30
    )


def _run(job: Job) -> Mapping[str, Any]:
    data = datasets.load(job["data"])
    if job["data"] == "mnist8m":
        return _run_mnist8m(job, data)
    X, y, X_test, y_test = data.part(data.splits[0])
    X_test, y_test = X_test[: job.get("n_test")], y_test[: job.get("n_test")]
    if job["settings"] == DEFAULTS:
        model = DeepGPClassifier(random_state=0).fit(X, y)
        return {**model.evaluate(X_test, y_test), "n_train": len(y), "curve": []}
    observer = _observer(X_test, y_test)
    if job["settings"] == "lightgbm":
        predictor = baselines.classifier("lightgbm").fit(X, y, seed=0)
    else:
        predictor = _method(job).fit(X, y, seed=0, observer=observer)
    return {
        **classification_scores(predictor(X_test), y_test),
        "n_train": len(y),
        "curve": observer.records,
    }


def _run_mnist8m(job: Job, data: datasets.Dataset) -> Mapping[str, Any]:
    test = data.splits[0][: job.get("n_test")]
    X_test, y_test = data.X[test], data.y[test]
    observer = _observer(X_test, y_test)
    predictor = fit_generated_digits(_method(job), data, seed=0, observer=observer)
    return {
        **classification_scores(predictor(X_test), y_test),
        "n_train": N_IMAGES - N_TEST,
        "curve": observer.records,
    }


def fit_generated_digits(
    method: RandomFeatureClassifier, data: datasets.Dataset, *, seed: int, observer: Observer
) -> ClassificationPredictor:
    """Train on images made inside the compiled steps."""
    assert isinstance(data.X, InfiniteDigits)
    X, y = data.X[:_N_DIGITS_TO_START], data.y[:_N_DIGITS_TO_START]
    return probabilities(method.fit_model(X, y, seed=seed, observer=observer, data=data.X.table()))


def _observer(X_test: np.ndarray, y_test: np.ndarray) -> Observer:
    X_seen, y_seen = X_test[:_N_TEST_ROWS_WATCHED], y_test[:_N_TEST_ROWS_WATCHED]
    return Observer(lambda predictor: classification_scores(predictor(X_seen), y_seen))


def _report(records: list[dict[str, Any]], folder: Path) -> None:
    for name in dict.fromkeys(record["job"]["data"] for record in records):
        table = Table("", "accuracy, %", "MNLL", "training s", "machine", title=name)
        for record in records:
            job, result = record["job"], record["result"]
            if job["data"] != name:
                continue
            seconds = result["curve"][-1]["seconds"] if result["curve"] else record["seconds"]
            table.add_row(
                _title(job),
                f"{100 * (1 - result['error_rate']):.2f}",
                f"{result['mnll']:.4f}",
                f"{seconds:.0f}",
                record["machine"],
            )
        for title, accuracy, mnll in CITED.get(name, []):
            table.add_row(
                f"cited: {title}", f"{accuracy}", "" if mnll is None else f"{mnll}", "", ""
            )
        Console(width=150).print(table)
    if records and not any("n_test" in record["job"] for record in records):
        _draw([record for record in records if record["result"]["curve"]], folder / "large.png")


def _title(job: Job) -> str:
    if job["settings"] == "lightgbm":
        return "LightGBM, leaves and trees chosen on held-out rows"
    if job["settings"] == DEFAULTS:
        return "defaults: no option set"
    return f"{_name(job)}, {job['max_steps']:,} steps"


def _name(job: Job) -> str:
    fed = ", fed inputs" if job["feed_inputs"] else ""
    return f"{job['settings']}, {job['kernel']}, {job['n_hidden']} hidden{fed}"


def _draw(records: list[dict[str, Any]], path: Path) -> None:
    import matplotlib.pyplot as plt

    # MNIST has many models; a panel for each kernel keeps them apart.
    panels: dict[str, list[dict[str, Any]]] = {}
    for record in records:
        job = record["job"]
        kernel = f", {job['kernel']}" if job["data"] == "mnist" else ""
        panels.setdefault(job["data"] + kernel, []).append(record)
    if not panels:
        return
    figure, axes = plt.subplots(
        2, len(panels), figsize=(3.8 * len(panels), 6.6), layout="constrained", squeeze=False
    )
    for column, (title, found) in enumerate(panels.items()):
        for row, (metric, label) in enumerate((("error_rate", "error rate"), ("mnll", "MNLL"))):
            ax = axes[row, column]
            for record in found:
                job, curve = record["job"], record["result"]["curve"]
                ax.plot(
                    [look["seconds"] for look in curve],
                    [look[metric] for look in curve],
                    **_style(job, many=title.startswith("mnist,")),
                )
            ax.set_yscale("log")
            ax.yaxis.set_major_formatter("{x:g}")
            ax.yaxis.set_minor_formatter("{x:g}" if title.startswith("airline") else "")
            ax.set_ylabel(label)
        axes[0, column].set_title(title)
        axes[1, column].set_xlabel("seconds of training")
        axes[1, column].legend(
            loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2, frameon=False, fontsize=7
        )
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _style(job: Job, *, many: bool) -> dict[str, Any]:
    """Color by depth, dashes for fed inputs, and colors of their own for long trainings, where models are many."""
    if job["settings"] == "ours":
        return {"label": "ours", "color": "#1a1a1a"}
    if not many:
        return {"label": f"{job['settings']}, {job['kernel']}"}
    fed = ", fed" if job["feed_inputs"] else ""
    steps = f", {job['max_steps']:,} steps" if job["max_steps"] in _LONGER else ""
    return {
        "label": f"{job['n_hidden']} hidden{fed}{steps}",
        "color": f"C{_LONGER.get(job['max_steps'], 0) + job['n_hidden'] - 1}",
        "linestyle": "--" if job["feed_inputs"] else "-",
    }


EXPERIMENT = Experiment(
    summary="MNIST, MNIST8M-like digits and flights: accuracy and MNLL beside cited results (table 1)",
    jobs=_jobs,
    run=_run,
    report=_report,
)
