"""Writes the model files of `data_files/` and their predictions, which later versions must open and repeat.

Run `python -m tests.make_model_files` only when a new version of the format begins, and keep the files of the old one.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bochner import Constant, Deep, DeepGPClassifier, DeepGPRegressor, Exact, Landmarks, Linear

FOLDER = Path(__file__).parent / "data_files"
VERSION = 2
SMALL = {
    "objective": "elbo",
    "n_random_features": 4,
    "n_mc_predict": 6,
    "n_mc_train": 1,
    "batch_size": 20,
    "max_steps": 10,
    "theta_from": 0,
    "validation_fraction": 0.0,
}


def rows(n: int = 60) -> pd.DataFrame:
    generator = np.random.default_rng(0)
    Z = generator.normal(size=(n, 2))
    return pd.DataFrame({"age": 40.0 + 10.0 * Z[:, 0], "mass": 70.0 + Z[:, 1]})


def table(n: int = 60) -> pd.DataFrame:
    """Columns of each type, some values missing."""
    frame = rows(n)
    frame.loc[3::7, "mass"] = np.nan
    frame["color"] = [("red", "blue", None, "green")[i % 4] for i in range(n)]
    frame["member"] = [i % 3 == 0 for i in range(n)]
    frame["seen"] = pd.Timestamp("2020-02-28") + pd.to_timedelta(np.arange(n), unit="D")
    return frame


def models() -> dict[str, Any]:
    """Deep models of numbers, of classes and of a table, and mixtures of members of each kind."""
    X, few = rows(), rows(30)
    y = 5.0 + np.sin((X["age"] - 40.0) / 10.0) + 0.1 * (X["mass"] - 70.0)
    labels = np.array(["high", "low", "middle"])[np.digitize(y, [4.5, 5.5])]
    deep = Deep(n_layers=3, width=2, feed_inputs=False, kernel="matern32", **SMALL)
    settings = {"n_layers": 2, "width": (2,), "kernel": ["rbf", "arccos1"]}
    of_classes = Deep(omega="var-resampled", frequencies="independent", **settings, **SMALL)
    weights = {"high": 2.0, "low": 1.0, "middle": 1.0}
    simple = [("constant", Constant()), ("linear", Linear())]
    mixed = [*simple, ("exact", Exact()), ("deep", Deep(n_layers=1, **SMALL))]
    on_landmarks = [*simple, ("landmarks", Landmarks(n_landmarks=8, n_learned_from=20))]
    several = np.stack([y, -3.0 * y], axis=1)[:30]
    seed = {"random_state": 0}
    return {
        "regressor": DeepGPRegressor(deep, **seed).fit(X, y),
        "classifier": DeepGPClassifier(of_classes, class_weight=weights, **seed).fit(X, labels),
        "table": DeepGPRegressor(Deep(n_layers=1, **SMALL), likelihood="student-t", **seed).fit(
            table().assign(y=y), "y"
        ),
        "mixture": DeepGPRegressor(mixed, **seed).fit(few, y[:30]),
        "classes": DeepGPClassifier([*simple, ("exact", Exact())], **seed).fit(few, labels[:30]),
        "landmarks": DeepGPRegressor(on_landmarks, **seed).fit(table().assign(y=y), "y"),
        "targets": DeepGPRegressor(simple, **seed).fit(few, several),
    }


def predictions(model: Any) -> dict[str, Any]:
    """What a model says of some rows."""
    X = rows(8) if model.fitted_.encoder is None else table(8)
    if hasattr(model, "classes_"):
        return {"probabilities": model.predict_proba(X).tolist()}
    mean, std = model.predict(X, return_std=True)
    return {"mean": mean.tolist(), "std": std.tolist()}


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    found = {}
    for name, model in models().items():
        model.save(FOLDER / f"{name}-{VERSION}.bochner")
        found[name] = predictions(model)
    (FOLDER / f"predictions-{VERSION}.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
