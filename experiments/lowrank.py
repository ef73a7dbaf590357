"""The low-rank weights of section 3.1: W Omega through a few GPs, against one full matrix in its place.

Between two layers the features of the first meet the projections of the second in `Xi = W Omega`, of rank at most the
number of GPs. With as many GPs as features and Omega held at the identity, Xi = W is a full matrix of free weights.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray
from rich.console import Console
from rich.table import Table as RichTable

from bochner import datasets
from bochner.features.frequencies import AbstractFrequencies
from bochner.features.spectra import PriorFixed
from bochner.gp.layers import LayerSettings
from bochner.gp.model import DeepGP, collapsed_weights
from bochner.gp.reparameterization import LocalReparameterization
from bochner.likelihoods import AbstractLikelihood, Gaussian, Softmax
from bochner.members.parts import MomentsOfDraws
from bochner.prediction.statistics import Posterior, Probabilities
from bochner.rows.scaling import TargetScaling, robust
from bochner.rows.table import Table
from bochner.training import Budget, Cosine, Plan, train
from experiments.baselines import GaussianMixture, classification_scores, regression_scores
from experiments.runner import Experiment, Job, mean_and_deviation

N_RF = 100
WIDTHS = (1, 2, 3, 5, 10, 30)
FULL = "full"
_N_DRAWS = 100


class Identity(AbstractFrequencies):
    """No mixing: each feature of the next layer looks at one output of the layer before it."""

    def draw(self, d_in: int, n_rf: int, *, key: PRNGKeyArray):
        if d_in != n_rf:
            raise ValueError(
                f"the identity needs as many features as inputs; got {n_rf} and {d_in}."
            )
        return jnp.eye(d_in)


def _jobs(quick: bool) -> Iterable[Job]:
    n_steps = 200 if quick else 10_000
    for seed in range(1 if quick else 3):
        for name in ("energy",) if quick else ("powerplant", "eeg"):
            for width in (2, FULL) if quick else (*WIDTHS, FULL):
                yield {"data": name, "width": width, "seed": seed, "max_steps": n_steps}


def _layers(width: int | str, d_out: int) -> list[LayerSettings]:
    if width == FULL:
        first = LayerSettings(N_RF, n_rf=N_RF, log_var=-6.0)
        last = LayerSettings(
            d_out, n_rf=N_RF, omega=PriorFixed, frequencies=Identity(), ard=False, lengthscale=1.0,
            log_var=-6.0,
        )  # fmt: skip
        return [first, last]
    assert isinstance(width, int)
    return [
        LayerSettings(width, n_rf=N_RF, log_var=-6.0),
        LayerSettings(d_out, n_rf=N_RF, log_var=-6.0),
    ]


def n_weights_between(model: DeepGP) -> int:
    """Count the weights between the features of the first layer and those of the second."""
    first, second = model.layers
    spectrum: Any = second.features.spectrum  # pyright: ignore[reportAttributeAccessIssue]
    learned = 0 if isinstance(spectrum, PriorFixed) else spectrum.epsilon.size
    return first.q_W.mean.size + learned


def _run(job: Job) -> Mapping[str, Any]:
    data = datasets.load(job["data"])
    generator = np.random.default_rng(job["seed"])
    rows = data.splits[job["seed"]] if data.splits else generator.permutation(len(data.y))[::10]
    X, y, X_test, y_test = data.part(rows)
    scaling = robust(X)
    targets = TargetScaling.standard(y[:, None].astype(float))
    likelihood: AbstractLikelihood = Gaussian.start(1)
    Y, d_out = targets(y[:, None]), 1
    if data.is_classification:
        likelihood, Y, d_out = Softmax(), y[:, None].astype(np.int32), len(data.class_names)
    key = jax.random.key(job["seed"])
    keys = jax.random.split(key, 3)
    model = DeepGP.start(
        _layers(job["width"], d_out), likelihood, d_in=X.shape[1], feed_inputs=False, key=keys[0]
    )
    trained = train(
        model,
        Table.of(scaling(X), Y),
        plan=Plan(),
        budget=Budget(max_steps=job["max_steps"]),
        batch_size=200,
        learning_rate=0.01,
        schedule=Cosine(),
        reparameterization=LocalReparameterization(),
        key=keys[1],
    )
    posterior = Posterior.draw(trained.model, n_draws=_N_DRAWS, key=keys[2])
    if data.is_classification:
        found = posterior.map_rows(Probabilities(), scaling(X_test)).astype(float)
        scores = classification_scores(found, y_test)
    else:
        found = posterior.map_rows(MomentsOfDraws(), scaling(X_test))
        means, variances = (found[name].T.astype(float) for name in ("means", "variances"))
        law = GaussianMixture(means, np.sqrt(variances))
        scores = regression_scores(law.rescaled(targets.center[0], targets.scale[0]), y_test)
    singular = np.linalg.svd(np.asarray(collapsed_weights(trained.model, 0)), compute_uv=False)
    return {
        **scores,
        "n_weights_between": n_weights_between(trained.model),
        "rank_for_99_percent": int(
            np.searchsorted(np.cumsum(singular**2) / np.sum(singular**2), 0.99) + 1
        ),
        "elbo_per_row": trained.history[-1].elbo / len(y),
        "training_seconds": round(trained.history[-1].seconds, 2),
    }


def _report(records: list[dict[str, Any]], folder: Path) -> None:
    groups = defaultdict(list)
    for record in records:
        groups[record["job"]["data"], record["job"]["width"]].append(record["result"])
    table = RichTable(
        "data", "GPs between", "weights between", "RMSE or error", "MNLL", "rank of 99 %", "bound/row", "seconds"
    )  # fmt: skip
    for (name, width), results in groups.items():
        error = "rmse" if "rmse" in results[0] else "error_rate"
        table.add_row(
            name,
            str(width),
            f"{results[0]['n_weights_between']:,}",
            mean_and_deviation(result[error] for result in results),
            mean_and_deviation(result["mnll"] for result in results),
            f"{np.mean([result['rank_for_99_percent'] for result in results]):.0f}",
            f"{np.mean([result['elbo_per_row'] for result in results]):.3f}",
            f"{np.mean([result['training_seconds'] for result in results]):.0f}",
        )
    Console(width=130).print(table)
    if not any(record["job"]["max_steps"] < 1_000 for record in records) and records:
        _draw(groups, folder / "lowrank.png")


def _draw(groups: dict[tuple[str, Any], list[dict[str, Any]]], path: Path) -> None:
    import matplotlib.pyplot as plt

    names = list(dict.fromkeys(name for name, _ in groups))
    figure, axes = plt.subplots(
        2, len(names), figsize=(4.2 * len(names), 5.6), layout="constrained", squeeze=False, sharex=True
    )  # fmt: skip
    for column, name in enumerate(names):
        first = next(results[0] for key, results in groups.items() if key[0] == name)
        error = "rmse" if "rmse" in first else "error_rate"
        for row, metric in enumerate((error, "mnll")):
            ax = axes[row, column]
            for full, marker, label in ((False, "o-", "W Ω"), (True, "D", "full matrix")):
                keys = [key for key in groups if key[0] == name and (key[1] == FULL) == full]
                weights = [groups[key][0]["n_weights_between"] for key in keys]
                means = [np.mean([result[metric] for result in groups[key]]) for key in keys]
                spread = [
                    np.std([result[metric] for result in groups[key]]) / math.sqrt(len(groups[key]))
                    for key in keys
                ]
                ax.errorbar(weights, means, spread, fmt=marker, capsize=2, label=label)
            ax.set_xscale("log")
            ax.set_ylabel({"rmse": "RMSE", "error_rate": "error rate", "mnll": "MNLL"}[metric])
        axes[0, column].set_title(name)
        axes[1, column].set_xlabel("weights between the layers' features")
    axes[0, 0].legend(frameon=False)
    figure.savefig(path, dpi=110)
    plt.close(figure)


EXPERIMENT = Experiment(
    summary="low-rank weights W Omega against a full matrix in their place (section 3.1)",
    jobs=_jobs,
    run=_run,
    report=_report,
)
