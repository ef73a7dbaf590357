import numpy as np
import pytest
import scipy.stats
from scipy.integrate import quad

from bochner.exact.laws import Law, Mixture
from bochner.exact.stacking import mixed, stack
from bochner.exact.tails import Tails
from bochner.exact.transforms import Log, Standardized, YeoJohnson, candidates

POSITIVE = np.exp(np.random.default_rng(100).normal(size=80))
TRANSFORMS = {
    "standardized": Standardized.learn(POSITIVE),
    "log": Log.learn(POSITIVE),
    "power of long tails": YeoJohnson.learn(POSITIVE),
    "power of short tails": YeoJohnson.learn(-POSITIVE),
    "logarithmic end": YeoJohnson(Standardized(1.0, 2.0), 0.0, Standardized(0.5, 2.0)),
    "squared end": YeoJohnson(Standardized(1.0, 2.0), 2.0, Standardized(0.5, 2.0)),
}
every_transform = pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS)


@every_transform
def test_inverse_undoes_the_transform(transform):
    y = np.linspace(0.01, 9, 40)
    np.testing.assert_allclose(transform.inverse(transform(y)), y, rtol=1e-9)


@every_transform
def test_slope_is_the_derivative(transform):
    y = np.array([0.3, 0.99, 1.7, 6.0])
    differences = (transform(y + 1e-6) - transform(y - 1e-6)) / 2e-6
    np.testing.assert_allclose(np.exp(transform.log_slope(y)), differences, rtol=1e-6)


@every_transform
@pytest.mark.parametrize("degrees", [np.inf, 4.0])
def test_densities_integrate_to_differences_of_the_distribution_function(transform, degrees):
    law = Law(transform, np.full(1, 0.3), np.full(1, 0.7), degrees)
    low, high = 0.05, 7.0
    mass, _ = quad(lambda y: float(np.exp(law.log_density(np.array([y])))[0]), low, high, limit=200)
    assert mass == pytest.approx(
        float(law.cdf(np.array([high]))[0] - law.cdf(np.array([low]))[0]), abs=1e-7
    )


def test_power_is_that_of_scipy():
    z = (POSITIVE - POSITIVE.mean()) / POSITIVE.std()
    expected = np.clip(scipy.stats.yeojohnson_normmax(z), 0, 2)
    assert TRANSFORMS["power of long tails"].power == pytest.approx(expected, abs=1e-3)


def test_values_that_a_logarithm_does_not_have_are_impossible():
    law = Law(TRANSFORMS["log"], np.zeros(3), np.ones(3))
    assert np.isneginf(law.log_density(np.array([-1.0, 0.0, 1.0]))[:2]).all()
    np.testing.assert_array_equal(law.cdf(np.array([-1.0, 0.0, 1.0]))[:2], 0)


def test_logarithms_are_tried_for_positive_targets_of_long_tails_only():
    assert "log" in candidates(POSITIVE)
    assert "log" not in candidates(POSITIVE - 1)
    assert "log" not in candidates(POSITIVE + 100)


def mixture():
    laws = [
        Law(TRANSFORMS["standardized"], np.array([-0.5, 1.0]), np.array([0.5, 1.0]), 6.0),
        Law(TRANSFORMS["log"], np.array([0.5, -1.0]), np.array([0.3, 0.6])),
        Law(TRANSFORMS["power of long tails"], np.array([0.0, 0.2]), np.array([0.5, 0.4])),
    ]
    return Mixture(np.array([0.3, 0.5, 0.2]), laws, (float(POSITIVE.min()), float(POSITIVE.max())))


def test_quantiles_of_a_mixture_invert_its_distribution_function():
    p = np.array([0.01, 0.3, 0.9])
    quantiles = mixture().quantiles(p)
    assert quantiles.shape == (2, 3)
    np.testing.assert_allclose(mixture().cdf(quantiles.T), np.tile(p[:, None], (1, 2)), atol=1e-9)


def test_samples_follow_the_mixture():
    samples = mixture().samples(20_000, seed=1)
    for row in range(2):
        p = mixture().cdf(np.tile(samples[:, [row]], (1, 2)))[:, row]
        assert scipy.stats.kstest(p, "uniform").pvalue > 1e-3
    error = np.sqrt(mixture().variance / 20_000)
    assert (np.abs(samples.mean(axis=0) - mixture().mean) < 4 * error).all()


def test_mean_of_a_lognormal_law_is_by_quadrature():
    after = Standardized(0.0, 1.0)
    law = Law(Log(after), np.full(1, 0.2), np.full(1, 0.5))
    one = Mixture(np.ones(1), [law], (0.01, 50.0))
    expected = scipy.stats.lognorm(0.5, scale=np.exp(0.2))
    assert one.mean[0] == pytest.approx(expected.mean(), rel=1e-3)
    assert one.variance[0] == pytest.approx(expected.var(), rel=2e-2)


def test_stacking_finds_the_weights_of_a_known_mixture():
    rng = np.random.default_rng(100)
    y = np.where(rng.random(5000) < 0.3, rng.normal(-2, 1, 5000), rng.normal(2, 1, 5000))
    densities = np.stack([scipy.stats.norm(mean).logpdf(y) for mean in (-2, 2, 9)], axis=1)
    weights = stack(densities)
    np.testing.assert_allclose(weights, [0.3, 0.7, 0.0], atol=0.02)
    assert mixed(densities, weights).mean() > densities.mean(axis=0).max()


def test_impossible_rows_of_one_part_leave_the_mixture_possible():
    densities = np.array([[-np.inf, -1.0], [0.0, -1.0]])
    assert np.isfinite(mixed(densities, stack(densities))).all()


def test_widths_are_scaled_where_left_out_rows_call_for_it():
    z = np.random.default_rng(100).normal(size=2000)
    assert Tails.learn(1.5 * z).factor == pytest.approx(1.5, rel=0.06)
    assert Tails.learn(1.5 * z[:3]).factor == pytest.approx(1.0, rel=0.15)
