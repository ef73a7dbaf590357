"""Writes the model files of `data_files/` and their predictions, which later versions must open and repeat.

Run `python -m tests.make_model_files` only when a new version of the format begins, and keep the files of the old one.
"""

import json
from pathlib import Path

import numpy as np
import pandas as pd

from bochner import DeepGPClassifier, DeepGPRegressor

FOLDER = Path(__file__).parent / "data_files"
PREDICTIONS = FOLDER / "predictions-1.json"
SMALL = {
    "n_random_features": 4,
    "n_mc_predict": 6,
    "n_mc_train": 1,
    "batch_size": 20,
    "max_steps": 10,
    "theta_from": 0,
    "random_state": 0,
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


def models() -> dict:
    """A regressor with stacked layers, a classifier with text, lists and tuples, and a regressor of a table."""
    X = rows()
    y = np.sin((X["age"] - 40.0) / 10.0) + 0.1 * (X["mass"] - 70.0)
    labels = np.array(["high", "low", "middle"])[np.digitize(y, [-0.5, 0.5])]
    regressor = DeepGPRegressor(n_layers=3, width=2, feed_inputs=False, kernel="matern32", **SMALL)
    classifier = DeepGPClassifier(
        n_layers=2, width=(2,), kernel=["rbf", "arccos1"], omega="var-resampled",
        frequencies="independent", class_weight={"high": 2.0, "low": 1.0, "middle": 1.0}, **SMALL,
    )  # fmt: skip
    of_table = DeepGPRegressor(n_layers=1, likelihood="student-t", **SMALL)
    return {
        "regressor": regressor.fit(X, 5.0 + y),
        "classifier": classifier.fit(X, labels),
        "table": of_table.fit(table().assign(y=y), "y"),
    }


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    X, fitted = rows(8), models()
    for name, model in fitted.items():
        model.save(FOLDER / f"{name}-1.bochner")
    mean, std = fitted["regressor"].predict(X, return_std=True)
    predictions = {
        "X": X.to_dict("list"),
        "regressor": {"mean": mean.tolist(), "std": std.tolist()},
        "table": {"mean": fitted["table"].predict(table(8)).tolist()},
        "classifier": {"probabilities": fitted["classifier"].predict_proba(X).tolist()},
    }
    PREDICTIONS.write_text(json.dumps(predictions, indent=1) + "\n")


if __name__ == "__main__":
    main()
