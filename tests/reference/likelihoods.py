"""The laws of the targets as SciPy's distributions, from the last layer's outputs."""

import numpy as np
from scipy import stats

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
