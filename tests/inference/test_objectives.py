import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from jax.scipy.stats import multivariate_normal
from scipy.special import logsumexp

from bochner.gp.members import Members
from bochner.gp.reparameterization import DrawWeights
from bochner.inference.bound import estimate_bound
from bochner.inference.conditioning import condition_last_layer
from bochner.inference.evidence import exact_posterior
from bochner.inference.objectives import OBJECTIVES, Elbo, Evidence, Predictive
from bochner.likelihoods import Gaussian, HeteroscedasticGaussian
from bochner.prediction.statistics import LogDensity, Moments, Posterior
from bochner.rows.table import Table
from tests import examples


def rows(n=8, dtype=float):
    X = examples.inputs(n)
    return Table.of(np.asarray(X), np.sin(3 * np.asarray(X[:, :1])), dtype=dtype)


def evaluate(objective, model, table, n_mc=3, **options):
    noise = model.draw_noise((n_mc,), key=jax.random.key(1))
    return objective(model, table, noise, DrawWeights(), **({"scale": 1.0} | options)), noise


def test_elbo_is_the_bound(x64):
    model, table = examples.deep_gp(2), rows()
    found, noise = evaluate(Elbo(), model, table, scale=2.5)
    expected = estimate_bound(
        model, table.X, table.Y, table.weights, noise, DrawWeights(), scale=2.5
    )
    assert found == expected


def test_predictive_is_the_log_of_the_mean_likelihood(x64):
    model, table = examples.deep_gp(2), rows()
    table = Table(table.X, table.Y, jnp.arange(8.0))
    found, noise = evaluate(Predictive(), model, table)
    F = jax.vmap(lambda sample: model(table.X, sample, DrawWeights()))(noise)
    log_probs = np.stack([model.likelihood.log_prob(draw, table.Y) for draw in F])
    expected = np.sum(np.arange(8.0) * (logsumexp(log_probs, axis=0) - np.log(3)))
    assert float(found.ell) == pytest.approx(expected, rel=1e-12)
    assert float(found.kl) == pytest.approx(float(model.kl()), rel=1e-12)


@pytest.mark.parametrize("d_out", [1, 2])
def test_evidence_of_one_layer_is_the_bound_at_the_exact_posterior(d_out, x64):
    # With q(W) at the exact posterior the bound is tight: an expectation, and a KL of full covariance.
    model = examples.deep_gp(1, omega="prior-fixed", d_out=d_out, likelihood=Gaussian.start(d_out))
    X = examples.inputs(8)
    table = Table.of(np.asarray(X), np.asarray(jnp.sin(3 * X[:, :d_out])), dtype=float)
    found, _ = evaluate(Evidence(), model, table, n_mc=1)
    Phi = model.blocks[0].Phi(table.X)
    log_v = jnp.broadcast_to(model.likelihood.log_noise_variance[None], table.Y.shape)
    q_W = exact_posterior(Phi, table.Y, table.weights, log_v)
    spread = jnp.stack([jnp.sum((Phi @ factor) ** 2, axis=1) for factor in q_W.factor], axis=1)
    at_mean = Gaussian.log_density(model.likelihood, Phi @ q_W.mean, table.Y)
    expected_ell = jnp.sum(at_mean - 0.5 * spread * jnp.exp(-log_v))
    assert float(found.elbo) == pytest.approx(float(expected_ell - q_W.kl(jnp.zeros(()))), rel=1e-9)
    assert float(found.kl) == 0.0  # nothing else is variational


def test_the_gradient_of_evidence_is_that_of_the_density_of_all_targets_in_the_mean_over_noise(x64):
    """With more features than probes, and two targets."""
    model = examples.deep_gp(
        1, omega="prior-fixed", n_rf=20, d_out=2, likelihood=Gaussian.start(2, noise_variance=0.2)
    )
    X = examples.inputs(12)
    table = Table.of(np.asarray(X), np.asarray(jnp.sin(3 * X[:, :2])), dtype=float)

    def gradient(value):
        at = (model.blocks[0].features.kernel, model.likelihood)

        def of(at):
            kernel, likelihood = at
            moved = eqx.tree_at(
                lambda m: (m.blocks[0].features.kernel, m.likelihood), model, (kernel, likelihood)
            )
            return value(moved)

        return ravel_pytree(jax.grad(of)(at))[0]

    def density(model):
        Phi, variances = model.blocks[0].Phi(table.X), jnp.exp(model.likelihood.log_noise_variance)
        covariances = (Phi @ Phi.T)[None] + variances[:, None, None] * jnp.eye(len(Phi))[None]
        return jnp.sum(jax.vmap(multivariate_normal.logpdf, (1, None, 0))(
            table.Y, jnp.zeros(len(Phi)), covariances
        ))  # fmt: skip

    def estimated(key):
        noise = model.draw_noise((1,), key=key)
        return gradient(
            lambda model: Evidence()(model, table, noise, DrawWeights(), scale=1.0).elbo
        )

    several = jax.lax.map(estimated, jax.random.split(jax.random.key(0), 4_000))
    z = (several.mean(axis=0) - gradient(density)) / (several.std(axis=0) / np.sqrt(len(several)))
    assert float(jnp.max(jnp.abs(z))) < 4.0
    assert float(jnp.min(several.std(axis=0))) > 0.0  # so that there is something to average


def test_evidence_exceeds_the_bound_of_any_factorized_q(x64):
    model, table = examples.deep_gp(1, omega="prior-fixed"), rows()
    assert evaluate(Evidence(), model, table)[0].elbo > evaluate(Elbo(), model, table, 200)[0].elbo


def test_the_kl_of_evidence_leaves_out_what_is_integrated(x64):
    likelihood = HeteroscedasticGaussian.start(1)
    model = examples.deep_gp(2, d_out=2, likelihood=likelihood)
    hidden, last = model.blocks
    of_noise = jax.tree.map(lambda leaf: leaf[:, 1:], last.q_W)
    expected = (
        hidden.kl() + last.features.spectrum.kl(last.features.kernel) + of_noise.kl(jnp.zeros(()))
    )
    assert float(Evidence().kl(model)) == pytest.approx(float(expected), rel=1e-12)


@pytest.mark.parametrize("name", sorted(OBJECTIVES))
@pytest.mark.parametrize("one_at_a_time", [True, False])
def test_gradients_of_members_are_those_of_each_alone(name, one_at_a_time, x64):
    objective, table = OBJECTIVES[name](), rows()
    models = [examples.shaken(examples.deep_gp(2), seed) for seed in range(3)]
    members = Members.of(models)
    noise = members.draw_noise((2,), key=jax.random.key(1))

    def value(model, noise):
        arrays, rest = eqx.partition(model, eqx.is_inexact_array)
        return jax.value_and_grad(
            lambda arrays: objective(
                eqx.combine(arrays, rest), table, noise, DrawWeights(), scale=1.0,
                one_at_a_time=one_at_a_time,
            ).elbo
        )(arrays)  # fmt: skip

    together, gradient = value(members, noise)
    alone = [value(model, jax.tree.map(lambda leaf: leaf[:, i], noise)) for i, model in enumerate(models)]  # noqa: B023  # fmt: skip
    assert float(together) == pytest.approx(np.mean([float(value) for value, _ in alone]))
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves) / 3, *(g for _, g in alone))
    for found, expected in zip(jax.tree.leaves(gradient), jax.tree.leaves(stacked), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("likelihood", [Gaussian, HeteroscedasticGaussian])
def test_a_conditioned_layer_predicts_like_linear_regression(likelihood):
    d_out = likelihood.n_functions(1)
    model = examples.deep_gp(
        1, omega="prior-fixed", d_out=d_out, likelihood=likelihood.start(1, noise_variance=0.1)
    )
    table = rows(20, dtype=jnp.float32)
    conditioned = condition_last_layer(model, table, n_draws=1, key=jax.random.key(0))
    X = np.asarray(examples.inputs(5, seed=9))
    posterior = Posterior.draw(conditioned, n_draws=20_000, key=jax.random.key(1))
    moments = posterior.map_rows(Moments(), X)
    # The one draw of what decides the noise is held, so that any function drawn shows it.
    member = conditioned.each()[0]
    Phi, new = (np.asarray(model.blocks[0].Phi(jnp.asarray(A, jnp.float32)), float) for A in (table.X, X))  # fmt: skip
    W = np.asarray(member.blocks[0].q_W.sample(jnp.zeros((10, d_out))))

    def variances(Phi):
        F = np.concatenate([np.zeros((len(Phi), 1)), Phi @ W[:, 1:]], axis=1)
        return np.asarray(model.likelihood.moments(jnp.asarray(F, jnp.float32))[1][:, 0], float)

    precision = np.diag(1 / variances(Phi))
    covariance = np.linalg.inv(np.eye(10) + Phi.T @ precision @ Phi)
    mean = new @ covariance @ Phi.T @ precision @ np.asarray(table.Y[:, 0], float)
    np.testing.assert_allclose(moments["mean"][:, 0], mean, atol=0.02)
    spread = np.sum(new @ covariance * new, axis=1)
    np.testing.assert_allclose(moments["epistemic"][:, 0], spread, rtol=0.05)
    np.testing.assert_allclose(moments["aleatoric"][:, 0], variances(new), rtol=1e-4)


def test_each_draw_of_the_hidden_layers_becomes_a_member_with_its_own_last_layer():
    models = Members.of([examples.shaken(examples.deep_gp(3), seed) for seed in range(2)])
    table = rows(20, dtype=jnp.float32)
    conditioned = condition_last_layer(models, table, n_draws=3, key=jax.random.key(0))
    assert conditioned.n_members == 6
    one, other = conditioned.each()[:2]
    assert not np.allclose(one.blocks[-1].q_W.mean, other.blocks[-1].q_W.mean)
    # The hidden layers are held: noise changes nothing before the last layer.
    noises = [one.draw_noise(key=jax.random.key(seed)) for seed in (1, 2)]
    first, second = (one.inputs_of_last(table.X, noise, DrawWeights())[0] for noise in noises)
    np.testing.assert_array_equal(first, second)


def test_a_mixture_weighs_its_members_equally():
    models = [examples.shaken(examples.deep_gp(1), seed) for seed in range(2)]
    X, Y = np.asarray(examples.inputs(5)), np.zeros((5, 1))
    posterior = Posterior.draw(Members.of(models), n_draws=10, key=jax.random.key(0))
    found = posterior.map_rows(LogDensity(), X, Y=Y)
    alone = [
        Posterior(model, jax.tree.map(lambda leaf: leaf[:, i], posterior.noise)).map_rows(LogDensity(), X, Y=Y)  # noqa: B023
        for i, model in enumerate(models)
    ]  # fmt: skip
    np.testing.assert_allclose(found, np.logaddexp(*alone) - np.log(2), rtol=1e-5)
