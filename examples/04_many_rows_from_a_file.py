"""
Many rows from a file
=====================

For users whose tables do not fit into memory. A file is read in parts, by the fit, the predictions and the
metrics; memory does not grow with the number of rows.
"""

import os
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bochner import Deep, DeepGPRegressor, Linear

# So that a test of all examples is short.
SHORT = os.environ.get("BOCHNER_SHORT")
n_rows, steps = (6_000, 60) if SHORT else (100_000, 1_500)

# %%
# A Parquet file, written in parts as well.

folder = Path(tempfile.mkdtemp())


def write(path, n, seed):
    """Write rows of a wave over two columns, and one that does nothing."""
    generator = np.random.default_rng(seed)
    with pq.ParquetWriter(path, pa.schema({name: pa.float64() for name in "abcy"})) as writer:
        for start in range(0, n, 20_000):
            size = min(20_000, n - start)
            a, b, c = generator.uniform(-2, 2, size=(3, size))
            y = np.sin(2 * a) * b + 0.1 * generator.normal(size=size)
            writer.write_table(pa.table({"a": a, "b": b, "c": c, "y": y}))


write(folder / "train.parquet", n_rows, seed=0)
write(folder / "test.parquet", 2_000, seed=1)

# %%
# Which members a default fit has depends on the number of rows; from 2,000 on, the deep model is one of them.
# Here the members are named, and the deep one is a single model with few steps, so that this page is built
# quickly.

deep = Deep(max_steps=steps, n_random_features=50, n_mc_predict=20, n_members=1, objective="elbo")
model = DeepGPRegressor([("linear", Linear()), ("deep", deep)], random_state=0)
model.fit(folder / "train.parquet", "y")
print(model.summary_)
print(model.evaluate(folder / "test.parquet", "y"))

# %%
# What a table in memory would be is the path of a file everywhere.

low, high = model.predict_interval(folder / "test.parquet", coverage=0.9).T
ax = model.plot_learning_curve()
