"""
Bayesian optimization with function draws
=========================================

For users who choose experiments. Draw one function from the posterior, go where it is lowest, measure there,
and fit again (Thompson sampling). A drawn function is consistent everywhere, and JAX differentiates it.
"""

import os

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

from bochner import DeepGPRegressor, Exact

N_EXPERIMENTS = 2 if os.environ.get("BOCHNER_SHORT") else 20


def branin(X):
    """The function to minimize; its minimum is 0.398."""
    a, b = X.T
    bend = b - 5.1 / (4 * np.pi**2) * a**2 + 5 / np.pi * a - 6
    return bend**2 + 10 * (1 - 1 / (8 * np.pi)) * np.cos(a) + 10


low, high = np.array([-5.0, 0.0]), np.array([10.0, 15.0])
generator = np.random.default_rng(0)
X = generator.uniform(low, high, size=(10, 2))
y = branin(X)

# %%
# Each round: fit, draw, search the drawn function on random places, and walk down its gradient from the best.

for number in range(N_EXPERIMENTS):
    model = DeepGPRegressor(Exact(kernel="rbf", varying_noise=False), random_state=number).fit(X, y)
    (function,) = model.sample_functions(1)
    places = generator.uniform(low, high, size=(1000, 2))
    place = jnp.asarray(places[np.argmin(function(places))], jnp.float32)
    slope = jax.grad(lambda x, drawn=function: drawn(x[None])[0])
    for _ in range(10):
        step = slope(place)
        place = jnp.clip(place - 0.1 * step / (jnp.linalg.norm(step) + 1e-6), low, high)
    X = np.vstack([X, np.asarray(place, float)])
    y = np.append(y, branin(X[-1:]))

print(
    f"the lowest of 10 random places {y[:10].min():.3f}, after {N_EXPERIMENTS} more {y.min():.3f}"
)

# %%
_, ax = plt.subplots(figsize=(5, 3.2), layout="constrained")
ax.plot(np.minimum.accumulate(y), label="lowest so far")
ax.axhline(0.398, color="gray", linestyle="--", label="minimum")
ax.set_yscale("log")
ax.set_xlabel("experiments")
ax.legend(frameon=False)
