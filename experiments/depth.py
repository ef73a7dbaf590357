"""Section 4.3: 2 to 30 layers on flights with fed inputs, and whether the bound picks the depth that tests best."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from bochner import datasets
from experiments.baselines import Observer, classification_scores
from experiments.runner import Experiment, Job
from experiments.watched import RandomFeatureClassifier, bound_estimates, probabilities

N_LAYERS = (2, 10, 20, 30)
SV_DKL = {"error_rate": 0.219, "mnll": 0.457}
"""Wilson et al. 2016 on the flights of 2008, the paper's line of reference."""

_N_TEST_ROWS_WATCHED = 5_000
_N_ESTIMATES, _ROWS_AN_ESTIMATE = 50, 2_000


def _jobs(quick: bool) -> Iterable[Job]:
    if quick:
        for n_layers in (2, 5):
            yield {
                "data": "airline_nyc2013",
                "n_layers": n_layers,
                "max_steps": 100,
                "n_test": 1_000,
                "n_draws": 5,
            }
        return
    for name in ("airline_nyc2013", "airline"):
        for n_layers in N_LAYERS:
            yield {"data": name, "n_layers": n_layers, "max_steps": 40_000}


def _run(job: Job) -> Mapping[str, Any]:
    data = datasets.load(job["data"])
    X, y, X_test, y_test = data.part(data.splits[0])
    X_test, y_test = X_test[: job.get("n_test")], y_test[: job.get("n_test")]
    X_seen, y_seen = X_test[:_N_TEST_ROWS_WATCHED], y_test[:_N_TEST_ROWS_WATCHED]
    observer = Observer(lambda predictor: classification_scores(predictor(X_seen), y_seen))
    steps = job["max_steps"]
    settings: dict[str, Any] = {
        "n_layers": job["n_layers"],
        "feed_inputs": True,
        "max_steps": steps,
        "theta_from": min(12_000, steps // 2),
    }
    if "n_draws" in job:
        settings |= {"n_mc_train": job["n_draws"], "n_mc_predict": job["n_draws"]}
    # The paper turns to 100 samples after half of the time, which is the last thirtieth of the steps.
    method = RandomFeatureClassifier("paper", settings, many_samples_from=steps * 29 // 30)
    model, config, scaling = method.fit_model(X, y, seed=0, observer=observer)
    predicted = probabilities(model, config, scaling)(X_test)
    bounds = bound_estimates(
        model, config, scaling(X), y[:, None].astype(np.int32),
        n_estimates=_N_ESTIMATES, n_rows=_ROWS_AN_ESTIMATE,
    )  # fmt: skip
    return {
        **classification_scores(predicted, y_test),
        "curve": [
            {name: look[name] for name in ("step", "seconds", "error_rate", "mnll")}
            for look in observer.records
        ],
        "negative_bounds": [-bound for bound in bounds],
    }


def _report(records: list[dict[str, Any]], folder: Path) -> None:
    for name in dict.fromkeys(record["job"]["data"] for record in records):
        own = [record for record in records if record["job"]["data"] == name]
        table = Table("layers", "error", "MNLL", "negative bound/row", "training s", title=name)
        for record in own:
            result = record["result"]
            table.add_row(
                str(record["job"]["n_layers"]),
                f"{result['error_rate']:.4f}",
                f"{result['mnll']:.4f}",
                f"{np.mean(result['negative_bounds']):.4f} ± {np.std(result['negative_bounds']):.4f}",
                f"{result['curve'][-1]['seconds']:.0f}",
            )
        table.add_row("cited: SV-DKL, 2008", f"{SV_DKL['error_rate']}", f"{SV_DKL['mnll']}", "", "")
        Console(width=110).print(table)
        by_bound = min(own, key=lambda r: np.mean(r["result"]["negative_bounds"]))
        by_test = min(own, key=lambda r: r["result"]["mnll"])
        Console().print(
            f"{name}: the bound picks {by_bound['job']['n_layers']} layers, the test MNLL "
            f"{by_test['job']['n_layers']}."
        )
        if not any("n_test" in record["job"] for record in own):
            _draw(own, folder / f"depth-{name}.png")


def _draw(records: list[dict[str, Any]], path: Path) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
    for record in records:
        curve, label = record["result"]["curve"], f"{record['job']['n_layers']} layers"
        for ax, metric in zip(axes, ("error_rate", "mnll"), strict=False):
            ax.plot(
                [look["seconds"] for look in curve], [look[metric] for look in curve], label=label
            )
    for ax, (metric, value) in zip(axes, SV_DKL.items(), strict=False):
        ax.axhline(value, color="#333333", linestyle="--", linewidth=1, label="SV-DKL (2008)")
        ax.set_xscale("log")
        ax.set_xlabel("seconds of training")
        ax.set_ylabel({"error_rate": "error rate", "mnll": "MNLL"}[metric])
    axes[0].legend(frameon=False, fontsize=8)
    axes[2].boxplot(
        [record["result"]["negative_bounds"] for record in records],
        tick_labels=[str(record["job"]["n_layers"]) for record in records],
    )
    axes[2].set_xlabel("layers")
    axes[2].set_ylabel("negative lower bound per row")
    figure.savefig(path, dpi=110)
    plt.close(figure)


EXPERIMENT = Experiment(
    summary="2, 10, 20 and 30 layers on flights with fed inputs, and what the bound picks (section 4.3)",
    jobs=_jobs,
    run=_run,
    report=_report,
)
