"""Section 4.3: 2 to 30 layers on flights with fed inputs, and whether the bound picks the depth that tests best.

A job's `gradients` are `"exact"`, as in the paper, or `"clipped"`. Jobs without the value have exact ones up to nine
layers and clipped ones from ten on, as all had before there was a choice.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.table import Table

from bochner import datasets
from bochner.fitting.deep_fit import DeepFit
from bochner.fitting.rows import Rows
from bochner.gp.reparameterization import DrawWeights
from bochner.inference.bound import estimate_bound
from experiments.baselines import Observer, classification_scores
from experiments.runner import Experiment, Job, mean_and_deviation
from experiments.watched import RandomFeatureClassifier, probabilities

N_LAYERS = (2, 10, 20, 30)
SEEDS = range(3)
SV_DKL = {"error_rate": 0.219, "mnll": 0.457}
"""Wilson et al. 2016 on the flights of 2008, the paper's line of reference."""

_N_TEST_ROWS_WATCHED = 5_000
_N_ESTIMATES, _ROWS_AN_ESTIMATE = 50, 2_000
_MANY_LAYERS = 10


def _jobs(quick: bool) -> Iterable[Job]:
    if quick:
        for n_layers in (2, _MANY_LAYERS):
            yield {
                "data": "airline_nyc2013",
                "n_layers": n_layers,
                "seed": 0,
                "max_steps": 100,
                "n_test": 1_000,
                "n_draws": 5,
            }
        return
    # One seed of all before the next, so that an interrupted run has every depth.
    for seed in SEEDS:
        for name in ("airline_nyc2013", "airline"):
            for n_layers in N_LAYERS:
                yield {"data": name, "n_layers": n_layers, "seed": seed, "max_steps": 40_000}
    # Does depth pay in longer training? At the paper's constant rate, and at one that falls to zero.
    longer = {"data": "airline", "max_steps": 200_000}
    for seed in SEEDS:
        for n_layers in N_LAYERS:
            yield {**longer, "n_layers": n_layers, "seed": seed}
            yield {**longer, "n_layers": n_layers, "seed": seed, "schedule": "cosine"}
    # The paper's own gradients, where those above are clipped.
    for seed in SEEDS:
        for name in ("airline_nyc2013", "airline"):
            for n_layers in N_LAYERS:
                if n_layers >= _MANY_LAYERS:
                    job = {"data": name, "n_layers": n_layers, "seed": seed, "max_steps": 40_000}
                    yield {**job, "gradients": "exact"}


def gradients_of(job: Job) -> str:
    """Give the gradients that a job's model is trained with."""
    return job.get("gradients", "clipped" if job["n_layers"] >= _MANY_LAYERS else "exact")


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
        "gradients": gradients_of(job),
        "max_steps": steps,
        "theta_from": min(12_000, steps // 2),
    }
    if "schedule" in job:
        # Steps that get small average over samples themselves.
        settings |= {"schedule": job["schedule"], "n_mc_train": 1}
    if "n_draws" in job:
        settings |= {"n_mc_train": job["n_draws"], "n_mc_predict": job["n_draws"]}
    # The paper turns to 100 samples after half of the time, which is the last thirtieth of the steps.
    method = RandomFeatureClassifier("paper", settings, many_samples_from=steps * 29 // 30)
    fit = method.fit_model(X, y, seed=job["seed"], observer=observer)
    bounds = bound_estimates(fit, X, y, n_estimates=_N_ESTIMATES, n_rows=_ROWS_AN_ESTIMATE)
    return {
        **classification_scores(probabilities(fit)(X_test), y_test),
        "curve": [
            {name: look[name] for name in ("step", "seconds", "error_rate", "mnll")}
            for look in observer.records
        ],
        "negative_bounds": [-bound for bound in bounds],
    }


def bound_estimates(
    fit: DeepFit, X: np.ndarray, y: np.ndarray, *, n_estimates: int, n_rows: int
) -> list[float]:
    """Estimate the bound per row again and again, each time from other rows and one draw of the noise."""
    generator, size = np.random.default_rng(0), min(n_rows, len(X))
    model = fit.model.each()[0]

    @jax.jit
    def estimate(X: jax.Array, Y: jax.Array, scale: float, key: jax.Array) -> jax.Array:
        noise = model.draw_noise((1,), key=key)
        return estimate_bound(model, X, Y, jnp.ones(size), noise, DrawWeights(), scale=scale).elbo

    found = []
    for key in jax.random.split(fit.key("validate"), n_estimates):
        chosen = generator.choice(len(X), size, replace=False)
        rows = fit.scaled(Rows(X[chosen], y[chosen, None].astype(np.int32), np.ones(size)))
        inputs, targets = jnp.asarray(rows.X, jnp.float32), jnp.asarray(rows.Y)
        found.append(float(estimate(inputs, targets, len(X) / size, key)) / len(X))
    return found


def _report(records: list[dict[str, Any]], folder: Path) -> None:
    for (name, n_steps, schedule, gradients), own in grouped(records).items():
        depths = _by_depth(own)
        title = f"{name}, {n_steps:,} steps, {schedule} rate, {gradients} gradients"
        table = Table(
            "layers", "seeds", "error", "MNLL", "negative bound/row", "training s", title=title
        )
        for depth, results in depths.items():
            table.add_row(
                str(depth),
                str(len(results)),
                mean_and_deviation((result["error_rate"] for result in results), digits=4),
                mean_and_deviation((result["mnll"] for result in results), digits=4),
                mean_and_deviation(map(_negative_bound, results), digits=4),
                f"{np.mean([result['curve'][-1]['seconds'] for result in results]):.0f}",
            )
        table.add_row("cited: SV-DKL, 2008", "", *map(str, SV_DKL.values()), "", "")
        Console(width=110).print(table)
        by_bound, by_test = (
            min(depths, key=lambda depth: np.mean([measure(one) for one in depths[depth]]))
            for measure in (_negative_bound, lambda result: result["mnll"])
        )
        Console().print(f"{title}: the bound picks {by_bound} layers, the test MNLL {by_test}.")
        if not any("n_test" in record["job"] for record in own):
            of_gradients = "" if gradients == "clipped" else f"-{gradients}"
            _draw(depths, folder / f"depth-{name}-{n_steps}-{schedule}{of_gradients}.png")


def grouped(
    records: list[dict[str, Any]],
) -> dict[tuple[str, int, str, str], list[dict[str, Any]]]:
    """Group by data, steps, rate, and gradients of many layers; models of few layers stand beside each kind."""
    groups: dict[tuple[str, int, str], list[dict[str, Any]]] = defaultdict(list)
    for record in records:
        job = record["job"]
        groups[job["data"], job["max_steps"], job.get("schedule", "constant")].append(record)
    found = {}
    for settings, own in groups.items():
        few = [record for record in own if record["job"]["n_layers"] < _MANY_LAYERS]
        many = [record for record in own if record["job"]["n_layers"] >= _MANY_LAYERS]
        for gradients in dict.fromkeys(gradients_of(record["job"]) for record in many or few):
            alike = [record for record in many if gradients_of(record["job"]) == gradients]
            found[*settings, gradients] = few + alike
    return found


def _by_depth(records: list[dict[str, Any]]) -> dict[int, list[dict[str, Any]]]:
    """Results of all seeds, from the fewest layers on."""
    depths: dict[int, list[dict[str, Any]]] = {}
    for record in sorted(records, key=lambda record: record["job"]["n_layers"]):
        depths.setdefault(record["job"]["n_layers"], []).append(record["result"])
    return depths


def _negative_bound(result: Mapping[str, Any]) -> float:
    return float(np.mean(result["negative_bounds"]))


def _draw(depths: Mapping[int, list[dict[str, Any]]], path: Path) -> None:
    import matplotlib.pyplot as plt
    from matplotlib.ticker import LogLocator

    figure, axes = plt.subplots(1, 3, figsize=(12, 3.8), layout="constrained")
    for number, (depth, results) in enumerate(depths.items()):
        for seed, result in enumerate(results):
            label = f"{depth} layers" if seed == 0 else None
            for ax, metric in zip(axes, ("error_rate", "mnll"), strict=False):
                seconds, values = (
                    [look[quantity] for look in result["curve"]] for quantity in ("seconds", metric)
                )
                ax.plot(seconds, values, color=f"C{number}", linewidth=1, label=label)
    for ax, (metric, value) in zip(axes, SV_DKL.items(), strict=False):
        ax.axhline(value, color="#333333", linestyle="--", linewidth=1, label="SV-DKL (2008)")
        ax.set_xscale("log")
        ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        ax.xaxis.set_major_formatter("{x:g}")
        ax.xaxis.set_minor_formatter("")
        ax.set_xlabel("seconds of training")
        ax.set_ylabel({"error_rate": "error rate", "mnll": "MNLL"}[metric])
    figure.legend(
        *axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=5, frameon=False
    )
    axes[2].boxplot(
        [
            [bound for result in results for bound in result["negative_bounds"]]
            for results in depths.values()
        ],
        tick_labels=[str(depth) for depth in depths],
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
