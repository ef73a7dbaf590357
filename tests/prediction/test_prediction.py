import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import logsumexp, softmax

from bochner.gp.reparameterization import DrawWeights
from bochner.likelihoods import (
    Gaussian,
    HeteroscedasticGaussian,
    NegativeBinomial,
    Poisson,
    Softmax,
    StudentT,
)
from bochner.prediction.statistics import (
    CHUNK_ROWS,
    Draws,
    ExpectedLogLikelihood,
    LogDensity,
    Moments,
    Posterior,
    Probabilities,
    Quantiles,
    Samples,
    Several,
)
from tests import examples

N_DRAWS = 23
LIKELIHOODS = {
    "gaussian": Gaussian(jnp.array([-1.0, 0.5])),
    "heteroscedastic": HeteroscedasticGaussian(jnp.array([0.3, -0.5])),
    "student-t": StudentT(jnp.array([-0.5, 0.2]), jnp.array([1.0, 3.0])),
    "poisson": Poisson(jnp.array([1.0, 3.0])),
    "negative-binomial": NegativeBinomial(jnp.array([1.0, 3.0]), jnp.array([-1.0, 0.0])),
}


def draws(likelihood, n_draws, n_rows=2, seed=0):
    d_out = likelihood.n_functions(2)
    return 0.7 * jax.random.normal(jax.random.key(seed), (n_draws, n_rows, d_out))


def posterior(n_draws=N_DRAWS, **options):
    return Posterior.draw(examples.deep_gp(2, **options), n_draws=n_draws, key=jax.random.key(1))


def functions(posterior, X):
    """The values of each drawn function at X, one after another."""
    noises = [jax.tree.map(lambda leaf, i=i: leaf[i], posterior.noise) for i in range(N_DRAWS)]
    X = jnp.asarray(X, jnp.float32)
    return np.stack([posterior.model(X, noise, DrawWeights()) for noise in noises])


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_moments_are_those_of_samples(name):
    n_draws, likelihood = 40_000, LIKELIHOODS[name]
    F = draws(likelihood, n_draws)
    found = jax.tree.map(np.asarray, Moments()(Draws.of(likelihood, F), {}))
    samples = np.asarray(
        Samples(jax.random.key(2))(Draws.of(likelihood, F), {"row": jnp.arange(2)})
    )
    # Given the same functions only the noise differs.
    z = (samples.mean(axis=1) - found["mean"]) / np.sqrt(found["aleatoric"] / n_draws)
    assert np.abs(z).max() < 4
    squares = (samples - found["mean"][:, None, :]) ** 2
    total = found["epistemic"] + found["aleatoric"]
    z = (squares.mean(axis=1) - total) / (squares.std(axis=1) / np.sqrt(n_draws))
    assert np.abs(z).max() < 4


def test_epistemic_variance_is_that_of_the_means_and_aleatoric_the_mean_of_the_noise():
    likelihood = LIKELIHOODS["heteroscedastic"]
    F = np.asarray(draws(likelihood, N_DRAWS))
    found = Moments()(Draws.of(likelihood, jnp.asarray(F)), {})
    deviation = 1e-3 + np.logaddexp(0.0, np.array([0.3, -0.5]) + F[:, :, 2:] / 4)
    np.testing.assert_allclose(found["mean"], F[:, :, :2].mean(axis=0), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(found["epistemic"], F[:, :, :2].var(axis=0), rtol=1e-4)
    np.testing.assert_allclose(found["aleatoric"], (deviation**2).mean(axis=0), rtol=1e-4)


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_log_density_is_the_log_of_the_mean_density(name):
    likelihood = LIKELIHOODS[name]
    F, Y = draws(likelihood, N_DRAWS), jnp.array([[1.0, 2.0], [0.0, 5.0]])
    each = np.stack([likelihood.log_prob(F[i], Y) for i in range(N_DRAWS)]).astype(np.float64)
    expected = logsumexp(each, axis=0) - np.log(N_DRAWS)
    np.testing.assert_allclose(LogDensity()(Draws.of(likelihood, F), {"Y": Y}), expected, rtol=1e-5)
    bound = ExpectedLogLikelihood()(Draws.of(likelihood, F), {"Y": Y})
    np.testing.assert_allclose(bound, each.mean(axis=0), rtol=1e-5)
    assert np.all(np.asarray(bound) < expected)


def test_log_density_does_not_underflow_far_from_all_draws():
    likelihood, F = Gaussian.start(1, noise_variance=1e-4), jnp.zeros((5, 1, 1))
    density = LogDensity()(Draws.of(likelihood, F), {"Y": jnp.array([[10.0]])})
    assert float(density[0]) == pytest.approx(-0.5e6, rel=1e-4)


def test_probabilities_are_the_mean_over_draws_of_the_softmax():
    F = jax.random.normal(jax.random.key(0), (N_DRAWS, 4, 3)) * 3
    expected = softmax(np.asarray(F, np.float64), axis=2).mean(axis=0)
    np.testing.assert_allclose(Probabilities()(Draws.of(Softmax(), F), {}), expected, rtol=1e-5)


def test_a_chunk_holds_every_draw_whatever_their_number():
    # 23 draws are no multiple of those computed at once.
    model, X = posterior(d_out=2), np.asarray(examples.inputs(5))
    found = model.map_rows(Moments(), X)
    F = functions(model, X)
    np.testing.assert_allclose(found["mean"], F.mean(axis=0), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found["epistemic"], F.var(axis=0), rtol=1e-4)


def test_rows_do_not_depend_on_the_rows_beside_them():
    model, X = posterior(), np.asarray(examples.inputs(2 * CHUNK_ROWS + 5))
    columns = {"Y": np.sin(X[:, :1])}
    statistic = Several({"moments": Moments(), "density": LogDensity()})
    whole = model.map_rows(statistic, X, **columns)
    for rows in (slice(0, 1), slice(0, CHUNK_ROWS), slice(3, CHUNK_ROWS + 4), slice(900, None)):
        part = model.map_rows(statistic, X[rows], Y=columns["Y"][rows])
        for leaf, other in zip(jax.tree.leaves(part), jax.tree.leaves(whole), strict=True):
            assert leaf.shape == other[rows].shape
            np.testing.assert_allclose(leaf, other[rows], rtol=1e-5, atol=1e-6)


def test_new_numbers_of_rows_and_new_levels_compile_nothing(compilations):
    model, X = posterior(), np.asarray(examples.inputs(1100))
    statistics = (Moments(), Quantiles(jnp.array([0.1, 0.9])))
    for statistic in statistics:
        model.map_rows(statistic, X[:7])
    assert compilations.count("jit(_chunk_statistic)") == 2
    levels = jnp.asarray(np.array([0.2, 0.7], np.float32))
    count = len(compilations)
    for n in (1, 8, CHUNK_ROWS, CHUNK_ROWS + 1, 1100):
        model.map_rows(Moments(), X[:n])
        model.map_rows(Quantiles(levels), X[:n])
    assert len(compilations) == count


def test_the_same_key_gives_the_same_draws_and_another_key_others():
    X = np.asarray(examples.inputs(3))
    model = examples.deep_gp(2)

    def mean(seed):
        drawn = Posterior.draw(model, n_draws=10, key=jax.random.key(seed))
        return drawn.map_rows(Moments(), X)["mean"]

    np.testing.assert_array_equal(mean(0), mean(0))
    assert np.all(mean(0) != mean(1))


def test_resampled_frequencies_differ_between_draws():
    model = posterior(omega="var-resampled")
    F = functions(model, np.asarray(examples.inputs(4)))
    assert model.noise[0].features.Omega.shape[0] == N_DRAWS
    found = model.map_rows(Moments(), np.asarray(examples.inputs(4)))
    np.testing.assert_allclose(found["epistemic"], F.var(axis=0), rtol=1e-3)


def test_samples_in_different_chunks_share_functions_but_no_noise():
    likelihood = Gaussian.start(1, noise_variance=1.0)
    model = eqx.tree_at(lambda p: p.model.likelihood, posterior(n_draws=200), likelihood)
    X = np.repeat(np.asarray(examples.inputs(1)), CHUNK_ROWS + 1, axis=0)
    samples = model.map_rows(Samples(jax.random.key(3)), X)[..., 0]
    assert samples.shape == (CHUNK_ROWS + 1, 200)
    F = model.map_rows(Moments(), X[:1])
    residual = samples - samples.mean(axis=0)
    assert residual.std() == pytest.approx(1.0, abs=0.02)
    assert samples.mean(axis=0).var() == pytest.approx(float(F["epistemic"][0, 0]), rel=0.1)
    assert abs(np.corrcoef(residual[0], residual[CHUNK_ROWS])[0, 1]) < 0.3
