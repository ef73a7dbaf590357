"""Exact covariances of two points, from integrals and Bessel functions, not closed forms."""

import math

import numpy as np
from scipy.integrate import quad
from scipy.special import gamma, kv

SMOOTHNESS = {"matern12": 0.5, "matern32": 1.5, "matern52": 2.5}
DEGREE = {"arccos0": 0, "arccos1": 1, "arccos2": 2}


def covariance(name: str, x, y, variance: float, lengthscale) -> float:
    """The covariance that a kernel's name stands for, at two points."""
    u, v = np.asarray(x) / lengthscale, np.asarray(y) / lengthscale
    if name == "rbf":
        return variance * math.exp(-0.5 * float((u - v) @ (u - v)))
    if name in SMOOTHNESS:
        return variance * _matern(float(np.linalg.norm(u - v)), SMOOTHNESS[name])
    return variance * _arccosine(u, v, DEGREE[name])


def matrix(name: str, X, X2, variance: float, lengthscale) -> np.ndarray:
    """The covariance between the rows of X and those of X2."""
    return np.array([[covariance(name, x, y, variance, lengthscale) for y in X2] for x in X])


def _matern(distance: float, nu: float) -> float:
    s = math.sqrt(2 * nu) * distance
    return 1.0 if s == 0 else float(2 ** (1 - nu) / gamma(nu) * s**nu * kv(nu, s))


def _arccosine(u, v, degree: int) -> float:
    """Integrate `2 E[H(w u) (w u)^p H(w v) (w v)^p]` in polar coordinates."""
    norms = float(np.linalg.norm(u) * np.linalg.norm(v))
    alpha = math.acos(np.clip(float(u @ v) / norms, -1.0, 1.0))
    angle, _ = quad(
        lambda phi: (math.cos(phi) * math.cos(phi - alpha)) ** degree,
        alpha - math.pi / 2,
        math.pi / 2,
    )
    return 2**degree * math.factorial(degree) / math.pi * norms**degree * angle
