"""
A researcher's training loop
============================

For researchers. The deep Gaussian process is a tree of JAX arrays, its noise is an argument, and its bound a
function: any loop of yours can train it.
"""

import os

import equinox as eqx
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import optax

from bochner.gp.layers import LayerSettings
from bochner.gp.model import DeepGP
from bochner.gp.reparameterization import DrawWeights
from bochner.inference.objectives import Elbo
from bochner.likelihoods import Gaussian
from bochner.prediction.statistics import Moments, Posterior
from bochner.rows.table import Table

N_STEPS = 50 if os.environ.get("BOCHNER_SHORT") else 2000

generator = np.random.default_rng(0)
x = generator.uniform(-2, 2, size=(200, 1))
y = np.where(x > 0, 1.0, 0.0) + 0.05 * generator.normal(size=(200, 1))
table = Table.of(x, y)

model = DeepGP.start(
    [LayerSettings(width=3, n_rf=50, log_var=-6.0), LayerSettings(width=1, n_rf=50, log_var=-6.0)],
    Gaussian.start(1, noise_variance=0.1),
    d_in=1,
    feed_inputs=True,
    key=jax.random.key(0),
)

# %%
# One step: a Monte Carlo sample of the bound, its gradient, and Adam.

parameters, rest = eqx.partition(model, eqx.is_inexact_array)
optimizer = optax.adam(0.02)


@eqx.filter_jit
def step(parameters, state, key):
    """Update the parameters; give the bound as well."""

    def loss(parameters):
        model = eqx.combine(parameters, rest)
        noise = model.draw_noise((1,), key=key)
        return -Elbo()(model, table, noise, DrawWeights(), scale=1.0).elbo / table.n_rows

    value, gradient = jax.value_and_grad(loss)(parameters)
    updates, state = optimizer.update(gradient, state)
    return optax.apply_updates(parameters, updates), state, -value


state, bounds = optimizer.init(parameters), []
for key in jax.random.split(jax.random.key(1), N_STEPS):
    parameters, state, bound = step(parameters, state, key)
    bounds.append(bound)
trained = eqx.combine(parameters, rest)

# %%
# Predictions from draws of the posterior.

posterior = Posterior.draw(trained, n_draws=100, key=jax.random.key(2))
grid = np.linspace(-2, 2, 200)[:, None]
mean = posterior.map_rows(Moments(), grid)["mean"][:, 0]

_, axes = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
axes[0].plot(np.asarray(bounds))
axes[0].set_xlabel("step")
axes[0].set_title("bound of a row")
axes[0].set_ylim(bottom=-2)
axes[1].plot(x, y, "k.", markersize=3, label="data")
axes[1].plot(grid, mean, label="mean")
for number in range(5):
    drawn = trained.draw_function(key=jax.random.key(number))
    axes[1].plot(grid, drawn(jnp.asarray(grid))[:, 0], color="gray", linewidth=0.6)
axes[1].legend(frameon=False)
