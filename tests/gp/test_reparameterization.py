import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bochner.gp.layers import Layer, LayerNoise
from bochner.gp.reparameterization import DrawWeights, LocalReparameterization
from bochner.kernels import KERNELS
from tests.examples import inputs, setting, shaken
from tests.reference.deep_gp import as_float64

N_SAMPLES = 20_000


def started(kernel="rbf", **options):
    layer = Layer.start(setting(kernel, **options), d_in=2, key=jax.random.key(1))
    return shaken(layer)


def draws(layer, X, reparameterization, n=N_SAMPLES):
    shape = reparameterization.noise_shape(*layer.q_W.mean.shape, X.shape[0])
    noise = jax.random.normal(jax.random.key(2), (n, *shape))
    run = jax.vmap(lambda W: layer((X,), LayerNoise(W, None), reparameterization))
    return as_float64(jax.jit(run)(noise))


def moments(layer, X):
    """Exact mean and variance of each output, from Phi and q(W)."""
    Phi = as_float64(layer.Phi(X))
    q_W = layer.q_W
    return Phi @ as_float64(q_W.mean), Phi**2 @ np.exp(as_float64(q_W.log_var))


@pytest.mark.parametrize("reparameterization", [DrawWeights(), LocalReparameterization()])
@pytest.mark.parametrize("kernel", ["rbf", "arccos1", "matern32"])
def test_outputs_have_the_mean_and_variance_that_q_implies(kernel, reparameterization):
    layer, X = started(kernel), inputs(4)
    mean, variance = moments(layer, X)
    sample = draws(layer, X, reparameterization)
    assert np.abs((sample.mean(axis=0) - mean) / np.sqrt(variance / N_SAMPLES)).max() < 4
    assert np.abs((sample.var(axis=0) / variance - 1) / np.sqrt(2 / N_SAMPLES)).max() < 4


def test_drawn_weights_correlate_rows_and_local_draws_do_not():
    layer, X = started(), jnp.array([[0.1, 0.2], [0.11, 0.2]])
    together = draws(layer, X, DrawWeights())[:, :, 0]
    apart = draws(layer, X, LocalReparameterization())[:, :, 0]
    assert np.corrcoef(together.T)[0, 1] > 0.99
    assert abs(np.corrcoef(apart.T)[0, 1]) < 4 / np.sqrt(N_SAMPLES)


@pytest.mark.parametrize("kernel", KERNELS)
def test_without_noise_both_give_the_mean(kernel, x64):
    layer, X = started(kernel, omega="prior-fixed"), inputs(4)
    expected, _ = moments(layer, X)
    for reparameterization in (DrawWeights(), LocalReparameterization()):
        shape = reparameterization.noise_shape(*layer.q_W.mean.shape, X.shape[0])
        noise = LayerNoise(jnp.zeros(shape), None)
        np.testing.assert_allclose(layer((X,), noise, reparameterization), expected, rtol=1e-10)


def test_noise_has_the_shape_of_the_weights_or_of_the_outputs():
    assert DrawWeights().noise_shape(feat=20, d_out=3, batch=7) == (20, 3)
    assert LocalReparameterization().noise_shape(feat=20, d_out=3, batch=7) == (7, 3)


def test_local_gradients_are_finite_where_all_features_are_zero():
    layer = started("arccos1")
    noise = LayerNoise(jnp.ones((1, 3)), None)

    def total(layer):
        return jnp.sum(layer((jnp.zeros((1, 2)),), noise, LocalReparameterization()))

    gradient = jax.grad(total)(layer)
    assert all(jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(gradient))


def test_local_gradients_of_the_mean_of_q_vary_less_than_drawn_ones():
    layer, X = started(), inputs(50)
    Y = jnp.sin(X[:, :1]) * jnp.ones((1, 3))

    def gradients(reparameterization):
        shape = reparameterization.noise_shape(*layer.q_W.mean.shape, X.shape[0])

        def gradient(noise):
            def loss(layer):
                F = layer((X,), LayerNoise(noise, None), reparameterization)
                return jnp.sum((F - Y) ** 2)

            return jax.grad(loss)(layer).q_W.mean

        noise = jax.random.normal(jax.random.key(3), (2000, *shape))
        return as_float64(jax.jit(jax.vmap(gradient))(noise))

    plain, local = gradients(DrawWeights()), gradients(LocalReparameterization())
    error = np.sqrt((plain.var(axis=0) + local.var(axis=0)) / 2000)
    assert np.abs((plain.mean(axis=0) - local.mean(axis=0)) / error).max() < 4
    assert local.var(axis=0).sum() < 0.5 * plain.var(axis=0).sum()
