"""Section 3.3 and the supplement: three treatments of Omega against the number of random features."""

import dataclasses
import itertools
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from bochner import datasets
from experiments.baselines import classification_scores, regression_scores
from experiments.runner import Experiment, Job, mean_and_deviation
from experiments.watched import RandomFeatureClassifier, RandomFeatureRegressor

TREATMENTS = ("prior-fixed", "var-fixed", "var-resampled")
N_FEATURES = {"main": (10, 20, 50, 100, 200), "supplement": (10, 50, 200)}
"""Of the figure in the main text, and of the supplement's many panels."""

DATA = ("eeg", "spam", "powerplant", "protein", "mnist")
N_HIDDEN = (1, 2)
KERNELS = {"rbf": "RBF", "arccos1": "arc-cosine"}
_COLORS = {"prior-fixed": "#d9822b", "var-fixed": "#1f5fa8", "var-resampled": "#4d9a4d"}
_MANY_SAMPLES_FROM, _MAX_STEPS = 22_000, 24_000
_LABELS = {"rmse": "RMSE", "error_rate": "error rate", "mnll": "MNLL"}


def _jobs(quick: bool) -> Iterable[Job]:
    size: dict[str, Any] = {"max_steps": _MAX_STEPS, "many_samples_from": _MANY_SAMPLES_FROM}
    if quick:
        size = {"max_steps": 300, "many_samples_from": 300, "theta_from": 0}
    for n_features in N_FEATURES["main"][: 1 if quick else None]:
        for fold in range(1 if quick else 3):
            for omega in TREATMENTS:
                yield {
                    "part": "main", "data": "eeg", "n_hidden": 1, "kernel": "rbf", "omega": omega,
                    "n_features": n_features, "fold": fold, **size,
                }  # fmt: skip
    if quick:
        return
    for name, n_hidden, kernel, n_features, omega in itertools.product(
        DATA, N_HIDDEN, KERNELS, N_FEATURES["supplement"], TREATMENTS
    ):
        yield {
            "part": "supplement", "data": name, "n_hidden": n_hidden, "kernel": kernel, "omega": omega,
            "n_features": n_features, "fold": 0, **size,
        }  # fmt: skip


def _run(job: Job) -> Mapping[str, Any]:
    data = datasets.load(job["data"])
    is_image = job["data"] == "mnist"
    # The paper's folds test on about sqrt(n) rows; the many panels have one split each, and so a tenth.
    is_fold = job["part"] == "main"
    X, y, X_test, y_test = data.fold(job["fold"]) if is_fold else data.split(job["fold"])
    settings = {
        "kernel": job["kernel"],
        "n_layers": job["n_hidden"] + 1,
        "n_random_features": job["n_features"],
        "omega": job["omega"],
        "max_steps": job["max_steps"],
        "preprocessing": "unit" if is_image else "none" if is_fold else "standard",
        "theta_from": job.get("theta_from"),
    }
    method = (RandomFeatureClassifier if data.is_classification else RandomFeatureRegressor)(
        "paper-mnist" if is_image else "paper", settings, job["many_samples_from"]
    )
    predicted = method.fit(X, y, seed=job["fold"])(X_test)
    scores = classification_scores if data.is_classification else regression_scores
    return {"n_test": len(y_test), **scores(predicted, y_test)}  # pyright: ignore[reportArgumentType]


@dataclasses.dataclass(frozen=True)
class _Panel:
    part: str
    data: str
    n_hidden: int
    kernel: str


def _report(records: list[dict[str, Any]], folder: Path) -> None:
    groups: dict[_Panel, dict[tuple[str, int], list[dict[str, Any]]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for record in records:
        job = record["job"]
        panel = _Panel(job["part"], job["data"], job["n_hidden"], job["kernel"])
        groups[panel][job["omega"], job["n_features"]].append(record["result"])
    for panel, found in groups.items():
        numbers = sorted({n for _, n in found})
        error = _error_name(found)
        title = f"{panel.data}, {panel.n_hidden} hidden, {KERNELS[panel.kernel]} ({panel.part})"
        table = Table("Omega", "metric", *(f"{n} features" for n in numbers), title=title)
        for omega in TREATMENTS:
            for metric in (error, "mnll"):
                cells = [
                    mean_and_deviation(r[metric] for r in found[omega, n]) if (omega, n) in found else ""
                    for n in numbers
                ]  # fmt: skip
                table.add_row(omega, _LABELS[metric], *cells)
        Console(width=130).print(table)
    if any(record["job"]["max_steps"] < _MAX_STEPS for record in records):
        return
    for (part, n_hidden), name in {
        ("main", 1): "omega.png",
        **{("supplement", n): f"omega-supplement-{n}.png" for n in N_HIDDEN},
    }.items():
        panels = {p: g for p, g in groups.items() if (p.part, p.n_hidden) == (part, n_hidden)}
        if panels:
            _draw(panels, folder / name)


def _error_name(found: Mapping[Any, list[dict[str, Any]]]) -> str:
    first = next(iter(found.values()))[0]
    return "rmse" if "rmse" in first else "error_rate"


def _draw(groups: Mapping[_Panel, Mapping[tuple[str, int], list]], path: Path) -> None:
    import matplotlib.pyplot as plt

    # A column for each table, two rows for each kernel.
    tables = list(dict.fromkeys(panel.data for panel in groups))
    kernels = list(dict.fromkeys(panel.kernel for panel in groups))
    size = (3.4 * len(tables), 5.2 * len(kernels))
    figure, axes = plt.subplots(
        2 * len(kernels), len(tables), figsize=size, layout="constrained", squeeze=False
    )
    for panel, found in groups.items():
        column, first_row = tables.index(panel.data), 2 * kernels.index(panel.kernel)
        for row, metric in enumerate((_error_name(found), "mnll"), start=first_row):
            ax = axes[row, column]
            for omega in TREATMENTS:
                numbers = sorted(n for treatment, n in found if treatment == omega)
                values = [[r[metric] for r in found[omega, n]] for n in numbers]
                means = [np.mean(v) for v in values]
                spread = [np.std(v) / np.sqrt(len(v)) for v in values]
                ax.errorbar(
                    numbers, means, spread, fmt="o-", capsize=2, markersize=4,
                    color=_COLORS[omega], label=omega.upper(),
                )  # fmt: skip
            ax.set_xscale("log")
            numbers = sorted({n for _, n in found})
            ax.set_xticks(numbers, [str(n) for n in numbers])
            ax.minorticks_off()
            ax.set_ylabel(_LABELS[metric])
        axes[first_row, column].set_title(f"{panel.data}, {KERNELS[panel.kernel]}")
        axes[first_row + 1, column].set_xlabel("random features")
    axes[0, 0].legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=110)
    plt.close(figure)


EXPERIMENT = Experiment(
    summary="error and MNLL of the three treatments of Omega against the number of features (section 3.3)",
    jobs=_jobs,
    run=_run,
    report=_report,
)
