"""Coverage of predictive intervals on held-out rows, against the number of random features.

Two parts: estimators on public tables, and, where everything is known, exact posteriors of one layer's random features
for functions drawn from the Gaussian process itself.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from bochner import Deep, DeepGPRegressor, datasets
from experiments.runner import Experiment, Job

N_SPLITS = {
    "yacht": 2, "boston": 2, "energy": 2, "concrete": 2, "wine_red": 2, "powerplant": 1, "protein": 1,
}  # fmt: skip
"""Small tables have few test rows a split."""
N_FEATURES = (20, 50, 100, 200, 400)
COVERAGES = (0.5, 0.8, 0.9, 0.95)
N_SIMULATED = (200, 1_000, 4_000)
MAX_ROWS_MEASURED = 2_000


def _jobs(quick: bool) -> Iterable[Job]:
    steps = 5_000
    if quick:
        yield {"data": "energy", "split": 0, "n_features": N_FEATURES[0], "max_steps": 200}
        yield {"data": "simulated", "n_rows": N_SIMULATED[0], "seed": 0}
        return
    for name, n_splits in N_SPLITS.items():
        for split in range(n_splits):
            for n_features in N_FEATURES:
                yield {"data": name, "split": split, "n_features": n_features, "max_steps": steps}
    for n_rows in N_SIMULATED:
        for seed in range(3):
            yield {"data": "simulated", "n_rows": n_rows, "seed": seed}


def _run(job: Job) -> Mapping[str, Any]:
    return _run_simulated(job) if job["data"] == "simulated" else _run_table(job)


def _run_simulated(job: Job) -> Mapping[str, Any]:
    """Give the coverage of 90 % intervals with exact kernels, and with exact posteriors over the weights."""
    generator = np.random.default_rng(job["seed"])
    n, n_test, d_in, noise = job["n_rows"], 1000, 4, 0.1
    X = generator.normal(size=(n + n_test, d_in)) / math.sqrt(d_in)  # a lengthscale of sqrt(d_in)
    K = np.exp(-0.5 * np.maximum(_squared_distances(X), 0.0))
    f = np.linalg.cholesky(K + 1e-9 * np.eye(len(X))) @ generator.normal(size=len(X))
    y = f + math.sqrt(noise) * generator.normal(size=len(X))
    coverage, deviation = {}, {}
    gain = np.linalg.solve(K[:n, :n] + noise * np.eye(n), K[:n, n:])
    variance = 1.0 - np.einsum("ij,ij->j", K[:n, n:], gain)
    coverage["exact"], deviation["exact"] = _judged(y[n:], f[n:], gain.T @ y[:n], variance, noise)
    for n_features in N_FEATURES:
        Z = X @ generator.normal(size=(d_in, n_features))
        Phi = np.concatenate([np.cos(Z), np.sin(Z)], axis=1) / math.sqrt(n_features)
        precision = np.eye(2 * n_features) + Phi[:n].T @ Phi[:n] / noise
        mean = Phi[n:] @ np.linalg.solve(precision, Phi[:n].T @ y[:n] / noise)
        variance = np.einsum("ij,ji->i", Phi[n:], np.linalg.solve(precision, Phi[n:].T))
        name = str(n_features)
        coverage[name], deviation[name] = _judged(y[n:], f[n:], mean, variance, noise)
    return {"coverage_90": coverage, "standardized_error": deviation}


def _squared_distances(X: np.ndarray) -> np.ndarray:
    squares = np.sum(X**2, axis=1)
    return np.add.outer(squares, squares) - 2 * X @ X.T


def _judged(y, f, mean, variance, noise) -> tuple[float, float]:
    """Coverage of y by 90 % intervals, and the root mean square error of f in its stated deviations."""
    inside = np.abs(y - mean) <= 1.6449 * np.sqrt(variance + noise)
    return float(np.mean(inside)), float(np.sqrt(np.mean((f - mean) ** 2 / variance)))


def _run_table(job: Job) -> Mapping[str, Any]:
    data = datasets.load(job["data"])
    X, y, X_test, y_test = data.part(data.splits[job["split"]])
    model = DeepGPRegressor(
        Deep(
            objective="elbo",
            n_members=1,
            n_random_features=job["n_features"],
            max_steps=job["max_steps"],
            batch_size=200,
        ),
        likelihood="gaussian",
        random_state=job["split"],
    ).fit(X, y)
    n_rows, (X, y) = len(y), _some(X, y, job["split"])
    X_test, y_test = _some(X_test, y_test, job["split"])
    tails = [(1 - c) / 2 for c in COVERAGES] + [(1 + c) / 2 for c in COVERAGES]
    found = model.predict_summary(X_test, tails)
    epistemic, aleatoric = model.predict_variance(X_test)
    return {
        "n_rows": n_rows,
        "n_test": len(y_test),
        "coverage": _coverage(found["quantiles"], y_test),
        "coverage_training": _coverage(model.predict_summary(X, tails)["quantiles"], y),
        "function_share": float(np.mean(epistemic / (epistemic + aleatoric))),
        "rmse": float(np.sqrt(np.mean((found["mean"] - y_test) ** 2))),
        "mnll": float(-np.mean(model.log_prob(X_test, y_test))),
        "training_seconds": round(model.history_[-1]["seconds"], 1),
    }


def _some(X: np.ndarray, y: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw as many rows as are needed to measure a coverage."""
    chosen = np.random.default_rng(seed).permutation(len(y))[:MAX_ROWS_MEASURED]
    return X[chosen], y[chosen]


def _coverage(quantiles: np.ndarray, y: np.ndarray) -> dict[str, float]:
    low, high = np.split(quantiles, 2, axis=-1)
    inside = np.mean((low <= y[:, None]) & (y[:, None] <= high), axis=0)
    return {str(stated): float(share) for stated, share in zip(COVERAGES, inside, strict=True)}


def _report(records: list[dict[str, Any]], folder: Path) -> None:
    _report_simulated([record for record in records if record["job"]["data"] == "simulated"])
    groups = defaultdict(list)
    for record in records:
        if record["job"]["data"] == "simulated":
            continue
        groups[record["job"]["data"], record["job"]["n_features"]].append(record["result"])
    order = [(name, n_features) for name in N_SPLITS for n_features in N_FEATURES]
    means = {key: _mean(groups[key]) for key in order if key in groups}
    stated = [f"{100 * c:g} %" for c in COVERAGES]
    table = Table("data", "rows", "features", *stated, "90 % training", "function", "RMSE", "MNLL")
    for (name, n_features), mean in means.items():
        table.add_row(
            name,
            f"{mean['n_rows']:.0f}",
            str(n_features),
            *(f"{100 * mean[f'coverage {c}']:.1f}" for c in COVERAGES),
            f"{100 * mean['coverage_training 0.9']:.1f}",
            f"{100 * mean['function_share']:.0f} %",
            f"{mean['rmse']:.3f}",
            f"{mean['mnll']:.3f}",
        )
    Console(width=120).print(table)
    if len({n_features for _, n_features in means}) == len(N_FEATURES):
        _draw(means, folder / "calibration.png")


def _report_simulated(records: list[dict[str, Any]]) -> None:
    columns = [*map(str, N_FEATURES), "exact"]
    table = Table("simulated rows", "", *columns)
    for n_rows in dict.fromkeys(record["job"]["n_rows"] for record in records):
        results = [record["result"] for record in records if record["job"]["n_rows"] == n_rows]
        for name, factor in (("coverage_90", 100), ("standardized_error", 1)):
            means = [factor * np.mean([result[name][key] for result in results]) for key in columns]
            table.add_row(str(n_rows), name.replace("_", " "), *(f"{mean:.3g}" for mean in means))
    Console(width=120).print(table)


def _mean(results: list[dict[str, Any]]) -> dict[str, float]:
    """Average over splits, with the coverages side by side."""

    def flat(result: dict[str, Any]) -> dict[str, float]:
        nested = {f"{k} {c}": v for k in ("coverage", "coverage_training") for c, v in result[k].items()}  # fmt: skip
        return nested | {k: v for k, v in result.items() if not isinstance(v, dict)}

    rows = [flat(result) for result in results]
    return {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}


def _draw(means: dict[tuple[str, int], dict[str, float]], path: Path) -> None:
    import matplotlib.pyplot as plt

    names = list(dict.fromkeys(name for name, _ in means))
    n_lines = math.ceil(len(names) / 4)
    figure, grid = plt.subplots(
        n_lines, 4, figsize=(12, 3.0 * n_lines), sharey=True, layout="constrained", squeeze=False
    )
    axes = grid.ravel()
    for spare in axes[len(names) :]:
        spare.axis("off")
    colors = ("#9ecae1", "#6baed6", "#2171b5", "#08306b")
    for ax, name in zip(axes, names, strict=False):
        for coverage, color in zip(COVERAGES, colors, strict=True):
            found = [100 * means[name, n][f"coverage {coverage}"] for n in N_FEATURES]
            ax.axhline(100 * coverage, color=color, linewidth=0.8, linestyle="--")
            ax.plot(
                N_FEATURES, found, "o-", color=color, markersize=4, label=f"{100 * coverage:g} %"
            )
        ax.set_xscale("log")
        ax.set_xticks(N_FEATURES, map(str, N_FEATURES))
        ax.minorticks_off()
        ax.set_title(f"{name}, {means[name, N_FEATURES[0]]['n_rows']:.0f} rows")
        ax.set_xlabel("random features")
    for ax in grid[:, 0]:
        ax.set_ylabel("targets inside, %")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles[::-1], labels[::-1], title="stated", frameon=False, loc="lower right")
    figure.savefig(path, dpi=110)
    plt.close(figure)


EXPERIMENT = Experiment(
    summary="coverage of intervals on held-out rows against the number of random features",
    jobs=_jobs,
    run=_run,
    report=_report,
)
