import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bochner.features.random_features import FeatureNoise
from bochner.features.spectra import SPECTRA, VarResampled
from bochner.gp.layers import Layer, LayerNoise, LayerSettings, Stack, group_equal
from bochner.gp.reparameterization import DrawWeights, LocalReparameterization
from bochner.kernels import KERNELS
from tests.examples import inputs, setting, shaken
from tests.reference import deep_gp, gaussians


def started(*args, d_in=2, seed=0, **options):
    return shaken(Layer.start(setting(*args, **options), d_in=d_in, key=jax.random.key(seed)), seed)


def noise_of(layer, seed=0, reparameterization=None, batch=0):
    shapes = layer.noise_shapes(reparameterization or DrawWeights(), batch=batch)
    leaves, structure = jax.tree.flatten(shapes)
    generator = np.random.default_rng(seed)
    return structure.unflatten([jnp.asarray(generator.normal(size=leaf.shape)) for leaf in leaves])


@pytest.mark.parametrize("omega", SPECTRA)
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_layer_equals_the_reference(kernel, omega, x64):
    layer, X = started(kernel, omega), inputs()
    noise = noise_of(layer)
    expected = deep_gp.forward(
        [kernel], [layer], [(noise.W, noise.features.Omega)], X, feed_inputs=False
    )
    np.testing.assert_allclose(layer((X,), noise, DrawWeights()), expected, rtol=1e-9, atol=1e-12)


def test_a_layer_in_single_precision_equals_the_reference():
    layer, X = started(), inputs()
    noise = noise_of(layer)
    expected = deep_gp.forward(
        ["rbf"], [layer], [(noise.W, noise.features.Omega)], X, feed_inputs=False
    )
    np.testing.assert_allclose(layer((X,), noise, DrawWeights()), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("omega", SPECTRA)
def test_inputs_side_by_side_count_as_one_matrix(omega, x64):
    layer = started(omega=omega, d_in=5)
    left, right, noise = inputs(d_in=2), inputs(d_in=3, seed=1), noise_of(layer)
    together = layer((jnp.concatenate([left, right], axis=1),), noise, DrawWeights())
    np.testing.assert_allclose(layer((left, right), noise, DrawWeights()), together, rtol=1e-10)


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_output_is_the_feature_matrix_times_the_weights(kernel, x64):
    layer, X = started(kernel), inputs()
    noise = noise_of(layer)
    F = layer.Phi(X) @ layer.q_W.sample(noise.W)
    np.testing.assert_allclose(layer((X,), noise, DrawWeights()), F, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("omega", SPECTRA)
def test_the_divergence_is_that_of_the_weights_plus_that_of_the_frequencies(omega, x64):
    layer = started(omega=omega)
    q_W = layer.q_W
    expected = gaussians.kl(q_W.mean, np.exp(q_W.log_var), np.ones(q_W.mean.shape))
    if omega != "prior-fixed":
        q = layer.features.spectrum.q_Omega
        prior = np.exp(-2 * np.asarray(layer.features.kernel.log_lengthscale))[:, None]
        prior = np.broadcast_to(prior, q.mean.shape)
        expected += gaussians.kl(q.mean, np.exp(q.log_var), prior)
    assert float(layer.kl()) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("reparameterization", [DrawWeights(), LocalReparameterization()])
@pytest.mark.parametrize("fed", [False, True])
@pytest.mark.parametrize("omega", SPECTRA)
def test_a_stack_equals_its_layers_in_sequence(omega, fed, reparameterization, x64):
    d_in = 5 if fed else 3
    layers = [started(omega=omega, d_in=d_in, seed=seed) for seed in range(4)]
    stack = Stack.of(layers)
    F, X = inputs(d_in=3), inputs(d_in=2, seed=1)
    noises = [
        noise_of(layer, seed, reparameterization, batch=len(F)) for seed, layer in enumerate(layers)
    ]
    extra = (X,) if fed else ()
    stacked_noise = jax.tree.map(lambda *leaves: jnp.stack(leaves), *noises)
    actual = stack((F, *extra), stacked_noise, reparameterization)
    expected = F
    for layer, noise in zip(layers, noises, strict=True):
        expected = layer((expected, *extra), noise, reparameterization)
    np.testing.assert_allclose(actual, expected, rtol=1e-9)
    assert float(stack.kl()) == pytest.approx(sum(float(layer.kl()) for layer in layers))


def test_a_stack_gives_its_layers_back():
    layers = [started(d_in=3, seed=seed) for seed in range(3)]
    for layer, back in zip(layers, Stack.of(layers).unstacked(), strict=True):
        assert jax.tree.structure(layer) == jax.tree.structure(back)
        assert all(map(jnp.array_equal, jax.tree.leaves(layer), jax.tree.leaves(back)))


def test_noise_shapes_name_what_a_draw_needs():
    for omega in SPECTRA:
        shapes = started(omega=omega).noise_shapes(DrawWeights(), batch=9)
        assert shapes.W.shape == (10, 3)
        assert (shapes.features.Omega is None) == (SPECTRA[omega] is not VarResampled)
    stack = Stack.of([started(omega="var-resampled", d_in=3, seed=seed) for seed in range(2)])
    shapes = stack.noise_shapes(DrawWeights(), batch=9)
    assert (shapes.W.shape, shapes.features.Omega.shape) == ((2, 10, 3), (2, 3, 5))


def test_runs_of_equal_layers_are_stacked_and_others_are_not():
    plain = [started(d_in=3, seed=seed) for seed in range(5)]
    (stack,) = group_equal(plain)
    assert isinstance(stack, Stack)
    assert stack.n_layers == 5

    others = {
        "kernel": started("matern32", d_in=3),
        "kernel of another degree": started("arccos2", d_in=3),
        "width": started(width=2, d_in=3),
        "number of features": started(n_rf=6, d_in=3),
        "number of inputs": started(d_in=4),
        "treatment": started(omega="prior-fixed", d_in=3),
        "ARD": started(d_in=3, ard=False),
    }
    for what, other in others.items():
        grouped = group_equal([plain[0], other, plain[1], plain[2]])
        assert [type(block).__name__ for block in grouped] == ["Layer", "Layer", "Stack"], what
    degrees = [started("arccos1", d_in=3), started("arccos2", d_in=3)]
    assert not any(isinstance(block, Stack) for block in group_equal(degrees))


def test_settings_give_the_initial_values(key):
    settings = LayerSettings(2, n_rf=7, variance=2.5, lengthscale=0.3, log_var=-6.0)
    layer = Layer.start(settings, d_in=4, key=key)
    assert layer.features.kernel.log_lengthscale.shape == (4,)
    np.testing.assert_allclose(jnp.exp(layer.features.kernel.log_lengthscale), 0.3, rtol=1e-5)
    assert float(jnp.exp(layer.features.kernel.log_variance)) == pytest.approx(2.5)
    assert (layer.q_W.mean == 0).all()
    assert (layer.q_W.log_var == -6.0).all()
    assert (layer.width, layer.features.n_rf) == (2, 7)


def test_a_layer_starts_at_the_prior_with_lengthscale_the_square_root_of_the_inputs(key):
    layer = Layer.start(LayerSettings(2, ard=False), d_in=9, key=key)
    assert layer.features.kernel.log_lengthscale.shape == ()
    assert float(layer.features.kernel.log_lengthscale) == pytest.approx(math.log(3.0))
    assert float(layer.kl()) == 0.0


def test_layers_of_different_keys_have_different_frequencies():
    first, second = (Layer.start(setting(), d_in=2, key=jax.random.key(seed)) for seed in (0, 1))
    assert not jnp.any(first.features.spectrum.epsilon == second.features.spectrum.epsilon)


def test_noise_that_a_treatment_does_not_need_changes_nothing():
    layer, X = started(), inputs()
    noise = noise_of(layer)
    with_omega = LayerNoise(noise.W, FeatureNoise(jnp.ones((2, 5))))
    plain = layer((X,), noise, DrawWeights())
    assert jnp.array_equal(plain, layer((X,), with_omega, DrawWeights()))
