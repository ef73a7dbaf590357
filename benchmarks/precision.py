"""What rounded products and the card's own sine do to predictions: MNLL of the same fits, computed in other ways."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.report import markdown
from benchmarks.rounded_products import RoundedLayer
from bochner import datasets
from bochner.ops import AbstractBackend, PallasLayer, XlaLayer
from bochner.ops.fused_layer import Precision
from experiments.baselines import classification_scores, regression_scores
from experiments.provenance import origin
from experiments.runner import Experiment, Job
from experiments.watched import RandomFeatureClassifier, RandomFeatureRegressor

PATHS: Mapping[str, AbstractBackend] = {
    "XLA, float32": XlaLayer(),
    "kernels, float32": PallasLayer(where_faster=True),
    "tf32": PallasLayer(Precision.TF32, where_faster=True),
    "bfloat16": PallasLayer(Precision.BFLOAT16, where_faster=True),
}
EMULATED: Mapping[str, AbstractBackend] = {
    "tf32, emulated": RoundedLayer(Precision.TF32),
    "bfloat16, emulated": RoundedLayer(Precision.BFLOAT16),
}
"""The same rounding on a CPU, which has no such products."""

REFERENCE = "XLA, float32"
N_SEEDS = 5


class Fit(NamedTuple):
    """What is fitted, and how: a table, a preset, settings, the ways to compute it, and seeds."""

    data: str
    preset: str
    max_steps: int
    settings: Mapping[str, Any]
    paths: tuple[str, ...] = tuple(PATHS)
    n_seeds: int = N_SEEDS


_FROM_THE_START = {"n_mc_train": 1, "theta_from": 0}
_AS_PIXELS = {"preprocessing": "unit"}
FITS = {
    "powerplant": Fit("powerplant", "paper", 20_000, _FROM_THE_START),
    # In the middle of its training, where seeds differ the most.
    "mnist": Fit("mnist", "paper-mnist", 10_000, {**_FROM_THE_START, **_AS_PIXELS}),
    "mnist, no option set": Fit("mnist", "auto", 8_000, _AS_PIXELS),
    "mnist, one member": Fit(
        "mnist", "auto", 8_000, {**_AS_PIXELS, "n_members": 1}, (REFERENCE, *EMULATED), n_seeds=3
    ),
}


def jobs(quick: bool) -> Iterable[Job]:
    """Each way with the same seeds; quickly, few steps of the reference."""
    if quick:
        yield {"data": "powerplant", "path": REFERENCE, "seed": 0, "max_steps": 30}
        return
    for name, fit in FITS.items():
        for path in fit.paths:
            for seed in range(fit.n_seeds):
                yield {"data": name, "path": path, "seed": seed, "max_steps": fit.max_steps}


def run(job: Job) -> Mapping[str, Any]:
    """Train, and measure on the test rows."""
    fit = FITS[job["data"]]
    data, settings = datasets.load(fit.data), {**fit.settings, "max_steps": job["max_steps"]}
    path = {**PATHS, **EMULATED}[job["path"]]
    if data.is_classification:
        X, y, X_test, y_test = data.part(data.splits[0])
        method = RandomFeatureClassifier(fit.preset, settings, path=path)
        return classification_scores(method.fit(X, y, seed=job["seed"])(X_test), y_test)
    X, y, X_test, y_test = data.split(0)
    method = RandomFeatureRegressor(fit.preset, settings, path=path)
    return regression_scores(method.fit(X, y, seed=job["seed"])(X_test), y_test)


def report(records: list[dict[str, Any]], folder: Path) -> None:
    """Print the mean MNLL of each way, and its distance from the reference with the same seeds."""
    heads = ["data", "computed by", "MNLL", "difference", "standard error", "seeds"]
    table, lines = Table(*heads, title="Precision and MNLL"), []
    found: dict[tuple[str, str], dict[int, float]] = {}
    for record in records:
        job = record["job"]
        found.setdefault((job["data"], job["path"]), {})[job["seed"]] = record["result"]["mnll"]
    for (data, path), by_seed in found.items():
        reference = found.get((data, REFERENCE), {})
        differences = [
            value - reference[seed] for seed, value in by_seed.items() if seed in reference
        ]
        spread = (
            np.std(differences, ddof=1) / np.sqrt(len(differences))
            if len(differences) > 1
            else np.nan
        )
        mean = np.mean(differences) if differences else np.nan
        line = [
            data, path, f"{np.mean(list(by_seed.values())):.4f}", f"{mean:+.4f}", f"{spread:.4f}", str(len(by_seed)),
        ]  # fmt: skip
        lines.append(line)
        table.add_row(*line)
    Console(width=120).print(table)
    if any(
        record["job"]["max_steps"] < FITS[record["job"]["data"]].max_steps for record in records
    ):
        return  # quick numbers mean nothing, and must not take the place of others
    text = f"{markdown(heads[0], heads[1:], lines)}\n{origin(records)}\n"
    (folder / "precision.md").write_text(text, encoding="utf-8")


EXPERIMENT = Experiment(
    summary="MNLL of the same fits with rounded products", jobs=jobs, run=run, report=report
)
