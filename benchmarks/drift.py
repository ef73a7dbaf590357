"""A stream whose function turns and whose noise grows: a model as fitted, one that learns on, one calibrated, too."""

import copy
import dataclasses
import time
from pathlib import Path
from typing import Any

import numpy as np

from bochner import DeepGPRegressor, Landmarks

N_FIRST, N_BATCH, COVERAGE = 2_000, 2_000, 0.9
FORGETTING = 1e-4
KINDS = ("as fitted", "updated", "updated and calibrated")


def draw(generator: np.random.Generator, start: int, n: int, n_rows: int) -> tuple[Any, Any, Any]:
    """Draw rows of the stream from a place on, with the deviation of the noise of each."""
    X = generator.uniform(-2, 2, size=(n, 2))
    share = (start + np.arange(n)) / n_rows
    deviation = np.where(share < 0.5, 0.2, 0.5)
    f = np.sin(2 * X[:, 0] + 2 * np.pi * share) + 0.5 * X[:, 1]
    return X, f + deviation * generator.normal(size=n), deviation


def follow(n_rows: int) -> dict[str, Any]:
    """Predict each batch before it is learned, and note errors and coverage; the seconds are of updates alone."""
    generator = np.random.default_rng(0)
    X, y, _ = draw(generator, 0, N_FIRST, n_rows)
    member = Landmarks(n_landmarks=100, kernel="rbf + linear + constant", varying_noise=False)
    fitted = DeepGPRegressor(member, random_state=0).fit(X, y)
    models = {kind: copy.deepcopy(fitted) for kind in KINDS}
    found: dict[str, Any] = {kind: {"rmse": [], "coverage": []} for kind in KINDS}
    found |= {"n_rows": n_rows, "noise": [], "rows": [], "seconds": 0.0}
    for start in range(0, n_rows, N_BATCH):
        X, y, deviation = draw(generator, start, N_BATCH, n_rows)
        found["rows"].append(start + N_BATCH)
        found["noise"].append(float(np.sqrt(np.mean(deviation**2))))
        for kind, model in models.items():
            ends = [(1 - COVERAGE) / 2, (1 + COVERAGE) / 2]
            summary = model.predict_summary(X, ends)
            low, high = summary["quantiles"].T
            found[kind]["rmse"].append(float(np.sqrt(np.mean((y - summary["mean"]) ** 2))))
            found[kind]["coverage"].append(float(np.mean((low <= y) & (y <= high))))
        calibrated = models[KINDS[2]].calibrate(X, y, forgetting=FORGETTING * 10)
        begun = time.perf_counter()
        updated = models[KINDS[1]].update(X, y, forgetting=FORGETTING)
        found["seconds"] += time.perf_counter() - begun
        calibration = calibrated.fitted_.calibration
        calibrated.fitted_ = _with(updated.fitted_, calibration)
    return found


def _with(fitted: Any, calibration: Any) -> Any:
    return dataclasses.replace(fitted, calibration=calibration)


def draw_picture(found: dict[str, Any], path: Path) -> None:
    """Draw error and coverage along the stream, means of ten batches."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.4), layout="constrained")
    of_error, of_coverage = figure.subplots(1, 2)
    millions = _means(found["rows"]) / 1e6
    for kind in KINDS:
        if kind != KINDS[2]:
            of_error.plot(millions, _means(found[kind]["rmse"]), label=kind)
        of_coverage.plot(millions, _means(found[kind]["coverage"]), label=kind)
    of_error.plot(millions, _means(found["noise"]), "k:", label="noise alone")
    of_coverage.axhline(COVERAGE, color="k", linestyle=":")
    of_error.set(xlabel="million rows", ylabel="RMSE of rows not yet learned", ylim=(0, None))
    of_coverage.set(xlabel="million rows", ylabel="coverage of 90 % intervals", ylim=(0, 1))
    of_error.legend(frameon=False)
    of_coverage.legend(frameon=False, loc=(0.14, 0.58))
    figure.savefig(path, dpi=110)


def _means(values: list[float]) -> np.ndarray:
    n = min(10, len(values))
    return np.array(values[: len(values) // n * n]).reshape(-1, n).mean(axis=1)
