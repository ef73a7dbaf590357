"""
An export served without bochner
================================

For those who deploy. The predictive function becomes one file with a program in StableHLO, and another with its
schema; the server needs JAX, and neither this library nor scikit-learn.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from bochner import DeepGPRegressor
from bochner.estimators.export import export

generator = np.random.default_rng(0)
X = generator.uniform(-2, 2, size=(150, 2))
y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * generator.normal(size=150)
model = DeepGPRegressor(random_state=0).fit(X, y)

folder = Path(tempfile.mkdtemp())
files = export(model, folder / "model.jax")
print([(path.name, path.stat().st_size) for path in files])
schema = json.loads((folder / "model.json").read_text())
print(list(schema))

# %%
# The server is another process, which must not import this library.

SERVER = """
import json, sys
import jax, numpy as np

sys.modules["bochner"] = None  # an import of it would fail
program = jax.export.deserialize(bytearray(open("model.jax", "rb").read()))
rows = np.float32(json.load(sys.stdin))
print(json.dumps({name: np.asarray(values).tolist() for name, values in program.call(rows).items()}))
"""
rows = [[0.5, 1.0], [-1.0, 0.0], [1.5, -1.5]]
served = subprocess.run(
    [sys.executable, "-c", SERVER], cwd=folder, input=json.dumps(rows), capture_output=True, text=True, check=True
)  # fmt: skip
answer = json.loads(served.stdout)
print(answer)

mean, deviation = model.predict(rows, return_std=True)
assert np.allclose(answer["mean"], mean, rtol=1e-3, atol=1e-3)
assert np.allclose(answer["std"], deviation, rtol=1e-3, atol=1e-3)
