"""
Several workers
===============

For users with more rows than one process should go through. Two devices make the same update in step; with Ray, workers
compute gradients at their own pace (``Asynchronous``). A processor counts as two devices here, so this runs anywhere.
"""

import os

# Before JAX is imported: how many devices the processor shall count as. GPUs need no such line.
os.environ["XLA_FLAGS"] = (
    os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=2"
)

import matplotlib.pyplot as plt
import numpy as np

from bochner import Deep, DeepGPRegressor
from bochner.distributed import Synchronous

N_STEPS = 100 if os.environ.get("BOCHNER_SHORT") else 2000

generator = np.random.default_rng(0)
X = generator.uniform(-2, 2, size=(20_000, 3))
y = np.sin(3 * X[:, 0] * X[:, 1]) + 0.1 * generator.normal(size=len(X))
X_new = generator.uniform(-2, 2, size=(2000, 3))

# %%
# ``distributed`` is a setting of the estimator. A batch is shared out, and the answer is that of one device
# with the same batch, but for rounding.

deep = Deep(n_layers=2, n_random_features=50, max_steps=N_STEPS, batch_size=200)
one, two = (
    DeepGPRegressor(deep, distributed=Synchronous(n), random_state=0).fit(X, y) for n in (1, 2)
)

mean, deviation = one.predict(X_new, return_std=True)
same, _ = two.predict(X_new, return_std=True)
print(f"means differ by at most {np.max(np.abs(mean - same) / deviation):.1e} deviations")

# %%
# With Ray, on this machine or on a cluster, ``distributed=Asynchronous(n_workers=4)`` takes the place of
# ``Synchronous(2)``: a slow or lost worker holds up nobody, and the answer depends on the order of
# arrival.

_, ax = plt.subplots(figsize=(4, 4), layout="constrained")
ax.plot(mean, same, ".", markersize=2)
ax.set_xlabel("mean by one device")
ax.set_ylabel("mean by two in step")
