"""Divergences, evidence and posterior of Gaussian models, by formula and by quadrature."""

import math

import numpy as np
from scipy.integrate import quad
from scipy.stats import multivariate_normal, norm


def kl(mean, variance, prior_variance) -> float:
    """The supplement's formula, entry by entry, with a prior of mean zero."""
    total = 0.0
    for m, s2, v in np.nditer([mean, variance, prior_variance]):
        total += 0.5 * (math.log(v / s2) - 1 + s2 / v + m**2 / v)
    return total


def kl_by_quadrature(mean: float, variance: float, prior_variance: float) -> float:
    """The integral of `q log(q / p)` for one variable."""
    q, p = norm(mean, math.sqrt(variance)), norm(0.0, math.sqrt(prior_variance))
    reach = 12 * math.sqrt(variance)
    value, _ = quad(
        lambda w: q.pdf(w) * (q.logpdf(w) - p.logpdf(w)), mean - reach, mean + reach, epsabs=1e-12
    )
    return value


def log_evidence(Phi, Y, noise_variance: float) -> float:
    """The evidence of `Y = Phi W + noise` with standard normal W, one Gaussian a column."""
    covariance = Phi @ Phi.T + noise_variance * np.eye(len(Phi))
    return sum(multivariate_normal.logpdf(y, np.zeros(len(Phi)), covariance) for y in Y.T)


def posterior(Phi, Y, noise_variance: float):
    """Mean and covariance of W given Y, one column of means a target."""
    precision = Phi.T @ Phi / noise_variance + np.eye(Phi.shape[1])
    covariance = np.linalg.inv(precision)
    return covariance @ Phi.T @ Y / noise_variance, covariance
