import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bochner.features.spectra import SPECTRA, PriorFixed
from bochner.gp.layers import Layer, LayerSettings, Stack
from bochner.gp.model import DeepGP, collapsed_weights
from bochner.gp.reparameterization import DrawWeights, LocalReparameterization
from bochner.kernels import KERNELS, ArcCosine
from bochner.likelihoods import Gaussian
from tests import examples
from tests.reference import deep_gp

LEARNABLE = [name for name in KERNELS if name != "arccos0"]


def assert_equals_reference(model, names, key, rtol=1e-8):
    X = examples.inputs()
    noise = model.draw_noise(key=key)
    actual = eqx.filter_jit(model)(X, noise, DrawWeights())
    noises = examples.layer_noises(model, noise)
    expected = deep_gp.forward(names, model.layers, noises, X, model.feed_inputs)
    np.testing.assert_allclose(actual, expected, rtol=rtol, atol=1e-12)


@pytest.mark.parametrize("feed_inputs", [False, True])
@pytest.mark.parametrize("n_layers", [1, 2, 4])
@pytest.mark.parametrize("kernel", LEARNABLE)
def test_the_forward_pass_equals_the_reference(kernel, n_layers, feed_inputs, key, x64):
    model = examples.deep_gp(n_layers, feed_inputs, kernel=kernel)
    assert_equals_reference(model, [kernel] * n_layers, key)


@pytest.mark.parametrize("omega", SPECTRA)
def test_the_forward_pass_of_each_treatment_equals_the_reference(omega, key, x64):
    model = examples.deep_gp(4, feed_inputs=True, omega=omega)
    assert_equals_reference(model, ["rbf"] * 4, key)


def test_layers_may_differ_in_everything(key, x64):
    names = ["rbf", "arccos1", "matern52"]
    settings = [
        examples.setting("rbf", width=3, n_rf=4, ard=False),
        examples.setting("arccos1", "prior-fixed", width=2, n_rf=7, variance=2.0),
        examples.setting("matern52", "var-resampled", width=1, n_rf=5, lengthscale=0.4),
    ]
    model = DeepGP.start(settings, Gaussian.start(1), d_in=2, feed_inputs=True, key=key)
    assert all(isinstance(block, Layer) for block in model.blocks)
    assert_equals_reference(examples.shaken(model), names, key)


def test_hidden_variance_going_to_zero_leaves_the_shallow_model_on_fed_inputs(key, x64):
    model = examples.deep_gp(3, feed_inputs=True)
    X, noise = examples.inputs(), model.draw_noise(key=key)
    shallow = DeepGP(blocks=model.blocks[-1:], likelihood=model.likelihood, feed_inputs=False)
    zeros_and_X = jnp.concatenate([jnp.zeros((len(X), 3)), X], axis=1)
    expected = shallow(zeros_and_X, noise[-1:], DrawWeights())

    def distance(log_variance):
        flat = eqx.tree_at(
            lambda m: [block.features.kernel.log_variance for block in m.blocks[:-1]],
            model,
            [jnp.asarray(log_variance)] * 2,
        )
        return float(jnp.max(jnp.abs(flat(X, noise, DrawWeights()) - expected)))

    distances = [distance(log_variance) for log_variance in (0.0, -20.0, -40.0, -60.0)]
    assert distances[0] > 0.1
    assert distances[1] < 1e-3
    assert distances[3] < 1e-10
    assert distances == sorted(distances, reverse=True)


@pytest.mark.parametrize("feed_inputs", [False, True])
def test_collapsed_weights_are_the_product_of_weights_and_next_frequencies(feed_inputs, x64):
    model = examples.deep_gp(3, feed_inputs)
    for index in (0, 1):
        W = deep_gp.as_float64(model.layers[index].q_W.mean)
        Omega = deep_gp.frequencies(model.layers[index + 1])
        expected = W @ Omega[: W.shape[1]]
        np.testing.assert_allclose(collapsed_weights(model, index), expected, rtol=1e-10)
        assert np.linalg.matrix_rank(expected) == W.shape[1]
    with pytest.raises(
        ValueError, match="`index` must name a layer with a next one, 0 to 1; got 2"
    ):
        collapsed_weights(model, 2)


def test_a_function_draw_is_the_same_wherever_it_is_evaluated(key):
    f = examples.deep_gp(3, feed_inputs=True, omega="var-resampled").draw_function(key=key)
    X = examples.inputs(8)
    whole = f(X)
    np.testing.assert_allclose(f(X[3:5]), whole[3:5], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(f(X[::-1])[::-1], whole, rtol=1e-5, atol=1e-6)


def test_function_draws_of_different_keys_differ(key):
    model, X = examples.deep_gp(2), examples.inputs(3)
    first, second = (model.draw_function(key=k)(X) for k in jax.random.split(key))
    assert not jnp.any(first == second)


def test_a_function_draw_is_smooth_and_its_derivative_is_exact(key, x64):
    f = examples.deep_gp(3, feed_inputs=True).draw_function(key=key)
    x = jnp.array([0.3, -0.2])
    gradient = jax.grad(lambda x: f(x[None, :])[0, 0])(x)
    for i, step in enumerate(1e-6 * jnp.eye(2)):
        numerical = (f((x + step)[None, :]) - f((x - step)[None, :]))[0, 0] / 2e-6
        assert float(gradient[i]) == pytest.approx(float(numerical), rel=1e-6, abs=1e-9)


def test_noise_has_leading_axes_and_is_new_for_each_layer(key):
    model = examples.deep_gp(4, feed_inputs=True, omega="var-resampled", width=2, n_rf=2)
    noise = eqx.filter_jit(model.draw_noise)((3,), key=key)
    shapes = [(entry.W.shape, entry.features.Omega.shape) for entry in noise]
    assert shapes == [((3, 4, 2), (3, 2, 2)), ((3, 2, 4, 2), (3, 2, 4, 2)), ((3, 4, 1), (3, 4, 2))]
    numbers = np.concatenate([leaf.ravel() for leaf in jax.tree.leaves(noise)])
    assert len(np.unique(numbers)) == numbers.size


def test_local_noise_has_one_row_for_each_row_of_the_batch():
    model = examples.deep_gp(4, feed_inputs=True)
    shapes = model.noise_shapes(LocalReparameterization(), batch=9)
    assert [entry.W.shape for entry in shapes] == [(9, 3), (2, 9, 3), (9, 1)]


@pytest.mark.parametrize("feed_inputs", [False, True])
@pytest.mark.parametrize("n_layers", [1, 2, 3, 10, 50])
def test_models_of_1_to_50_layers_build_and_run(n_layers, feed_inputs, key):
    model = examples.deep_gp(n_layers, feed_inputs, width=3, n_rf=4)
    assert len(model.layers) == n_layers
    assert len(model.blocks) <= 3
    F = eqx.filter_jit(model)(examples.inputs(), model.draw_noise(key=key), DrawWeights())
    assert F.shape == (6, 1)
    assert jnp.all(jnp.isfinite(F))
    assert float(model.kl()) == pytest.approx(
        sum(float(layer.kl()) for layer in model.layers), rel=1e-5
    )


def test_every_layer_but_the_first_takes_the_fed_inputs(key):
    model = examples.deep_gp(4, feed_inputs=True, width=3)
    sizes = [layer.features.kernel.log_lengthscale.shape[0] for layer in model.layers]
    assert sizes == [2, 5, 5, 5]
    assert isinstance(model.blocks[1], Stack)


def test_degree_zero_is_refused_where_something_behind_it_must_be_learned(key):
    allowed = LayerSettings(
        1, kernel=lambda **values: ArcCosine(degree=0, **values), omega=PriorFixed, ard=False
    )

    def start(*settings):
        likelihood = Gaussian.start(1)
        return DeepGP.start(settings, likelihood, d_in=2, feed_inputs=True, key=key)

    with pytest.raises(ValueError, match=r"layer 1 the layers before it cannot be learned"):
        start(allowed, allowed)
    with pytest.raises(ValueError, match=r"layer 0 q\(Omega\) cannot be learned"):
        start(dataclasses.replace(allowed, omega=SPECTRA["var-fixed"]))
    with pytest.raises(ValueError, match=r"layer 0 its ARD lengthscales cannot be learned"):
        start(dataclasses.replace(allowed, ard=True))
    assert len(start(allowed).layers) == 1
    assert len(start(allowed, LayerSettings(1)).layers) == 2
