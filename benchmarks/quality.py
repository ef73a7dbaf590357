"""How good predictions are, beside what people use today: the same splits for every system, in one run."""

import functools
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from bochner import DeepGPClassifier, DeepGPRegressor, datasets
from experiments.runner import Experiment, Job, accelerator, mean_and_deviation

REGRESSION = (
    "powerplant",
    "protein",
    "concrete",
    "energy",
    "wine_red",
    "boston",
    "yacht",
    "kin40k",
)
IN_BLOCKS = "eeg in blocks"
"""EEG with stretches of time as test rows: it is one recording, and random rows have neighbors in the training part."""
CLASSIFICATION = ("eeg", IN_BLOCKS, "spam", "mnist", "airline_nyc2013")
TABLES = (*REGRESSION, *CLASSIFICATION)
OURS: dict[str, dict[str, Any]] = {
    "bochner": {},
    "bochner, 20 s": {"max_seconds": 20},
    "bochner, paper": {"preset": "paper"},
}
PEERS = {
    "LightGBM": ("lightgbm", {}),
    "CatBoost": ("catboost", {}),
    "NGBoost": ("ngboost", {}),
    "GPyTorch SVGP": ("var-gp", {"n_inducing": 512}),
    "GPyTorch DGP": ("dsvi-2", {}),
}
SYSTEMS = (*OURS, *PEERS)
# The first ten of the standard splits were looked at while the method was explored; protein has only five.
_STANDARD, _FIRST_FIVE = range(10, 15), range(5)


def splits_of(name: str) -> range:
    """The splits that are reported: standard ones where there are any, else random ones by their seed."""
    if name in ("mnist", "airline_nyc2013"):
        return range(1)  # the test rows in use
    standard = name in REGRESSION and name not in ("protein", "kin40k")
    return _STANDARD if standard else _FIRST_FIVE


def jobs(quick: bool) -> Iterable[Job]:
    """Each system on each split of each table; quickly, ours alone on one split, hardly trained."""
    if quick:
        yield {"data": "yacht", "split": 10, "system": "bochner", "max_steps": 50}
        return
    for name in TABLES:
        for split in splits_of(name):
            for system in SYSTEMS:
                yield {"data": name, "split": split, "system": system}


def run(job: Job) -> Mapping[str, Any]:
    """Fit a system to the training part of a split, and measure it on the test part."""
    X, y, X_test, y_test = _parts(job["data"], job["split"])
    classes = job["data"] in CLASSIFICATION
    started = time.monotonic()
    if job["system"] in OURS:
        kind = DeepGPClassifier if classes else DeepGPRegressor
        settings = {**OURS[job["system"]], "max_steps": job.get("max_steps")}
        model = kind(random_state=job["split"], **settings).fit(X, y)
        seconds = time.monotonic() - started
        return {**model.evaluate(X_test, y_test), "fit_seconds": round(seconds, 2)}
    from experiments.baselines import (
        classification_scores,
        classifier,
        regression_scores,
        regressor,
    )

    name, settings = PEERS[job["system"]]
    if not classes:
        law = regressor(name, **settings).fit(X, y, seed=job["split"])
        seconds = time.monotonic() - started
        return {**regression_scores(law(X_test), y_test), "fit_seconds": round(seconds, 2)}
    labels, indices = np.unique(y, return_inverse=True)
    predict = classifier(name, **settings).fit(X, indices, seed=job["split"])
    seconds = time.monotonic() - started
    truth = np.searchsorted(labels, y_test)
    return {**classification_scores(predict(X_test), truth), "fit_seconds": round(seconds, 2)}


def _parts(name: str, split: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    return _loaded("eeg").block(2 * split) if name == IN_BLOCKS else _loaded(name).split(split)


@functools.lru_cache(maxsize=1)
def _loaded(name: str) -> Any:
    return datasets.load(name)


def report(records: list[dict[str, Any]], folder: Path) -> None:
    """Print a table for each measure, the best of each line in bold, and write them as Markdown.

    Where a system has fewer splits than others, it says how many, and is not ranked; seconds on an accelerator say so,
    and are not ranked either.
    """
    groups: dict[str, dict[str, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for record in sorted(records, key=lambda record: TABLES.index(record["job"]["data"])):
        result = {**record["result"], "accelerator": accelerator(record.get("machine", ""))}
        groups[record["job"]["data"]][record["job"]["system"]].append(result)
    systems = [name for name in SYSTEMS if any(name in group for group in groups.values())]
    texts = []
    for title, sign, timed, measure in (
        ("Test log-likelihood", 1, False, lambda result: -result["mnll"]),
        ("RMSE, or error rate", -1, False, lambda result: -result.get("rmse", result.get("error_rate"))),
        ("Seconds to fit", -1, True, lambda result: -result["fit_seconds"]),
    ):  # fmt: skip
        lines = [
            [name, *_cells([group.get(system) for system in systems], measure, sign, timed=timed)]
            for name, group in groups.items()
        ]
        table = Table("", *systems, title=title)
        for line in lines:
            table.add_row(*(cell.replace("**", "") for cell in line))
        Console().print(table)
        texts.append(markdown(title, systems, lines))
    coverage = [
        [name, *(_calibration(group.get(system)) for system in systems)]
        for name, group in groups.items()
    ]
    title = "Coverage of 90 % intervals, or expected calibration error"
    texts.append(markdown(title, systems, coverage))
    if any("max_steps" in record["job"] for record in records):
        return  # quick numbers mean nothing, and must not take the place of others
    (folder / "quality.md").write_text("\n".join(texts), encoding="utf-8")


def _cells(
    results: list[list[dict[str, Any]] | None], measure: Any, sign: int, *, timed: bool
) -> list[str]:
    n_splits = max(len(found) for found in results if found)
    texts, ranked = [], []
    for found in results:
        if not found:
            texts.append("")
            ranked.append(-np.inf)
            continue
        remarks = _accelerators(found) if timed else []
        if len(found) < n_splits:
            remarks.append(f"{len(found)} of {n_splits} splits")
        text = mean_and_deviation(sign * measure(one) for one in found)
        texts.append(f"{text} ({', '.join(remarks)})" if remarks else text)
        mean = float(np.mean([measure(one) for one in found]))
        ranked.append(-np.inf if remarks else mean)
    best = max(ranked)
    return [
        f"**{text}**" if mean == best > -np.inf else text
        for text, mean in zip(texts, ranked, strict=True)
    ]


def _accelerators(found: list[dict[str, Any]]) -> list[str]:
    """Say on which accelerators fits ran, and how many of them where some did not."""
    counts = Counter(one["accelerator"] for one in found)
    return [
        device if count == len(found) else f"{count} of {len(found)} on {device}"
        for device, count in sorted(counts.items())
        if device
    ]


def _calibration(found: list[dict[str, Any]] | None) -> str:
    if found is None:
        return ""
    name = "coverage_90" if "coverage_90" in found[0] else "ece"
    return f"{np.mean([one[name] for one in found]):.3f}"


def markdown(title: str, systems: list[str], lines: list[list[str]]) -> str:
    """Write a table, its title in the corner."""
    head = f"| {title} | {' | '.join(systems)} |\n| --- |{' --- |' * len(systems)}\n"
    return head + "".join(f"| {' | '.join(line)} |\n" for line in lines)


EXPERIMENT = Experiment(
    summary="predictions beside those of other systems", jobs=jobs, run=run, report=report
)
