"""Quantiles of the predictive mixture against SciPy's distributions."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import brentq

from bochner.likelihoods import Gaussian, HeteroscedasticGaussian, Poisson, StudentT
from bochner.prediction.statistics import Draws, Quantiles
from tests.reference import likelihoods as reference

LEVELS = np.array([0.001, 0.05, 0.3, 0.5, 0.77, 0.95, 0.999])
# How far the distribution function at what was found may be from the level. Student's t in single precision
# comes from an incomplete beta function near one, which loses digits around the center.
TOLERANCE = {
    ("gaussian", np.float32): 1e-6,
    ("gaussian", np.float64): 1e-10,
    ("student-t", np.float32): 5e-5,
    ("student-t", np.float64): 1e-8,
}


def gaussian(F):
    return Gaussian(jnp.array([-1.25])), reference.gaussian(F, [-1.25])


def heteroscedastic(F):
    F = np.concatenate([F, 2 * np.sin(5 * F)], axis=2)
    laws = [reference.heteroscedastic(one, [0.2]) for one in F]
    return HeteroscedasticGaussian(jnp.array([0.2])), laws


def student_t(F):
    return StudentT(jnp.array([-1.0]), jnp.array([-0.5])), reference.student_t(F, [-1.0], [-0.5])


CONTINUOUS = {"gaussian": gaussian, "student-t": student_t}
MEANS = {
    "one draw": [0.4],
    "equal draws": [2.0] * 5,
    "near draws": [-0.3, 0.0, 0.1, 0.5, 0.9],
    "modes far apart": [-50.0, -50.0, 0.0, 60.0, 60.2],
    "a stray draw": [0.0] * 30 + [500.0],
}


def cases(means):
    """Draws of two rows, the second shifted."""
    return np.stack([np.asarray(means), np.asarray(means) + 3.0], axis=1)[:, :, None]


@eqx.filter_jit
def solve(likelihood, F, levels):
    return Quantiles(levels)(Draws.of(likelihood, F), {})


def found_quantiles(likelihood, F, levels, dtype):
    with jax.enable_x64(dtype is np.float64):
        cast = jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf), dtype), likelihood)
        return np.asarray(solve(cast, jnp.asarray(F, dtype), jnp.asarray(levels, dtype)))


@pytest.mark.parametrize("means", MEANS)
@pytest.mark.parametrize(("name", "dtype"), TOLERANCE)
def test_the_mixture_has_each_level_below_its_quantile(name, means, dtype):
    F = cases(MEANS[means])
    likelihood, law = CONTINUOUS[name](F)
    found = found_quantiles(likelihood, F, LEVELS, dtype)
    assert found.shape == (2, 1, len(LEVELS))
    for k, level in enumerate(LEVELS):
        below = law.cdf(found[None, :, :, k].astype(np.float64)).mean(axis=0)
        # A single precision number far from zero is a coarse place to stand on.
        step = np.spacing(np.abs(found[:, :, k]))
        slack = step * law.pdf(found[None, :, :, k]).mean(axis=0)
        np.testing.assert_array_less(np.abs(below - level), TOLERANCE[name, dtype] + 4 * slack)


@pytest.mark.parametrize("name", CONTINUOUS)
@pytest.mark.parametrize("means", ["near draws", "modes far apart"])
def test_quantiles_are_the_roots_that_scipy_finds(name, means):
    F = cases(MEANS[means])
    likelihood, law = CONTINUOUS[name](F)
    levels = LEVELS[LEVELS != 0.5]
    found = found_quantiles(likelihood, F, levels, np.float64)
    for row in range(2):
        for k, level in enumerate(levels):

            def excess(y, row=row, level=level):
                return law.cdf(y)[:, row, 0].mean() - level

            root = brentq(excess, -1e4, 1e4, xtol=1e-12)
            assert found[row, 0, k] == pytest.approx(root, abs=1e-4)


def test_noise_that_differs_between_draws_is_mixed():
    F = cases(MEANS["near draws"])
    likelihood, laws = heteroscedastic(F)
    both = np.concatenate([F, 2 * np.sin(5 * F)], axis=2)
    found = found_quantiles(likelihood, both, LEVELS, np.float32)
    for k, level in enumerate(LEVELS):
        below = np.mean([law.cdf(found[:, :, k]) for law in laws], axis=0)
        np.testing.assert_allclose(below, level, atol=4e-6)


@pytest.mark.parametrize(
    ("rates", "dtype"),
    [
        ([0.05], np.float32),
        ([3.0, 4.0, 9.5], np.float32),
        ([0.2, 300.0], np.float32),
        ([2e4, 2.2e4], np.float64),
    ],
)
def test_quantiles_of_counts_are_the_least_whole_numbers_that_reach_the_level(rates, dtype):
    F = np.log(np.asarray(rates))[:, None, None]
    found = found_quantiles(Poisson(jnp.zeros(1)), F, LEVELS, dtype)[0, 0]
    law = reference.poisson(F, [0.0])
    np.testing.assert_array_equal(found, np.round(found))
    assert found.min() >= 0
    for count, level in zip(found, LEVELS, strict=True):
        assert law.cdf(count).mean() >= level - 1e-5
        assert law.cdf(count - 1).mean() < level + 1e-5


def test_quantiles_rise_with_their_level():
    F = cases(MEANS["modes far apart"])
    levels = np.linspace(0.001, 0.999, 57)
    for name in CONTINUOUS:
        found = found_quantiles(CONTINUOUS[name](F)[0], F, levels, np.float32)
        assert np.all(np.diff(found, axis=-1) >= 0)
