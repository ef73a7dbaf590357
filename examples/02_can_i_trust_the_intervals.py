"""
Can I trust the intervals?
==========================

For users who rely on them. Noise that grows with the input: one width for all rows would be wrong nearly
everywhere. Coverage on held-out rows tells, as a whole and in groups.
"""

import matplotlib.pyplot as plt
import numpy as np

from bochner import DeepGPRegressor, Exact


def draw(n, seed):
    """Rows whose noise grows along the first column."""
    generator = np.random.default_rng(seed)
    X = generator.uniform(0, 4, size=(n, 2))
    noise = 0.1 + 0.25 * X[:, 0]
    return X, np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + noise * generator.normal(size=n)


X, y = draw(250, seed=0)
X_new, y_new = draw(2000, seed=1)

varying = DeepGPRegressor(random_state=0).fit(X, y)
constant = DeepGPRegressor(Exact(varying_noise=False), random_state=0).fit(X, y)

# %%
# As a whole, both hold what they promise
# ---------------------------------------

ax = varying.plot_calibration(X_new, y_new)
ax.lines[-1].set_label("default")
constant.plot_calibration(X_new, y_new, ax=ax)
ax.lines[-1].set(label="one noise for all rows", color="#c0392b")
ax.legend(frameon=False)

# %%
# In groups, only one does
# ------------------------
# Coverage as a whole can hide that intervals are too narrow here and too wide there. So look at it in groups
# that matter to you; here quarters of the first column.

quarter = np.digitize(X_new[:, 0], [1, 2, 3])
for name, model in (("default", varying), ("one noise for all rows", constant)):
    low, high = model.predict_interval(X_new, coverage=0.9).T
    inside = (y_new >= low) & (y_new <= high)
    print(f"{name:24}", *(f"{inside[quarter == place].mean():6.1%}" for place in range(4)))

# %%
# What the variance is made of
# ----------------------------
# One part is about the function, and shrinks with more rows. The other is noise, and stays.

grid = np.column_stack([np.linspace(0, 4, 100), np.full(100, 2.0)])
epistemic, aleatoric = varying.predict_variance(grid)
_, ax = plt.subplots(figsize=(5, 3.2), layout="constrained")
ax.plot(grid[:, 0], np.sqrt(epistemic), label="of the function")
ax.plot(grid[:, 0], np.sqrt(aleatoric), label="noise")
ax.plot(grid[:, 0], 0.1 + 0.25 * grid[:, 0], "--", color="gray", label="noise, in truth")
ax.set_xlabel("first column")
ax.set_ylabel("deviation")
ax.legend(frameon=False)

# %%
# Of a deep model alone, ``bochner check MODEL TABLE`` compares intervals with those of a Markov chain.
