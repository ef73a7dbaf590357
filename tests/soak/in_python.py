"""A case through the scikit-learn interface: fit, predict in each way, save, open, and compare."""

import random
import warnings

import numpy as np

import bochner
from tests.soak.outcomes import RefusedError, check_error, check_warnings, demand
from tests.soak.settings import random_settings
from tests.soak.tables import TARGET, RandomTable


def run(r: random.Random, table: RandomTable, folder):
    """Fit a random model, and demand of it what every model must give."""
    model = random_settings(r, table.task).made(table.task)
    by_name = r.random() < 0.5
    X, y = (table.frame, TARGET) if by_name else table.matrix()
    weights = _weights(r, len(X)) if not by_name and r.random() < 0.3 else None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model.fit(X, y, weights)
        except Exception as error:
            check_error(error)
        try:
            _check_model(r, model, X, y, table, folder)
        except RefusedError:
            raise
        except (ValueError, TypeError) as error:
            check_error(error)
    check_warnings(caught)


def _weights(r, n):
    generator = np.random.default_rng(r.randrange(2**32))
    weights = generator.random(n) * 10.0 ** r.choice([-3, 0, 0, 5])
    weights[0] = r.choice([0.0, 1.0])
    return weights


def _check_model(r, model, X, y, table, folder):
    path = folder / "a model.bochner"
    model.save(path)
    opened = bochner.load(path)
    check = _check_classes if table.task == "classification" else _check_numbers
    whole = check(model, X, table)
    for name, values in check(opened, X, table).items():
        demand(np.array_equal(values, whole[name]), f"{name} of the opened file is another")
    order = np.random.default_rng(0).permutation(len(X))[:20]
    few = X.iloc[order] if hasattr(X, "iloc") else X[order]
    for name, values in check(model, few, table).items():
        spread = np.ptp(whole[name]) + 1e-12 * np.abs(whole[name]).max()
        close = np.allclose(values, whole[name][order], rtol=1e-4, atol=1e-3 * spread)
        demand(close, f"{name} of a row depends on the other rows")
    what = r.choice(["evaluate", "sample", "functions", "explain", "score", "nothing"])
    if what == "evaluate":
        found = model.evaluate(X, y)
        demand(all(np.isfinite(list(found.values()))), f"evaluate gives {found}")
    elif what == "sample":
        demand(model.sample_y(X, 3).shape == (len(X), 3), "shape of samples")
    elif what == "functions":
        matrix = few if not hasattr(few, "iloc") else model.fitted_.reader.encoder(_as_table(few))
        demand(np.all(np.isfinite(model.sample_functions(1)[0](matrix))), "a drawn function")
    elif what == "explain":
        model.explain()
    elif what == "score":
        demand(np.isfinite(model.score(X, y)), "score")


def _as_table(frame):
    import pyarrow as pa

    return pa.RecordBatch.from_pandas(frame, preserve_index=False)


def _check_numbers(model, X, table):
    found = model.predict_summary(X, [0.05, 0.5, 0.95])
    for name, values in found.items():
        demand(len(values) == len(X), f"rows of {name}")
        demand(np.all(np.isfinite(values)), f"{name} is not finite")
    demand(np.all(found["std"] >= 0), "a negative deviation")
    demand(np.all(np.diff(found["quantiles"], axis=-1) >= 0), "quantiles that cross")
    if table.is_plain:
        demand(np.all(found["std"] > 0), "a deviation of zero")
    return found


def _check_classes(model, X, table):
    probabilities = model.predict_proba(X)
    demand(probabilities.shape == (len(X), len(model.classes_)), "shape of the probabilities")
    demand(np.all(np.isfinite(probabilities)), "probabilities are not finite")
    demand(np.allclose(probabilities.sum(axis=1), 1, atol=1e-5), "probabilities do not add up")
    demand(set(model.predict(X)) <= set(model.classes_), "an unknown class")
    return {"probabilities": probabilities}
