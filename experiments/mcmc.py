"""The supplement's comparison with MCMC: a two-layer model on 50 points of its function, exact kernels against q(W)."""

import functools
import io
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.table import Table as RichTable

from bochner.datasets.simulated import composed
from bochner.features.spectra import PriorFixed
from bochner.gp.layers import LayerSettings
from bochner.gp.model import DeepGP, Noise
from bochner.gp.reparameterization import DrawWeights
from bochner.inference.bound import estimate_bound
from bochner.likelihoods import Gaussian
from bochner.mcmc import sample_weights, two_layer_posterior
from bochner.rows.table import Table
from bochner.training import Budget, Cosine, Plan, train
from experiments.runner import Experiment, Job

NOISE_VARIANCE, N_POINTS, N_DRAWS = 0.01, 50, 100
GRID = np.linspace(-4, 4, 81)
INSIDE = np.abs(GRID) <= 2
"""Where there are data."""
_BLUE, _ORANGE, _DARK = "#1f5fa8", "#d9822b", "#333333"


def _data(seed: int) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    x = generator.uniform(-2, 2, size=N_POINTS)
    noise = math.sqrt(NOISE_VARIANCE) * generator.normal(size=N_POINTS)
    return x[:, None], (composed(x) + noise)[:, None]


def _jobs(quick: bool) -> Iterable[Job]:
    steps = 1_000 if quick else 10_000
    fit = {"seed": 0, "max_steps": steps, "n_starts": 1 if quick else 5}
    for n_rf in (10, 50):
        yield {"inference": "variational", "n_rf": n_rf, **fit}
    for n_rf in () if quick else (10, 50):
        yield {"inference": "nuts", "n_rf": n_rf, **fit, "n_samples": 500, "n_chains": 4}
    size = {"n_samples": 100, "n_warmup": 200, "n_thin": 5, "n_chains": 4}
    if not quick:
        size = {"n_samples": 500, "n_warmup": 2_000, "n_thin": 20, "n_chains": 8}
    # Theta is that of the variational bound with 50 frequencies.
    yield {"inference": "mcmc", "n_rf": 50, **fit, **size}


@functools.cache
def _fitted(n_rf: int, seed: int, max_steps: int, n_starts: int) -> tuple[DeepGP, float]:
    """Train q(W) and theta with fixed frequencies, and keep the start with the best bound."""
    X, Y = _data(seed)
    data = Table.of(X, Y)
    found = []
    for number in range(n_starts):
        key = jax.random.fold_in(jax.random.key(seed), number)
        key_start, key_train, key_bound = jax.random.split(key, 3)
        settings = LayerSettings(1, n_rf=n_rf, omega=PriorFixed, log_var=-4.0)
        model = DeepGP.start(
            [settings, settings], Gaussian.start(1), d_in=1, feed_inputs=False, key=key_start
        )
        model = train(
            model,
            data,
            plan=Plan(theta_from=0.1, n_mc=4, n_mc_final=4),
            budget=Budget(max_steps=max_steps),
            batch_size=N_POINTS,
            learning_rate=0.02,
            schedule=Cosine(),
            key=key_train,
        ).model
        noise = model.draw_noise((1000,), key=key_bound)
        bound = estimate_bound(
            model, data.X, data.Y, jnp.ones(N_POINTS), noise, DrawWeights(), scale=1.0
        )
        found.append((float(bound.elbo), number, model))
    bound, _, model = max(found)
    return model, bound


def _theta(model: DeepGP) -> dict[str, Any]:
    kernels = [layer.features.kernel for layer in model.layers]  # pyright: ignore[reportAttributeAccessIssue]
    return {
        "variances": [float(jnp.exp(kernel.log_variance)) for kernel in kernels],
        "lengthscales": [float(jnp.exp(kernel.log_lengthscale[0])) for kernel in kernels],
        "noise_variance": float(jnp.exp(model.likelihood.log_noise_variance[0])),  # pyright: ignore[reportAttributeAccessIssue]
    }


def _both_layers(model: DeepGP, noise: Noise) -> tuple[np.ndarray, np.ndarray]:
    """Evaluate draws of both layers on the grid; the two are stacked where their shapes are equal."""
    X = jnp.asarray(GRID, jnp.float32)[:, None]
    first = DeepGP((model.layers[0],), model.likelihood, feed_inputs=False)
    first_noise = jax.tree.map(lambda leaf: leaf[:, 0], noise[0]) if len(noise) == 1 else noise[0]
    hidden = eqx.filter_vmap(lambda one: first(X, (one,), DrawWeights()))(first_noise)
    output = eqx.filter_vmap(lambda one: model(X, one, DrawWeights()))(noise)
    return np.asarray(hidden)[..., 0], np.asarray(output)[..., 0]


def _run(job: Job) -> Mapping[str, Any]:
    fit = {name: job[name] for name in ("n_rf", "seed", "max_steps", "n_starts")}
    model, bound = _fitted(**fit)
    key = jax.random.fold_in(jax.random.key(job["seed"]), 1000)
    result = {"bound": bound, **_theta(model)}
    if job["inference"] == "variational":
        hidden, output = _both_layers(model, model.draw_noise((1000,), key=key))
    elif job["inference"] == "nuts":
        X, Y = (jnp.asarray(values, jnp.float32) for values in _data(job["seed"]))
        sizes = {"n_samples": job["n_samples"], "n_warmup": 500, "n_chains": job["n_chains"]}
        draws = sample_weights(model, X, Y, **sizes, key=key)
        hidden, output = _both_layers(draws.model, draws.posterior.noise)
        result |= {"worst_rhat": float(draws.rhat.max()), "smallest_ess": float(draws.ess.min())}
    else:
        X, Y = _data(job["seed"])
        sizes = {name: job[name] for name in ("n_samples", "n_warmup", "n_thin", "n_chains")}
        found = two_layer_posterior(X, Y[:, 0], GRID[:, None], **_theta(model), **sizes, key=key)
        hidden, output = (a.reshape(-1, len(GRID)) for a in (found.hidden_new, found.output_new))
        report = found.diagnostics
        result |= {
            "worst_rhat": report.worst_rhat,
            "median_rhat": float(np.median([report.rhat_output, report.rhat_abs_hidden])),
            "smallest_ess": report.smallest_ess,
            "jitter": report.jitter,
            "proposals_per_step": report.proposals_per_step,
        }
    if _title(job):
        result |= _shown(hidden, output)
    truth = composed(GRID)
    return {
        **result,
        "share_of_rising_hidden": float(np.mean(_rising(hidden))),
        "rmse_inside": float(np.sqrt(np.mean((output.mean(axis=0) - truth)[INSIDE] ** 2))),
        "output_std_inside": float(np.sqrt(np.mean(output.var(axis=0)[INSIDE]))),
        "output_std_outside": float(np.sqrt(np.mean(output.var(axis=0)[~INSIDE]))),
    }


def _shown(hidden: np.ndarray, output: np.ndarray) -> dict[str, Any]:
    """Keep the draws that the figure shows, from all chains alike."""
    rows = np.linspace(0, len(hidden) - 1, N_DRAWS).round().astype(int)
    draws = {"hidden": hidden[rows], "output": output[rows]}
    return {name: values.astype(float).round(2).tolist() for name, values in draws.items()}


def _rising(hidden: np.ndarray) -> np.ndarray:
    """Which of the two signs a hidden layer has: whether it rises between the extremes of h."""
    left, right = (np.argmin(np.abs(GRID - end)) for end in (-math.sqrt(0.5), math.sqrt(0.5)))
    return hidden[:, right] > hidden[:, left]


def _report(records: list[dict[str, Any]], folder: Path) -> None:
    names = ("bound", "noise_variance", "share_of_rising_hidden", "rmse_inside", "output_std_inside",
             "output_std_outside", "worst_rhat", "smallest_ess")  # fmt: skip
    table = RichTable("inference", "frequencies", *(name.replace("_", " ") for name in names))
    for record in records:
        job, result = record["job"], record["result"]
        cells = [f"{result[name]:.3g}" if name in result else "" for name in names]
        frequencies = "exact kernel" if job["inference"] == "mcmc" else str(job["n_rf"])
        table.add_row(job["inference"], frequencies, *cells)
    Console(width=160).print(table)
    shown = {_title(record["job"]): record for record in records if _title(record["job"])}
    quick = any(record["job"]["n_starts"] == 1 for record in records)
    _draw(shown, folder / f"mcmc{'-quick' if quick else ''}.png")


def _title(job: Job) -> str:
    if job["inference"] == "mcmc":
        return "MCMC, exact kernels"
    if job["inference"] == "variational":
        return f"variational, {job['n_rf']} frequencies"
    return ""


def _draw(shown: dict[str, dict[str, Any]], path: Path) -> None:
    import matplotlib.pyplot as plt
    from PIL import Image

    titles = sorted(shown, key=lambda title: (not title.startswith("MCMC"), title))
    figure, axes = plt.subplots(
        2, len(titles), figsize=(4 * len(titles), 5.6), sharex=True, sharey="row", layout="constrained"
    )  # fmt: skip
    for title, column in zip(titles, axes.T, strict=True):
        record = shown[title]
        x, y = _data(record["job"]["seed"])
        hidden, output = (np.array(record["result"][name]) for name in ("hidden", "output"))
        colors = np.where(_rising(hidden), _BLUE, _ORANGE)
        for ax, draws in zip(column, (hidden, output), strict=True):
            ax.axvspan(-2, 2, color="#f3f3f3", zorder=0)
            for values, color in zip(draws, colors, strict=True):
                ax.plot(GRID, values, color=color, linewidth=0.5, alpha=0.45)
        column[1].plot(GRID, composed(GRID), color=_DARK, linewidth=1.2, linestyle="--")
        column[1].plot(x[:, 0], y[:, 0], "o", color=_DARK, markersize=2.5)
        column[0].set_title(title)
        column[1].set_xlabel("x")
    axes[0, 0].set_ylabel("layer 1")
    axes[1, 0].set_ylabel("layer 2")
    for row, name in enumerate(("hidden", "output")):
        values = np.concatenate([np.ravel(record["result"][name]) for record in shown.values()])
        limit = 1.1 * np.quantile(np.abs(values), 0.998)
        axes[row, 0].set_ylim(-limit, limit)
    # A palette keeps the file small: hundreds of thin lines make thousands of shades.
    with io.BytesIO() as buffer:
        figure.savefig(buffer, dpi=90)
        Image.open(buffer).convert("RGB").quantize(64).save(path, optimize=True)
    plt.close(figure)


EXPERIMENT = Experiment(
    summary="a two-layer posterior by MCMC with exact kernels, and by q(W) with 10 and 50 frequencies",
    jobs=_jobs,
    run=_run,
    report=_report,
)
