"""Test log-likelihood and CPU time of the exact models on small tables of the suite.

    python -m benchmarks.exact_members LEAST-MOST SPLIT[,SPLIT] regression|classification [NAME ...]

Tables are `$BOCHNER_DATA/suite/*.parquet` of LEAST to MOST rows, with task and target in the schema's metadata. Split k
takes the first tenth of `numpy.random.default_rng(k).permutation(n)` as test rows.
"""

import json
import os
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bochner.exact.classes import Classification
from bochner.exact.columns import Columns
from bochner.exact.landmark_classes import fit_classification
from bochner.exact.landmark_regression import fit_regression
from bochner.exact.regression import Regression

MOST_EXACT = 2000


def columns_of(table: pa.Table, target: str) -> list[np.ndarray]:
    found = []
    for name in table.column_names:
        if name == target:
            continue
        column = table[name]
        text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
        if text:
            found.append(np.array(column.to_pylist(), dtype=object))
        else:
            found.append(column.cast(pa.float64()).to_numpy().astype(float))
    return found


def split(path: Path, k: int) -> tuple[pa.Table, pa.Table, str, str]:
    table = pq.read_table(path)
    about = {key.decode(): value.decode() for key, value in table.schema.metadata.items()}
    order = np.random.default_rng(k).permutation(table.num_rows)
    cut = max(1, table.num_rows // 10)
    return (
        table.take(np.sort(order[cut:])),
        table.take(np.sort(order[:cut])),
        about["target"],
        about["task"],
    )


def measure_regression(train: pa.Table, test: pa.Table, target: str) -> dict:
    y, z = (table[target].to_numpy().astype(float) for table in (train, test))
    start = time.process_time()
    columns = Columns.learn(columns_of(train, target))
    model = (Regression.fit if train.num_rows <= MOST_EXACT else fit_regression)(
        columns(columns_of(train, target)), y
    )
    fitted = time.process_time()
    rows = columns(columns_of(test, target))
    law = model.predict(rows)
    parts = {
        part.name: [
            round(-float(part.left_out.mean()), 3),
            round(-float(part.law(rows).log_density(z).mean()), 3),
            round(float(w), 2),
            part.tails.degrees,
            round(part.tails.factor, 2),
        ]
        for part, w in zip(model.parts, model.weights, strict=True)
    }
    low, high = law.quantiles([0.05, 0.95]).T
    return {
        "mnll": round(-float(law.log_density(z).mean()), 4),
        "left_out": round(-float(model.left_out().mean()), 4),
        "rmse": round(float(np.sqrt(np.mean((law.mean - z) ** 2))), 4),
        "coverage90": round(float(np.mean((low <= z) & (z <= high))), 3),
        "fit_seconds": round(fitted - start, 2),
        "parts": parts,
    }


def measure_classes(train: pa.Table, test: pa.Table, target: str) -> dict:
    names, labels = np.unique(np.array(train[target].to_pylist()), return_inverse=True)
    truth = np.searchsorted(names, np.array(test[target].to_pylist()))
    start = time.process_time()
    columns = Columns.learn(columns_of(train, target))
    rows = columns(columns_of(train, target))
    few = train.num_rows <= MOST_EXACT
    fit = Classification.fit if few else fit_classification
    model = fit(rows, labels, len(names))
    fitted = time.process_time()
    rows = columns(columns_of(test, target))

    def mnll(p: np.ndarray, labels: np.ndarray) -> float:
        return round(-float(np.mean(np.log(p[np.arange(len(labels)), labels]))), 4)

    p = model.predict_proba(rows)
    own = labels[model.judged]
    parts = {
        part.name: [
            mnll(part.left_out, own),
            mnll(part.probabilities(rows), truth),
            round(float(weight), 2),
            part.temperature,
        ]
        for part, weight in zip(model.parts, model.weights, strict=True)
    }
    return {
        "mnll": mnll(p, truth),
        "left_out": mnll(model.left_out(), own),
        "error": round(float(np.mean(p.argmax(axis=1) != truth)), 4),
        "fit_seconds": round(fitted - start, 2),
        "parts": parts,
    }


def main() -> None:
    least, most = (int(limit) for limit in sys.argv[1].split("-"))
    splits, wanted, names = [int(k) for k in sys.argv[2].split(",")], sys.argv[3], sys.argv[4:]
    suite = Path(os.environ["BOCHNER_DATA"]) / "suite"
    for path in sorted(suite.glob("*.parquet"), key=lambda path: pq.read_metadata(path).num_rows):
        n_rows = pq.read_metadata(path).num_rows
        if not least <= n_rows <= most or (names and path.stem not in names):
            continue
        for k in splits:
            train, test, target, task = split(path, k)
            if task != wanted:
                continue
            found = {"data": path.stem, "rows": train.num_rows, "split": k}
            measure = measure_regression if task == "regression" else measure_classes
            print(json.dumps(found | measure(train, test, target)), flush=True)


if __name__ == "__main__":
    main()
