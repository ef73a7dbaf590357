"""The laws of single targets and their mixture, beside SciPy and by integration."""

import numpy as np
import pytest
import scipy.integrate
import scipy.stats

from bochner.exact.laws import Law
from bochner.exact.transforms import Log, Standardized
from bochner.members.laws import GaussianDraws, LawInRows, Mixture

GRID = np.linspace(-60.0, 90.0, 2_001)[:, None]


def draws(seed=0, n_draws=7, n=3):
    generator = np.random.default_rng(seed)
    return GaussianDraws(
        generator.normal(5.0, 2.0, size=(n_draws, n)), generator.uniform(0.5, 2.0, (n_draws, n))
    )


def student(share=0.3):
    shares = np.full(3, share)
    law = Law(Standardized(4.0, 3.0), np.array([-1.0, 0.0, 2.0]), np.full(3, 0.4), 6.0, shares)
    return LawInRows(law, (-10.0, 20.0))


def lognormal():
    y = np.exp(np.random.default_rng(0).normal(1.0, 0.5, size=200))
    law = Law(Log.learn(y), np.array([-0.5, 0.0, 0.5]), np.full(3, 0.5))
    return LawInRows(law, (float(y.min()), float(y.max())))


def mixed():
    return Mixture(np.array([0.2, 0.5, 0.3]), [draws(), student(), draws(1)])


LAWS = {"draws": draws, "student": student, "mixture": mixed}


def test_draws_are_a_mixture_of_gaussians():
    law, y = draws(), np.array([3.0, 5.0, 8.0])
    each = scipy.stats.norm(law.means, law.deviations)
    np.testing.assert_allclose(law.log_density(y), np.log(each.pdf(y).mean(axis=0)))
    np.testing.assert_allclose(law.cdf(y[None]), each.cdf(y).mean(axis=0)[None])
    assert len(law) == 3


@pytest.mark.parametrize("name", LAWS)
def test_densities_are_those_of_the_distribution_function(name):
    law = LAWS[name]()
    y = np.repeat(GRID, len(law), axis=1)
    density = np.exp([law.log_density(one) for one in y])
    area = scipy.integrate.cumulative_simpson(density, x=GRID[:, 0], axis=0, initial=0)
    np.testing.assert_allclose(area, law.cdf(y), atol=1e-4)


@pytest.mark.parametrize("name", LAWS)
def test_moments_are_those_of_the_density(name):
    law = LAWS[name]()
    mean, epistemic, aleatoric = law.moments()
    density = np.exp([law.log_density(np.repeat(one, len(law))) for one in GRID])
    by_integral = scipy.integrate.simpson(GRID * density, x=GRID[:, 0], axis=0)
    spread = scipy.integrate.simpson((GRID - mean) ** 2 * density, x=GRID[:, 0], axis=0)
    np.testing.assert_allclose(mean, by_integral, rtol=1e-3)
    np.testing.assert_allclose(epistemic + aleatoric, spread, rtol=2e-2)
    assert np.all(epistemic > 0)
    assert np.all(aleatoric > 0)


def test_the_share_of_the_function_is_the_same_on_both_sides_of_a_transform():
    law = lognormal().law
    shared = LawInRows(
        Law(law.transform, law.location, law.scale, epistemic=np.full(3, 0.25)), (0.0, 50.0)
    )
    _, epistemic, aleatoric = shared.moments()
    np.testing.assert_allclose(epistemic, (epistemic + aleatoric) / 4)


@pytest.mark.parametrize("name", [*LAWS, "lognormal"])
def test_quantiles_invert_the_distribution_function(name):
    law = lognormal() if name == "lognormal" else LAWS[name]()
    law = law if isinstance(law, Mixture) else Mixture(np.ones(1), [law])
    levels = np.array([0.001, 0.05, 0.5, 0.95, 0.999])
    found = law.quantiles(levels)
    assert found.shape == (3, 5)
    np.testing.assert_allclose(law.cdf(found.T), np.repeat(levels[:, None], 3, axis=1), rtol=1e-6)


def test_what_mixed_laws_disagree_on_is_uncertainty_of_the_function():
    at = [GaussianDraws(np.full((1, 1), mean), np.ones((1, 1))) for mean in (0.0, 10.0)]
    mean, epistemic, aleatoric = Mixture(np.array([0.1, 0.9]), at).moments()
    np.testing.assert_allclose([mean[0], epistemic[0], aleatoric[0]], [9.0, 9.0, 1.0])


@pytest.mark.parametrize("name", [*LAWS, "lognormal"])
def test_samples_follow_the_law(name):
    law = lognormal() if name == "lognormal" else LAWS[name]()
    samples = law.samples(4_000, np.random.default_rng(0))
    assert samples.shape == (4_000, 3)
    levels = law.cdf(samples)
    for row in range(3):
        assert scipy.stats.kstest(levels[:, row], "uniform").pvalue > 1e-4


def test_a_sample_is_of_one_member_and_one_function_in_all_rows():
    means = np.array([[0.0] * 4, [100.0] * 4])
    law = GaussianDraws(means, np.full((2, 4), 0.1))
    far = GaussianDraws(means + 1_000.0, np.full((2, 4), 0.1))
    samples = Mixture(np.array([0.5, 0.5]), [law, far]).samples(200, np.random.default_rng(0))
    assert np.ptp(samples, axis=1).max() < 2
    assert len(np.unique(np.round(samples[:, 0], -2))) == 4


def test_many_rows_are_taken_in_parts(monkeypatch):
    law, y = draws(n_draws=9, n=5), np.random.default_rng(0).normal(5.0, 3.0, size=(4, 5))
    whole = law.cdf(y)
    monkeypatch.setattr("bochner.members.laws._ENTRIES_AT_ONCE", 50)
    np.testing.assert_allclose(law.cdf(y), whole, rtol=1e-12)
