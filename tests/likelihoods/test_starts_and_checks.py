import jax.numpy as jnp
import numpy as np
import pytest

from bochner.likelihoods import (
    GAUSSIAN_NOISE,
    REGRESSION_LIKELIHOODS,
    Gamma,
    Gaussian,
    HeteroscedasticGaussian,
    NegativeBinomial,
    Poisson,
    StudentT,
)

LOCATION_SCALE = [name for name, law in REGRESSION_LIKELIHOODS.items() if law.location_scale]


@pytest.mark.parametrize("likelihood", [Gaussian, HeteroscedasticGaussian, StudentT])
@pytest.mark.parametrize("noise_variance", [0.01, 0.5, 3.0])
def test_the_noise_variance_at_first_is_the_one_asked_for(likelihood, noise_variance):
    started = likelihood.start(2, noise_variance=noise_variance)
    F = jnp.zeros((1, likelihood.n_functions(2)))
    np.testing.assert_allclose(started.moments(F)[1], noise_variance, rtol=1e-5)


def test_student_t_starts_with_four_degrees_of_freedom_and_never_falls_to_two():
    np.testing.assert_allclose(StudentT.start(3).nu, 4.0, rtol=1e-6)
    extreme = StudentT(jnp.zeros(1), jnp.array([-10.0]))
    assert float(extreme.nu[0]) > 2.0
    assert np.isfinite(extreme.moments(jnp.zeros((1, 1)))[1]).all()


def test_heteroscedastic_deviation_never_falls_below_its_floor():
    likelihood = HeteroscedasticGaussian.start(1)
    _, variance = likelihood.moments(jnp.array([[0.0, -1e4], [0.0, 0.0]]))
    assert float(jnp.sqrt(variance[0, 0])) == pytest.approx(1e-3)
    assert variance[1, 0] > variance[0, 0]
    assert np.isfinite(likelihood.log_prob(jnp.array([[0.0, -1e4]]), jnp.ones((1, 1)))).all()


def test_heteroscedastic_functions_are_all_means_then_all_deviations():
    likelihood = HeteroscedasticGaussian.start(2, noise_variance=1.0)
    mean, variance = likelihood.moments(jnp.array([[5.0, 6.0, 0.0, 12.0]]))
    np.testing.assert_array_equal(mean[0], [5.0, 6.0])
    assert variance[0, 0] == pytest.approx(1.0, rel=1e-5)
    assert variance[0, 1] > 4.0


def test_poisson_starts_at_the_mean_count_and_bears_a_mean_of_zero():
    mean, _ = Poisson.start(jnp.array([4.0, 0.0])).moments(jnp.zeros((1, 2)))
    np.testing.assert_allclose(mean, [[4.0, 1e-3]], rtol=1e-5)


@pytest.mark.parametrize("wrong", [-1.0, 2.5, np.nan])
def test_poisson_refuses_what_is_not_a_count_and_names_it(wrong):
    Y = np.array([[0.0, 3.0], [1.0, wrong], [-7.0, 0.0]])
    with pytest.raises(ValueError, match=f"got {wrong:g} in row 1"):
        Poisson.check_targets(Y)


@pytest.mark.parametrize("law", [NegativeBinomial, Gamma])
def test_laws_of_two_moments_start_at_both(law):
    Y = np.array([[1.0, 9.0], [3.0, 1.0], [8.0, 2.0]])
    mean, variance = law.from_targets(Y, 0.1).moments(jnp.zeros((1, 2)))
    np.testing.assert_allclose(mean[0], Y.mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(variance[0], Y.var(axis=0), rtol=1e-4)


def test_negative_binomial_counts_that_vary_too_little_start_near_poisson():
    mean, variance = NegativeBinomial.from_targets(np.full((5, 1), 4.0), 0.1).moments(
        jnp.zeros((1, 1))
    )
    assert float(variance[0, 0]) == pytest.approx(float(mean[0, 0]) * 1.04, rel=1e-4)


@pytest.mark.parametrize("wrong", [0.0, -2.0, np.nan])
def test_gamma_refuses_what_is_not_positive_and_names_it(wrong):
    with pytest.raises(ValueError, match=f"above 0 .* got {wrong:g} in row 1"):
        Gamma.check_targets(np.array([[0.5, 3.0], [1.0, wrong]]))
    assert np.isneginf(
        Gamma.start(jnp.ones(1), jnp.ones(1)).log_density(jnp.zeros((1, 1)), jnp.zeros((1, 1)))
    )


def test_counts_and_other_likelihoods_targets_pass_their_checks():
    for law in (Poisson, NegativeBinomial):
        law.check_targets(np.array([[0.0], [12.0]]))
    Gamma.check_targets(np.array([[1e-9], [12.0]]))
    for name in LOCATION_SCALE:
        REGRESSION_LIKELIHOODS[name].check_targets(np.array([[-1.5], [0.0]]))


def test_targets_are_standardized_for_location_scale_laws_only():
    assert {"gaussian", "heteroscedastic", "student-t"} <= set(LOCATION_SCALE)
    assert "poisson" not in LOCATION_SCALE


def test_only_laws_with_gaussian_noise_go_with_members_of_other_kinds():
    assert set(GAUSSIAN_NOISE) == {"gaussian", "heteroscedastic"}


@pytest.mark.parametrize("name", LOCATION_SCALE)
def test_shift_and_scale_of_targets_change_the_log_density_by_the_log_of_the_scale(name, x64):
    law = REGRESSION_LIKELIHOODS[name]
    F, Y = jnp.zeros((1, law.n_functions(1))), jnp.array([[0.3]])
    small, large = law.start(1, noise_variance=0.25), law.start(1, noise_variance=25.0)
    moved = F.at[:, 0].set(7.0)
    difference = small.log_density(F, Y) - large.log_density(moved, 10 * Y + 7)
    assert float(difference[0, 0]) == pytest.approx(np.log(10.0), rel=1e-9)
