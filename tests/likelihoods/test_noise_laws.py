import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from bochner.likelihoods import Gaussian, HeteroscedasticGaussian
from bochner.likelihoods.noise_laws import Normal, ScaleMixture

LAWS = {
    "normal": Normal(),
    "narrower": ScaleMixture(jnp.array(0.3)),
    "wider": ScaleMixture(jnp.array(1.5)),
}


def density(law, z):
    return float(jnp.exp(law.log_density(jnp.asarray(z), jnp.zeros(()))))


@pytest.mark.parametrize("name", LAWS)
def test_density_distribution_function_and_variance_are_of_one_law(name, x64):
    law = LAWS[name]
    assert quad(lambda z: density(law, z), -np.inf, np.inf)[0] == pytest.approx(1.0, rel=1e-8)
    below = quad(lambda z: density(law, z), -np.inf, 0.7)[0]
    assert float(law.cdf(jnp.asarray(0.7))) == pytest.approx(below, rel=1e-8)
    variance = quad(lambda z: z**2 * density(law, z), -np.inf, np.inf)[0]
    assert float(law.variance()) == pytest.approx(variance, rel=1e-7)


@pytest.mark.parametrize("name", LAWS)
def test_draws_follow_the_distribution_function(name):
    law = LAWS[name]
    draws = law.sample(jnp.zeros(200_000), key=jax.random.key(0))
    for z in (-1.0, -0.2, 0.1, 0.6):
        assert float(jnp.mean(draws <= z)) == pytest.approx(float(law.cdf(z)), abs=0.005)


def test_two_widths_are_a_mixture_of_scipys_normals(x64):
    law, residuals, log_variance = ScaleMixture(jnp.array(0.5)), np.linspace(-3, 3, 7), np.log(4.0)
    expected = 0.75 * norm.pdf(residuals, scale=1.0) + 0.25 * norm.pdf(residuals, scale=2.0)
    found = law.log_density(jnp.asarray(residuals), jnp.asarray(log_variance))
    np.testing.assert_allclose(found, np.log(expected), rtol=1e-12)


@pytest.mark.parametrize("kind", [Gaussian, HeteroscedasticGaussian])
def test_a_likelihood_has_the_noise_of_its_law(kind, x64):
    plain = kind.start(1, noise_variance=0.25)
    likelihood = kind(*jax.tree.leaves(plain), law=ScaleMixture(jnp.array(0.4)))
    F, Y = jnp.zeros((1, kind.n_functions(1))), jnp.array([[0.3]])
    expected = 0.75 * norm.pdf(0.3, scale=0.2) + 0.25 * norm.pdf(0.3, scale=0.5)
    assert float(likelihood.log_prob(F, Y)[0]) == pytest.approx(np.log(expected), rel=1e-9)
    below = 0.75 * norm.cdf(0.3, scale=0.2) + 0.25 * norm.cdf(0.3, scale=0.5)
    assert float(likelihood.cdf(F, Y)[0, 0]) == pytest.approx(below, rel=1e-9)
    many = jnp.zeros((100_000, F.shape[1]))
    draws = likelihood.sample(many, key=jax.random.key(1))
    variance = float(likelihood.moments(F)[1][0, 0])
    assert variance == pytest.approx(0.75 * 0.04 + 0.25 * 0.25, rel=1e-9)
    assert float(jnp.var(draws)) == pytest.approx(variance, rel=0.05)
