"""
From scikit-learn's Gaussian process
====================================

For users who come from there. The same model in both, to the last digits that the optimizers leave; then what
is different by default.
"""

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from bochner import DeepGPRegressor, Exact

generator = np.random.default_rng(0)
X = generator.uniform(-3, 3, size=(80, 2))
y = np.sin(X[:, 0]) + 0.3 * X[:, 1] ** 2 + 0.2 * generator.normal(size=80)
X_new = generator.uniform(-3, 3, size=(500, 2))

# %%
# A smooth covariance with a lengthscale for each column, and noise
# -----------------------------------------------------------------

theirs = GaussianProcessRegressor(
    ConstantKernel(1.0) * RBF([1.0, 1.0]) + WhiteKernel(0.1), normalize_y=True, n_restarts_optimizer=2, random_state=0
).fit(X, y)  # fmt: skip
ours = DeepGPRegressor(Exact(kernel="rbf", varying_noise=False), random_state=0).fit(X, y)

mean, deviation = theirs.predict(X_new, return_std=True)
our_mean, our_deviation = ours.predict(X_new, return_std=True)
print(f"means differ by {np.sqrt(np.mean((mean - our_mean) ** 2)):.3f}, y varies by {y.std():.2f}")
print(f"mean deviation of y: {np.mean(deviation):.3f} and {np.mean(our_deviation):.3f}")

# %%
# What is different
# -----------------
# ==============================  ======================================  =====================================
# for                             scikit-learn                            bochner
# ==============================  ======================================  =====================================
# kernel                          you choose                              by default a sum, learned by columns
# scaling                         ``normalize_y``, and your pipeline      columns and targets, learned
# noise                           a ``WhiteKernel``, one for all rows     always, varying where left-out rows
# say so the target                      as it is                                bent where left-out rows say so
# means and deviations            ``predict(X, return_std=True)``         the same, of y with its noise draws
# ``sample_y(X)`` at given rows           ``sample_functions(n)``, for any rows many rows
# cubic                                   landmarks and deep models hyperparameters that are known
# ``optimizer=None``                      not offered: parameters are learned
# ==============================  ======================================  =====================================
#
# Without options, other members join, and rows left out decide:

default = DeepGPRegressor(random_state=0).fit(X, y)
y_new = np.sin(X_new[:, 0]) + 0.3 * X_new[:, 1] ** 2 + 0.2 * generator.normal(size=500)
for name, model in (("the same kernel", ours), ("no options", default)):
    print(name, {metric: round(value, 3) for metric, value in model.evaluate(X_new, y_new).items()})
