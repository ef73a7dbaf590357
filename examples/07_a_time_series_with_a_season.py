"""
A time series with a season
===========================

For users with one column of time. A trend, a season that repeats, and what is left: the forecast gets wider
with the distance from what was seen, and keeps the season.
"""

import matplotlib.pyplot as plt
import numpy as np

from bochner import DeepGPRegressor, Exact
from bochner.exact.kernels import RBF, Linear, Periodic

# %%
# Twelve years of months, of which ten are known.

generator = np.random.default_rng(0)
month = np.arange(144.0)
season = 3 * np.sin(2 * np.pi * month / 12) + np.cos(4 * np.pi * month / 12)
wandering = np.cumsum(generator.normal(scale=0.25, size=144))
y = 50 + 0.1 * month + season + wandering + 0.3 * generator.normal(size=144)
X, known = month[:, None], month < 120

# %%
# The kernel says what is known: the period. All else is learned: how strong each part is, and how smooth.

kernel = Linear() + Periodic(0, period=12.0) + RBF()
model = DeepGPRegressor(Exact(kernel=kernel, varying_noise=False), random_state=0)
model.fit(X[known], y[known])
print(model.evaluate(X[~known], y[~known]))

# %%
mean = model.predict(X)
low, high = model.predict_interval(X, coverage=0.9).T
_, ax = plt.subplots(figsize=(8, 3.4), layout="constrained")
ax.fill_between(month, low, high, alpha=0.2, linewidth=0, label="90 % interval")
ax.plot(month, mean, label="mean")
for place, function in enumerate(model.sample_functions(3)):
    label = None if place else "functions drawn"
    ax.plot(month, function(X), linewidth=0.7, color="gray", label=label)
ax.plot(month[known], y[known], "k.", markersize=3, label="known")
ax.plot(month[~known], y[~known], "r.", markersize=4, label="to be forecast")
ax.set_xlabel("month")
ax.legend(frameon=False, ncols=2)

# %%
# The shares of the parts in what the mean does.

print({name: round(share, 3) for name, share in model.explain().parts.items()})
