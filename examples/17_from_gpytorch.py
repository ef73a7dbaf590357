"""
From GPyTorch
=============

For users who come from there. An exact Gaussian process in both, then what is different; GPyTorch's half runs where it
is installed.
"""

import importlib.util

import numpy as np

from bochner import DeepGPRegressor, Exact

generator = np.random.default_rng(0)
X = generator.uniform(-3, 3, size=(100, 2))
y = np.sin(X[:, 0]) + 0.3 * X[:, 1] ** 2 + 0.2 * generator.normal(size=100)
X_new = generator.uniform(-3, 3, size=(500, 2))

# %%
# There: a module, a likelihood, and a loop
# -----------------------------------------


def by_gpytorch():
    """Give mean and deviation of new targets, by an RBF kernel with a lengthscale for each column."""
    import gpytorch
    import torch

    class Model(gpytorch.models.ExactGP):
        def __init__(self, inputs, targets, likelihood):
            super().__init__(inputs, targets, likelihood)
            self.mean_module = gpytorch.means.ConstantMean()
            self.covar_module = gpytorch.kernels.ScaleKernel(
                gpytorch.kernels.RBFKernel(ard_num_dims=2)
            )

        def forward(self, x):
            return gpytorch.distributions.MultivariateNormal(
                self.mean_module(x), self.covar_module(x)
            )

    inputs, targets = (
        torch.as_tensor(array, dtype=torch.float64) for array in (X, (y - y.mean()) / y.std())
    )
    likelihood = gpytorch.likelihoods.GaussianLikelihood().double()
    model = Model(inputs, targets, likelihood).double()
    evidence = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    for _ in range(200):
        optimizer.zero_grad()
        loss = -evidence(model(inputs), targets)
        loss.backward()
        optimizer.step()
    model.eval()
    likelihood.eval()
    with torch.no_grad():
        found = likelihood(model(torch.as_tensor(X_new)))
    return y.mean() + y.std() * found.mean.numpy(), y.std() * found.stddev.numpy()


# %%
# Here: one line
# --------------

ours = DeepGPRegressor(Exact(kernel="rbf", varying_noise=False), random_state=0).fit(X, y)
mean, deviation = ours.predict(X_new, return_std=True)
print(f"here: deviations from {deviation.min():.3f} to {deviation.max():.3f}")

if importlib.util.find_spec("gpytorch"):
    their_mean, their_deviation = by_gpytorch()
    print(
        f"means differ by {np.sqrt(np.mean((mean - their_mean) ** 2)):.3f}, y varies by {y.std():.2f}"
    )
    print(f"mean deviation of y: there {their_deviation.mean():.3f}, here {deviation.mean():.3f}")
else:
    print("GPyTorch is not installed; `pip install gpytorch` lets its half run.")

# %%
# What is different
# -----------------
# - **Training**: your loop, rate and number of steps there; here until nothing is gained, from several starts.
# - **Scaling**: yours there; here columns and targets, learned and undone.
# - **Deep**: ``DeepGPLayer`` with inducing points there; here ``Deep(n_layers=3)``, random features.
# - **Kernels**: modules there; here texts or objects over named columns, ``"rbf(lat, lon) + laplace"``.
# - **A model of your own**: any module there; here the pieces of :doc:`11_a_training_loop`, in JAX.
# - **Structured inference** (KISS-GP, multitask, GPLVM): there; not here.
