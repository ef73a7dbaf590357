"""The laws of the targets as SciPy's distributions, from the last layer's outputs, each with an example."""

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from bochner.likelihoods import (
    AbstractRegressionLikelihood,
    Gamma,
    Gaussian,
    HeteroscedasticGaussian,
    NegativeBinomial,
    Poisson,
    StudentT,
)

FLOOR = 1e-3
SPREAD = 0.25


def softplus(x):
    return np.logaddexp(0.0, x)


def gaussian(F, log_noise_variance):
    return stats.norm(F, np.exp(0.5 * np.asarray(log_noise_variance)))


def heteroscedastic(F, constant):
    mean, g = np.split(np.asarray(F), 2, axis=1)
    return stats.norm(mean, FLOOR + softplus(np.asarray(constant) + SPREAD * g))


def student_t(F, log_scale, raw_nu):
    nu = 2 + softplus(np.asarray(raw_nu)) * np.ones(np.shape(F))
    return stats.t(nu, F, np.exp(np.asarray(log_scale)))


def poisson(F, constant):
    return stats.poisson(np.exp(np.asarray(constant) + F))


def negative_binomial(F, constant, log_spread):
    shape = np.exp(-np.asarray(log_spread)) * np.ones(np.shape(F))
    return stats.nbinom(shape, shape / (shape + np.exp(np.asarray(constant) + F)))


def gamma(F, constant, log_spread):
    spread = np.exp(np.asarray(log_spread))
    return stats.gamma(1 / spread, scale=spread * np.exp(np.asarray(constant) + F))


N_TARGETS = 2


@dataclasses.dataclass
class Example:
    make: Callable[[], AbstractRegressionLikelihood]
    law: Callable
    targets: Callable = lambda generator, shape: generator.normal(size=shape) * 2

    def __call__(self):
        """The likelihood, outputs F of three rows, and the law of the targets."""
        likelihood = self.make()
        d_out = likelihood.n_functions(N_TARGETS)
        F = np.random.default_rng(0).normal(size=(3, d_out))
        return likelihood, jnp.asarray(F), self.law(F, *jax.tree.leaves(likelihood))


EXAMPLES = {
    "gaussian": Example(lambda: Gaussian(jnp.array([-0.7, 0.4])), gaussian),
    "heteroscedastic": Example(
        lambda: HeteroscedasticGaussian(jnp.array([-0.3, 0.8])), heteroscedastic
    ),
    "student-t": Example(
        lambda: StudentT(jnp.array([-0.5, 0.3]), jnp.array([1.0, 3.0])), student_t
    ),
    "poisson": Example(
        lambda: Poisson(jnp.array([0.5, 1.5])),
        poisson,
        lambda generator, shape: generator.poisson(3.0, size=shape).astype(float),
    ),
    "negative-binomial": Example(
        lambda: NegativeBinomial(jnp.array([0.5, 1.5]), jnp.array([-0.9, 0.2])),
        negative_binomial,
        lambda generator, shape: generator.poisson(3.0, size=shape).astype(float),
    ),
    "gamma": Example(
        lambda: Gamma(jnp.array([0.5, 1.5]), jnp.array([-0.9, -1.5])),
        gamma,
        lambda generator, shape: generator.gamma(2.0, size=shape),
    ),
}
"""In general position, by name; they drive the tests of every likelihood of numbers."""
