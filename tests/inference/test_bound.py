import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from bochner.gp.layers import LayerNoise
from bochner.gp.reparameterization import DrawWeights, LocalReparameterization
from bochner.inference.bound import estimate_bound, expected_log_likelihood
from bochner.likelihoods import Gaussian, Softmax
from bochner.posteriors.gaussians import FactorizedGaussian
from tests import examples
from tests.reference import gaussians
from tests.reference.derivatives import assert_gradient_matches_finite_differences

NOISE_VARIANCE = 0.2


def linear_model(n_rf=3, d_out=1):
    """One layer with fixed frequencies: Bayesian linear regression on Phi."""
    likelihood = Gaussian.start(d_out, noise_variance=NOISE_VARIANCE)
    model = examples.deep_gp(1, omega="prior-fixed", n_rf=n_rf, d_out=d_out, d_in=1)
    return eqx.tree_at(lambda m: m.likelihood, model, likelihood)


def with_q(model, mean, log_var):
    q_W = FactorizedGaussian(jnp.asarray(mean), jnp.asarray(log_var))
    return eqx.tree_at(lambda m: m.blocks[0].q_W, model, q_W)


def exact_noise(model):
    """Noise plus and minus sqrt(size) e_i: the mean of a quadratic in W is its expectation."""
    shape = model.blocks[0].q_W.mean.shape
    size = shape[0] * shape[1]
    corners = np.sqrt(size) * np.concatenate([np.eye(size), -np.eye(size)])
    return (LayerNoise(jnp.asarray(corners.reshape(-1, *shape)), None),)


@eqx.filter_jit
def full_bound(model, X, Y, noise, weights=None, reparameterization=None, **options):
    weights = jnp.ones(len(X)) if weights is None else weights
    options = {"scale": 1.0} | options
    reparameterization = reparameterization or DrawWeights()
    return estimate_bound(model, X, Y, weights, noise, reparameterization, **options)


def targets(X, d_out=1, seed=3):
    noise = 0.3 * np.random.default_rng(seed).normal(size=(len(X), d_out))
    return jnp.asarray(np.sin(3 * np.asarray(X[:, :1])) + noise)


def test_the_bound_at_its_best_q_is_below_the_evidence_by_what_factorization_costs(x64):
    # The best factorized q has the posterior's mean and the inverse diagonal of its precision.
    model, X = linear_model(), examples.inputs(8, d_in=1)
    Y, Phi = targets(X), np.asarray(model.blocks[0].Phi(X))
    mean, covariance = gaussians.posterior(Phi, np.asarray(Y), NOISE_VARIANCE)
    precision = np.linalg.inv(covariance)
    best = with_q(model, mean, -np.log(np.diag(precision))[:, None])
    cost = 0.5 * (np.log(np.diag(precision)).sum() - np.linalg.slogdet(precision)[1])
    evidence = gaussians.log_evidence(Phi, np.asarray(Y), NOISE_VARIANCE)
    assert cost > 0.1
    assert float(full_bound(best, X, Y, exact_noise(best)).elbo) == pytest.approx(evidence - cost)


def diagonal_case():
    """Whole frequencies on an even grid: the columns of Phi are orthogonal."""
    model, n = linear_model(n_rf=3), 12
    spectrum = model.blocks[0].features.spectrum
    model = eqx.tree_at(
        lambda m: (
            m.blocks[0].features.spectrum.epsilon,
            m.blocks[0].features.spectrum.scale,
            m.blocks[0].features.kernel.log_lengthscale,
        ),
        model,
        (jnp.array([[1.0, 2.0, 3.0]]), jnp.ones_like(spectrum.scale), jnp.zeros(1)),
    )
    X = jnp.asarray(2 * np.pi * np.arange(n)[:, None] / n)
    Y, Phi = targets(X), np.asarray(model.blocks[0].Phi(X))
    mean, covariance = gaussians.posterior(Phi, np.asarray(Y), NOISE_VARIANCE)
    np.testing.assert_allclose(covariance, np.diag(np.diag(covariance)), atol=1e-12)
    model = with_q(model, mean, np.log(np.diag(covariance))[:, None])
    return model, X, Y, gaussians.log_evidence(Phi, np.asarray(Y), NOISE_VARIANCE)


def test_at_the_exact_posterior_every_draw_of_the_weights_gives_the_evidence(x64):
    model, X, Y, evidence = diagonal_case()
    q_W = model.blocks[0].q_W
    deviation = np.exp(0.5 * np.asarray(q_W.log_var))
    for epsilon in np.random.default_rng(0).normal(size=(20, *q_W.mean.shape)) * 2:
        noise = (LayerNoise(jnp.asarray(epsilon)[None], None),)
        log_likelihood = float(full_bound(model, X, Y, noise).ell)
        W = np.asarray(q_W.mean) + deviation * epsilon
        log_prior = norm.logpdf(W).sum()
        log_q = norm.logpdf(W, np.asarray(q_W.mean), deviation).sum()
        assert log_likelihood + log_prior - log_q == pytest.approx(evidence, abs=1e-8)


def test_at_the_exact_posterior_the_bound_is_the_evidence(x64):
    model, X, Y, evidence = diagonal_case()
    assert float(full_bound(model, X, Y, exact_noise(model)).elbo) == pytest.approx(
        evidence, abs=1e-8
    )


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), spread=st.sampled_from([0.0, 1e-3, 0.03, 0.3, 3.0]))
def test_the_bound_never_exceeds_the_evidence_around_the_exact_posterior(seed, spread):
    with jax.enable_x64(True):
        model, X, Y, evidence = diagonal_case()
        moved = examples.shaken(model.blocks[0].q_W, seed, size=spread)
        model = with_q(model, moved.mean, moved.log_var)
        assert float(full_bound(model, X, Y, exact_noise(model)).elbo) <= evidence + 1e-9


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), spread=st.floats(0, 3), log_var=st.floats(-8, 2))
def test_the_bound_never_exceeds_the_evidence_for_any_q(seed, spread, log_var):
    with jax.enable_x64(True):
        model, X = linear_model(d_out=2), examples.inputs(8, d_in=1)
        Y, layer = targets(X, d_out=2), model.blocks[0]
        Phi = np.asarray(layer.Phi(X))
        generator, shape = np.random.default_rng(seed), layer.q_W.mean.shape
        center, _ = gaussians.posterior(Phi, np.asarray(Y), NOISE_VARIANCE)
        model = with_q(
            model,
            center + spread * generator.normal(size=shape),
            log_var + spread * generator.normal(size=shape),
        )
        evidence = gaussians.log_evidence(Phi, np.asarray(Y), NOISE_VARIANCE)
        assert float(full_bound(model, X, Y, exact_noise(model)).elbo) <= evidence


def problem(omega="var-fixed", n=12, n_mc=3, n_layers=2, reparameterization=None):
    model, X = examples.deep_gp(n_layers, feed_inputs=True, omega=omega), examples.inputs(n)
    draw_noise = eqx.filter_jit(model.draw_noise)
    noise = draw_noise(
        (n_mc,), reparameterization=reparameterization, batch=n, key=jax.random.key(5)
    )
    return model, X, targets(X), noise


def test_the_mean_of_mini_batch_bounds_over_a_partition_is_the_bound_of_all_rows(x64):
    model, X, Y, noise = problem()
    weights = jnp.asarray(np.random.default_rng(0).uniform(0.5, 2, size=12))
    whole = full_bound(model, X, Y, noise, weights)
    order = np.random.default_rng(1).permutation(12).reshape(3, 4)
    parts = [
        full_bound(model, X[rows], Y[rows], noise, weights[rows], scale=12 / 4) for rows in order
    ]
    for name in ("elbo", "ell", "kl"):
        mean = np.mean([float(getattr(part, name)) for part in parts])
        assert mean == pytest.approx(float(getattr(whole, name)), rel=1e-10)
    assert len({float(part.ell) for part in parts}) == 3


def test_permuting_rows_changes_nothing(x64):
    model, X, Y, noise = problem()
    order = np.random.default_rng(1).permutation(12)
    np.testing.assert_allclose(
        full_bound(model, X[order], Y[order], noise), full_bound(model, X, Y, noise), rtol=1e-10
    )


def test_weights_equal_repeated_rows_in_value_and_gradient(x64):
    model, X, Y, noise = problem(n=5)
    counts = np.array([2, 1, 3, 1, 2])
    rows = np.repeat(np.arange(5), counts)
    elbo = eqx.filter_value_and_grad(lambda model, *args: full_bound(model, *args).elbo)
    value_and_grad = eqx.filter_jit(elbo)
    weighted, gradient = value_and_grad(model, X, Y, noise, jnp.asarray(counts, float))
    repeated, expected = value_and_grad(model, X[rows], Y[rows], noise)
    assert float(weighted) == pytest.approx(float(repeated), rel=1e-10)
    for leaf, other in zip(jax.tree.leaves(gradient), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(leaf, other, rtol=1e-8, atol=1e-9)


def test_the_expected_log_likelihood_is_the_mean_over_samples(x64):
    model, X, Y, noise = problem(n_mc=4)
    each = [
        float(full_bound(model, X, Y, jax.tree.map(lambda leaf: leaf[i : i + 1], noise)).ell)  # noqa: B023
        for i in range(4)
    ]
    assert float(full_bound(model, X, Y, noise).ell) == pytest.approx(np.mean(each), rel=1e-12)
    assert np.std(each) > 0


@pytest.mark.parametrize(
    ("omega", "n_layers", "reparameterization"),
    [("var-fixed", 4, DrawWeights()), ("var-resampled", 2, LocalReparameterization())],
)
def test_samples_one_at_a_time_give_the_bound_and_gradient_of_samples_side_by_side(
    omega, n_layers, reparameterization, x64
):
    model, X, Y, noise = problem(omega, 5, 3, n_layers, reparameterization)

    @eqx.filter_jit
    def value_and_gradient(model, one_at_a_time):
        def elbo(model):
            options = {"one_at_a_time": one_at_a_time}
            return full_bound(model, X, Y, noise, None, reparameterization, **options).elbo

        return eqx.filter_value_and_grad(elbo)(model)

    results = [value_and_gradient(model, one_at_a_time) for one_at_a_time in (False, True)]
    for left, right in zip(*map(jax.tree.leaves, results), strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize(
    ("omega", "n_layers", "reparameterization"),
    [
        ("prior-fixed", 2, DrawWeights()),
        ("var-fixed", 4, DrawWeights()),
        ("var-resampled", 2, DrawWeights()),
        ("var-fixed", 2, LocalReparameterization()),
    ],
)
def test_the_gradient_of_the_bound_matches_finite_differences(
    omega, n_layers, reparameterization, x64
):
    model, X, Y, noise = problem(omega, 5, 2, n_layers, reparameterization)
    assert_gradient_matches_finite_differences(
        lambda m: full_bound(m, X, Y, noise, None, reparameterization).elbo, model, rtol=1e-5
    )


def test_classes_are_scored_by_their_log_probability(x64):
    model = examples.deep_gp(2, d_out=3, likelihood=Softmax())
    X, noise = examples.inputs(5), model.draw_noise((1,), key=jax.random.key(0))
    labels = jnp.array([[0], [2], [1], [1], [0]])
    actual = expected_log_likelihood(model, X, labels, jnp.ones(5), noise, DrawWeights())
    F = np.asarray(model(X, jax.tree.map(lambda leaf: leaf[0], noise), DrawWeights()))
    log_probabilities = F - np.log(np.exp(F).sum(axis=1, keepdims=True))
    expected = sum(log_probabilities[i, label] for i, label in enumerate(labels[:, 0]))
    assert float(actual) == pytest.approx(expected, rel=1e-10)
