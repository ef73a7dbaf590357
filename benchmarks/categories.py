"""A simulated table whose text column has hundreds of values, for our default and for CatBoost."""

import dataclasses
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

N_TRAIN, N_TEST, N_CATEGORIES = 3000, 2000, 500
_DEPTHS, _RATES = (4, 6), (0.03, 0.1)
_MOST_TREES, _PATIENCE, _SHARE_HELD_OUT = 1500, 50, 0.2


@dataclasses.dataclass(frozen=True)
class Draw:
    """Rows with a category and three numbers; the target is an effect, a smooth function and noise.

    Attributes:
        known: rows to learn from.
        new: rows to predict, of categories that may be among those.
        unseen: the same, of categories that are not.
    """

    known: pd.DataFrame
    new: pd.DataFrame
    unseen: pd.DataFrame

    @classmethod
    def of(cls, seed: int, *, classes: bool) -> "Draw":
        """Draw the table."""
        rng = np.random.default_rng(seed)
        effects = rng.normal(size=2 * N_CATEGORIES)

        def frame(n: int, categories: np.ndarray) -> pd.DataFrame:
            city, X = rng.choice(categories, n), rng.uniform(-1, 1, (n, 3))
            smooth = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2]
            f = effects[city] + smooth
            y = 0.4 * rng.normal(size=n) + f
            if classes:
                y = np.where(rng.uniform(size=n) < 1 / (1 + np.exp(-2.5 * f)), "yes", "no")
            numbers = {name: X[:, j] for j, name in enumerate("abc")}
            return pd.DataFrame({"city": [f"city {i}" for i in city], **numbers, "y": y})

        seen, others = np.arange(N_CATEGORIES), np.arange(N_CATEGORIES, 2 * N_CATEGORIES)
        return cls(frame(N_TRAIN, seen), frame(N_TEST, seen), frame(N_TEST, others))


def ours(draw: Draw, *, classes: bool) -> dict[str, Any]:
    """Fit our default, and score it."""
    from bochner import DeepGPClassifier, DeepGPRegressor

    X, y = draw.known.drop(columns="y"), draw.known["y"].to_numpy()
    model = (DeepGPClassifier if classes else DeepGPRegressor)(random_state=0).fit(X, y)
    found: dict[str, Any] = {}
    for name, rows in (("seen", draw.new), ("unseen", draw.unseen)):
        X, y = rows.drop(columns="y"), rows["y"].to_numpy()
        wrong = np.mean(model.predict(X) != y) if classes else rmse(model.predict(X), y)
        found[name] = {"wrong": float(wrong), "log_score": float(model.log_prob(X, y).mean())}
    return found | {"members": [one for one in model.members_ if one["weight"] > 0.01]}


def catboost(draw: Draw, *, classes: bool) -> dict[str, Any]:
    """Fit CatBoost with its own treatment of text, its depth, rate and number of trees by rows held out."""
    import catboost as cb

    cut = round(len(draw.known) * (1 - _SHARE_HELD_OUT))
    whole, fitted, held_out = (
        cb.Pool(rows.drop(columns="y"), rows["y"], cat_features=["city"])
        for rows in (draw.known, draw.known[:cut], draw.known[cut:])
    )

    def best(loss: str) -> Any:
        def model(settings: dict[str, Any], n_trees: int) -> Any:
            return cb.CatBoost(
                {"loss_function": loss, "iterations": n_trees, "thread_count": 1, "random_seed": 0, **settings}
            )  # fmt: skip

        tried = []
        for depth in _DEPTHS:
            for rate in _RATES:
                settings = {"depth": depth, "learning_rate": rate}
                one = model(settings, _MOST_TREES)
                one.fit(fitted, eval_set=held_out, early_stopping_rounds=_PATIENCE, verbose=False)
                score = min(one.get_evals_result()["validation"][loss])
                tried.append((score, one.get_best_iteration() + 1, settings))
        _, n_trees, settings = min(tried, key=lambda one: one[0])
        return model(settings, n_trees).fit(whole, verbose=False)

    mean = best("Logloss" if classes else "RMSE")
    law = mean if classes else best("RMSEWithUncertainty")
    found = {}
    for name, rows in (("seen", draw.new), ("unseen", draw.unseen)):
        pool, y = cb.Pool(rows.drop(columns="y"), cat_features=["city"]), rows["y"].to_numpy()
        if classes:
            p = mean.predict(pool, prediction_type="Probability")[:, 1]
            own = np.where(y == "yes", p, 1 - p)
            found[name] = {
                "wrong": float(np.mean(own < 0.5)),
                "log_score": float(np.log(own).mean()),
            }
            continue
        location, variance = law.predict(pool, prediction_type="RMSEWithUncertainty").T
        log_density = -0.5 * (y - location) ** 2 / variance - 0.5 * np.log(2 * np.pi * variance)
        found[name] = {
            "wrong": rmse(mean.predict(pool), y),
            "log_score": float(log_density.mean()),
        }
    return found


SYSTEMS = {"bochner": ours, "CatBoost": catboost}


def rmse(predicted: np.ndarray, y: np.ndarray) -> float:
    """Compute the root of the mean squared error."""
    return float(np.sqrt(np.mean((predicted - y) ** 2)))


def measure(n_draws: int, systems: list[str]) -> Iterator[dict[str, Any]]:
    """Score each system on each draw."""
    for seed in range(n_draws):
        for classes in (False, True):
            draw = Draw.of(seed, classes=classes)
            for name in systems:
                begun = time.monotonic()
                found = SYSTEMS[name](draw, classes=classes)
                yield {
                    "draw": seed,
                    "task": "classes" if classes else "regression",
                    "system": name,
                    "seconds": round(time.monotonic() - begun, 1),
                    **found,
                }
