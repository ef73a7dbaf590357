"""Chains that rotate, on densities with known moments."""

import numpy as np
import pytest

from bochner.mcmc import effective_sample_size
from bochner.mcmc.rotations import Effort, sample


def silent(share, text):
    pass


class Tilted:
    """`N(z | 0, I) exp(b'z - z'Az / 2)`, which is Gaussian with covariance `(I + A)^-1`."""

    def __init__(self, A, b):
        self.A, self.b = A, b

    def __call__(self, Z):
        slope = Z @ self.A
        return Z @ self.b - 0.5 * np.sum(slope * Z, axis=1), self.b - slope

    def watched(self, Z):
        return Z


def test_mean_and_covariance_of_a_correlated_gaussian():
    root = np.random.default_rng(0).normal(size=(4, 4))
    A, b = 3 * root @ root.T, np.array([1.0, -2.0, 0.5, 0.0])
    covariance = np.linalg.inv(np.eye(4) + A)
    effort = Effort(n_chains=4, rhat=1.01, ess=1500)
    chains = sample(Tilted(A, b), np.full((4, 4), 3.0), effort, seed=0, told=silent)
    (draws,) = chains.positions.astype(np.float64)
    mean = covariance @ b
    products = (draws - mean)[..., :, None] * (draws - mean)[..., None, :]
    for found, expected in ((draws, mean), (products, covariance)):
        error = found.std(axis=(0, 1)) / np.sqrt(effective_sample_size(found))
        assert np.abs((found.mean(axis=(0, 1)) - expected) / error).max() < 4
    assert chains.n_divergent == 0


class OfTheFirst:
    """`N(z | 0, I) exp(2 z_0)`, with mean 2 in the first place."""

    def __call__(self, Z):
        return 2.0 * Z[:, 0], 2.0 * np.eye(Z.shape[1])[[0] * len(Z)]

    def watched(self, Z):
        return Z[:, :1]


def test_hundreds_of_weights_without_say_do_not_slow_the_others():
    told = []
    chains = sample(
        OfTheFirst(), np.zeros((2, 500)), Effort(n_warmup=50), seed=0,
        told=lambda share, text: told.append(text),
    )  # fmt: skip
    assert abs(chains.positions[..., 0].mean() - 2) < 0.3
    assert chains.n_samples <= 800
    assert "warm-up" in told[0]
    assert "R-hat" in told[-1]


def test_chains_that_cannot_meet_say_so_when_time_is_up():
    class TwoPeaks:
        def __call__(self, Z):
            near = np.where(Z > 0, 30.0, -30.0)  # N(z | 0, 1) exp(l) has peaks at both, far apart
            return np.abs(near * Z)[:, 0], near

        def watched(self, Z):
            return Z

    effort = Effort(n_warmup=20, until=0.0)
    chains = sample(TwoPeaks(), np.array([[-30.0], [30.0]]), effort, seed=0, told=silent)
    assert chains.n_samples == 4
    assert chains.worst_rhat > 2


def test_where_the_density_is_zero_no_chain_goes():
    class Positive:
        def __call__(self, Z):
            return np.where(Z[:, 0] > 0, 0.0, -np.inf), np.zeros_like(Z)

        def watched(self, Z):
            return Z

    chains = sample(Positive(), np.ones((2, 1)), Effort(), seed=0, told=silent)
    assert chains.positions.min() > 0
    assert chains.positions.mean() == pytest.approx(np.sqrt(2 / np.pi), abs=0.1)


def test_what_is_the_same_in_all_draws_agrees():
    target = OfTheFirst()
    target.watched = lambda Z: np.ones((len(Z), 3))
    chains = sample(target, np.zeros((2, 2)), Effort(n_warmup=5), seed=0, told=silent)
    assert (chains.worst_rhat, chains.smallest_ess, chains.n_samples) == (1.0, 400.0, 200)
