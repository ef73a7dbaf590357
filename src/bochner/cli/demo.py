"""`bochner demo`: the main job on data that ships with scikit-learn."""

import functools
import time
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table as RichTable

from bochner.cli.common import AsJson, Quiet, command, show
from bochner.cli.output import check_folder
from bochner.system.destination import Destination
from bochner.system.terminal import PlainConsole

if TYPE_CHECKING:
    import numpy as np

Metrics = dict[str, dict[str, float]]
_HEADINGS = {
    "rmse": "RMSE",
    "mnll": "MNLL",
    "coverage_90": "coverage of 90 % intervals",
    "error_rate": "error rate",
    "ece": "calibration error",
}
_SHARES = ("coverage_90", "error_rate")


@command
def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the plots.")] = Path(
        "bochner-demo"
    ),
    seed: Annotated[int, typer.Option(help="Seed of everything.")] = 0,
    max_steps: Annotated[
        int | None,
        typer.Option(
            min=1, help="Training steps of a deep model alone, for the digits.  \\[default: as fit]"
        ),
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Fit a table, the digits and a step function; print metrics beside baselines; write plots."""
    console = PlainConsole(quiet=as_json)
    started = time.monotonic()
    check_folder("--output", output, {})
    output.mkdir(parents=True, exist_ok=True)
    if find_spec("matplotlib") is None:
        raise ImportError("the demo draws plots: install matplotlib with `pip install matplotlib`.")
    settings = {"random_state": seed, "verbose": 0 if quiet else 1}
    found = {}
    for title, run in (
        ("Regression: diabetes progression, 442 patients", _table),
        ("Classification: handwritten digits, 1,797 images", functools.partial(_digits, max_steps)),
        ("A step function, 100 points", _step),
    ):
        console.print(f"\n{title}", style="bold")
        found[title] = run(settings, output)
        console.print(_as_table(found[title]))
    plots = sorted(path.name for path in output.glob("*.png"))
    console.print(f"\nPlots in {output}/: {', '.join(plots)}")
    console.print(f"Done in {time.monotonic() - started:.0f} s.")
    if as_json:
        show({"folder": output, "plots": plots, "metrics": found}, as_json=True)


def _table(settings: dict[str, Any], output: Path) -> Metrics:
    import numpy as np
    import pyarrow as pa
    from sklearn.datasets import load_diabetes
    from sklearn.linear_model import LinearRegression
    from sklearn.model_selection import train_test_split

    from bochner import DeepGPRegressor

    data: Any = load_diabetes(scaled=False)
    X_train, X_test, y_train, y_test = (
        np.asarray(part)
        for part in train_test_split(
            data.data, data.target, test_size=0.25, random_state=settings["random_state"]
        )
    )
    # A table of named columns, as it would come from a file.
    columns = dict(zip(data.feature_names, X_train.T, strict=True))
    table = pa.table({**columns, "progression": y_train})
    model = DeepGPRegressor(**settings).fit(table, "progression")
    baseline = LinearRegression().fit(X_train, y_train)
    noise = float(np.std(y_train - baseline.predict(X_train), ddof=1))
    explanation = model.explain()
    _write(model.plot_calibration(X_test, y_test), output / "table-calibration.png")
    _write(model.plot_shares(explanation=explanation), output / "table-shares.png")
    _write(model.plot_effects(explanation=explanation)[0], output / "table-effects.png")
    return {
        "bochner": model.evaluate(X_test, y_test),
        "linear regression": _gaussian_metrics(np.asarray(y_test), baseline.predict(X_test), noise),
    }


def _digits(max_steps: int | None, settings: dict[str, Any], output: Path) -> Metrics:
    import numpy as np
    from sklearn.datasets import load_digits
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import train_test_split
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from bochner import Deep, DeepGPClassifier
    from bochner.prediction import metrics

    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = (
        np.asarray(part)
        for part in train_test_split(X, y, test_size=0.25, random_state=settings["random_state"])
    )
    members = "auto" if max_steps is None else Deep(max_steps=max_steps)
    model = DeepGPClassifier(members, **settings).fit(X_train, y_train)
    baseline = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    probabilities = baseline.fit(X_train, y_train).predict_proba(X_test)
    if model.fitted_.deep is not None:
        _write(model.plot_learning_curve(), output / "digits-learning-curve.png")
    _write(model.plot_calibration(X_test, y_test), output / "digits-calibration.png")
    own = np.log(probabilities[np.arange(len(y_test)), y_test])
    return {
        "bochner": model.evaluate(X_test, y_test),
        "logistic regression": {
            "error_rate": metrics.error_rate(y_test, probabilities.argmax(axis=1)),
            "mnll": metrics.mnll(own),
            "ece": metrics.ece(y_test, probabilities),
        },
    }


def _step(settings: dict[str, Any], output: Path) -> Metrics:
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, WhiteKernel

    from bochner import DeepGPRegressor

    X, y = step_function(100, settings["random_state"])
    X_test, y_test = step_function(1000, settings["random_state"] + 1)
    model = DeepGPRegressor(**settings).fit(X, y)
    baseline = GaussianProcessRegressor(RBF() + WhiteKernel(0.01), normalize_y=True, random_state=0)
    mean, std = baseline.fit(X, y).predict(X_test, return_std=True)
    _write(plot_posterior(model, X, y), output / "step-posterior.png")
    return {
        "bochner": model.evaluate(X_test, y_test),
        "Gaussian process (scikit-learn)": _gaussian_metrics(y_test, mean, std),
    }


def step_function(n: int, seed: int) -> "tuple[np.ndarray, np.ndarray]":
    """Make n noisy points of a step from 0 to 1 at zero."""
    import numpy as np

    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, size=(n, 1))
    return X, np.where(X[:, 0] > 0, 1.0, 0.0) + 0.02 * rng.normal(size=n)


def plot_posterior(model: Any, X: "np.ndarray", y: "np.ndarray") -> Any:
    """Draw data, predictive mean, 90 % interval and some function draws of a model with one input."""
    import matplotlib.pyplot as plt
    import numpy as np

    grid = np.linspace(X.min(), X.max(), 400)[:, None]
    low, high = model.predict_interval(grid, 0.9).T
    ax = plt.subplots(figsize=(6, 3.6), layout="constrained")[1]
    ax.fill_between(
        grid[:, 0], low, high, color="#1f5fa8", alpha=0.18, linewidth=0, label="90 % interval"
    )
    for f in model.sample_functions(12):
        ax.plot(grid[:, 0], f(grid), color="#1f5fa8", alpha=0.35, linewidth=0.7)
    ax.plot(grid[:, 0], model.predict(grid), color="#1f5fa8", linewidth=2, label="mean")
    ax.scatter(X[:, 0], y, s=9, color="black", zorder=3, label="data")
    ax.legend(frameon=False, loc="upper left")
    ax.set_xlabel("x")
    ax.set_ylabel("y")
    ax.set_title("Posterior with function draws")
    return ax


def _gaussian_metrics(y: "np.ndarray", mean: "np.ndarray", std: Any) -> dict[str, float]:
    import numpy as np

    from bochner.prediction import metrics

    z = (y - mean) / std
    log_density = -0.5 * z**2 - np.log(std) - 0.5 * np.log(2 * np.pi)
    return {
        "rmse": metrics.rmse(y, mean),
        "mnll": metrics.mnll(log_density),
        "coverage_90": float(np.mean(np.abs(z) <= 1.6449)),
    }


def _as_table(found: Metrics) -> RichTable:
    *_, baseline = found.values()
    table = RichTable("", *(_HEADINGS[name] for name in baseline))
    for model, metrics in found.items():
        cells = [
            f"{metrics[name]:.1%}" if name in _SHARES else f"{metrics[name]:.3f}"
            for name in baseline
        ]
        table.add_row(model, *cells)
    return table


def _write(ax: Any, path: Path) -> None:
    import matplotlib.pyplot as plt

    with Destination(path).open() as file:
        ax.figure.savefig(file, dpi=150, format="png")
    plt.close(ax.figure)
