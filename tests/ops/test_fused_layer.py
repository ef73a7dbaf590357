"""The kernels of a layer, in Pallas's interpreter, beside the formula in double precision."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bochner.kernels import KERNELS
from bochner.ops import PallasLayer, XlaLayer
from bochner.ops.fused_layer import CosineSine, Precision, ReluPower, Sine, activations
from bochner.ops.fused_layer.choice import NarrowTiles, Sizes, WideTiles, choose
from bochner.ops.fused_layer.narrow import Narrow, narrow_layer
from tests.reference import fused_layer as reference

# Rows, frequencies and widths around the edges of tiles; inputs of two counts stand for fed ones.
NARROW = [(1, (1,), 1, 1), (7, (2,), 5, 3), (65, (3, 8), 33, 1), (130, (8,), 100, 3), (300, (1, 2), 9, 4)]  # fmt: skip
WIDE = [(1, (20,), 1, 9), (65, (17, 3), 33, 10), (64, (30,), 32, 16), (150, (3,), 70, 33)]


def kernel_named(name):
    return KERNELS[name](log_variance=jnp.zeros(()), log_lengthscale=jnp.zeros(()))


def arrays(shape, kernel, *, moments=False, samples=(None, None, None), seed=0):
    """Inputs, Omega and weights in single precision, each with a leading axis where `samples` has a number."""
    batch, widths, n_rf, d_out = shape
    generator = np.random.default_rng([seed, batch, n_rf])

    def normal(n_samples, *sizes, scale=1.0):
        leading = () if n_samples is None else (n_samples,)
        return jnp.asarray(scale * generator.normal(size=(*leading, *sizes)), jnp.float32)

    of_inputs, of_Omega, of_weights = samples
    feat = kernel_named(kernel).n_parts * n_rf
    inputs = tuple(normal(of_inputs, width, batch) for width in widths)
    Omega = normal(of_Omega, sum(widths), n_rf, scale=2 / np.sqrt(sum(widths)))
    weights = [normal(of_weights, feat, d_out, scale=1 / np.sqrt(feat))]
    if moments:
        weights.append(jnp.exp(normal(of_weights, feat, d_out)) / feat)
    return inputs, Omega, *weights


def assert_agrees(path, kernel, arguments, *, axes=None, tolerance=2e-6):
    """Compare values and the gradient in every argument; `axes` are those of `jax.vmap`."""
    moments = len(arguments) == 4
    run = path.moments if moments else path.outputs
    expected_run = reference.moments if moments else reference.outputs
    function = functools.partial(run, kernel_named(kernel))
    expected_function = functools.partial(expected_run, kernel)
    if axes is not None:
        function, expected_function = (
            jax.vmap(one, in_axes=axes) for one in (function, expected_function)
        )
    generator = np.random.default_rng(5)
    cotangents = jax.tree.map(
        lambda leaf: jnp.asarray(generator.normal(size=leaf.shape), jnp.float32),
        jax.eval_shape(function, *arguments),
    )

    @jax.jit
    def value_and_gradients(arguments, cotangents):
        values, pullback = jax.vjp(function, *arguments)
        return values, pullback(cotangents)

    actual = value_and_gradients(arguments, cotangents)
    expected = reference.values_and_gradients(expected_function, arguments, cotangents)
    distances = jax.tree.map(reference.distance, actual, expected)
    assert max(jax.tree.leaves(distances)) < tolerance, distances


@pytest.mark.parametrize("moments", [False, True])
@pytest.mark.parametrize("shape", [*NARROW, *WIDE], ids=str)
def test_values_and_gradients_equal_those_of_the_formula(shape, moments):
    arguments = arrays(shape, "rbf", moments=moments)
    assert_agrees(PallasLayer(interpret=True), "rbf", arguments)


@pytest.mark.parametrize("moments", [False, True])
@pytest.mark.parametrize("kernel", ["arccos0", "arccos1", "arccos2"])
@pytest.mark.parametrize("shape", [NARROW[1], WIDE[1]], ids=["narrow", "wide"])
def test_so_they_are_for_powers_of_a_relu(shape, kernel, moments):
    arguments = arrays(shape, kernel, moments=moments)
    assert_agrees(PallasLayer(interpret=True), kernel, arguments)


def test_the_shapes_above_reach_both_families_of_kernels():
    for shapes, family in ((NARROW, NarrowTiles), (WIDE, WideTiles)):
        for batch, widths, n_rf, d_out in shapes:
            assert isinstance(choose(Sizes(sum(widths), n_rf, d_out, batch)), family)


# Which of inputs, Omega and weights have an axis of samples.
SAMPLES = {
    "one W a sample": (None, None, 3),
    "hidden layer": (3, None, 3),
    "Omega resampled": (3, 3, 3),
    "first layer, Omega resampled": (None, 3, 3),
    "shared W": (3, None, None),
}


@pytest.mark.parametrize("moments", [False, True])
@pytest.mark.parametrize("samples", SAMPLES)
@pytest.mark.parametrize("shape", [(40, (2, 3), 9, 3), (66, (18,), 33, 9)], ids=["narrow", "wide"])
def test_samples_side_by_side_equal_those_of_the_formula(shape, samples, moments):
    arguments = arrays(shape, "rbf", moments=moments, samples=SAMPLES[samples])
    of_inputs, of_Omega, of_weights = (None if n is None else 0 for n in SAMPLES[samples])
    axes = (of_inputs, of_Omega, *[of_weights] * (1 + moments))
    assert_agrees(PallasLayer(interpret=True).side_by_side(3), "rbf", arguments, axes=axes)


def test_fed_inputs_that_samples_share_stay_unmapped():
    inputs, Omega, W = arrays((40, (2, 3), 9, 3), "rbf", samples=(3, None, 3))
    arguments = ((inputs[0], inputs[1][0]), Omega, W)
    assert_agrees(PallasLayer(interpret=True), "rbf", arguments, axes=((0, None), None, 0))


@pytest.mark.parametrize("path", [XlaLayer, functools.partial(PallasLayer, interpret=True)])
@pytest.mark.parametrize(
    ("precision", "tolerance"),
    [(Precision.FLOAT32, 2e-6), (Precision.TF32, 2e-3), (Precision.BFLOAT16, 2e-2)],
)
def test_rounded_products_stay_close_in_wide_layers(path, precision, tolerance):
    arguments = arrays((150, (17,), 70, 33), "rbf")
    assert_agrees(path(precision), "rbf", arguments, tolerance=tolerance)


def test_narrow_layers_are_exact_under_every_precision():
    arguments = arrays((130, (8,), 100, 3), "rbf")
    assert_agrees(PallasLayer(Precision.BFLOAT16, interpret=True), "rbf", arguments)


def test_both_sines_are_sines_far_from_zero():
    x = jnp.linspace(-2000, 2000, 100_001, dtype=jnp.float32)
    for sine in Sine:
        parts = CosineSine(sine).parts(x)
        for part, exact in zip(parts, (np.cos, np.sin), strict=True):
            np.testing.assert_allclose(part, exact(np.asarray(x, np.float64)), rtol=0, atol=5e-7)


def test_a_gpu_takes_its_own_cosine_first_and_then_its_own_sine(monkeypatch):
    monkeypatch.setattr(activations, "fast_cosine", jnp.cos)
    monkeypatch.setattr(activations, "fast_sine", jnp.sin)
    x = jnp.linspace(-3, 3, 7)
    cosine, sine = CosineSine(Sine.HARDWARE).parts(x, interpret=False)
    np.testing.assert_array_equal(cosine, jnp.cos(x))
    np.testing.assert_array_equal(sine, jnp.sin(x))


@pytest.mark.parametrize("outputs", [(128, False), (64, True)])
def test_as_many_outputs_as_registers_hold(outputs):
    d_out, moments = outputs
    arguments = arrays((70, (17,), 40, d_out), "rbf", moments=moments)
    assert_agrees(PallasLayer(interpret=True), "rbf", arguments)


@pytest.mark.parametrize("moments", [False, True])
@pytest.mark.parametrize("at_once", [1, 3, 4])
def test_loops_that_take_several_at_once_leave_none_out(at_once, moments):
    """Splits of 10 and rows of 9 are no multiples of what a turn takes, and the last ones are shorter."""
    batch, widths, n_rf, d_out = 31, (2, 3), 37, 2
    arguments = arrays((batch, widths, n_rf, d_out), "rbf", moments=moments)
    tiles = NarrowTiles(32, 10, 32, 9, frequencies_at_once=at_once, rows_at_once=at_once)
    layer = Narrow(CosineSine(), tiles, interpret=True)

    class Forced(PallasLayer):
        def _fused(self, kernel, inputs, Omega, weights):
            return narrow_layer(layer, inputs, Omega, weights)

    assert_agrees(Forced(interpret=True), "rbf", arguments)


def test_kernels_name_the_activation_that_they_apply():
    Z = jnp.linspace(-3, 3, 11, dtype=jnp.float32)
    for name in KERNELS:
        kernel = kernel_named(name)
        activation = kernel.activation()
        assert activation in (CosineSine(), *(ReluPower(degree) for degree in (0, 1, 2)))
        for ours, theirs in zip(activation.parts(Z), kernel.activate(Z), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=2e-7)


def test_double_precision_is_left_to_xla(x64):
    kernel = kernel_named("rbf")
    arguments = jax.tree.map(lambda leaf: leaf.astype(jnp.float64), arrays(NARROW[1], "rbf"))
    paths = (PallasLayer(), XlaLayer())
    fused, plain = (path.outputs(kernel, *arguments) for path in paths)
    np.testing.assert_array_equal(fused, plain)


def test_a_layer_without_kernels_is_left_to_xla():
    kernel = kernel_named("rbf")
    arguments = arrays((4, (2,), 5, 200), "rbf")
    fused, plain = (path.outputs(kernel, *arguments) for path in (PallasLayer(), XlaLayer()))
    np.testing.assert_array_equal(fused, plain)


@pytest.mark.parametrize("n_samples", [1, 8, 100])
@pytest.mark.parametrize("batch", [1, 64, 200, 1000, 10_000, 100_000])
@pytest.mark.parametrize("n_rf", [1, 20, 100, 500, 3000])
def test_tiles_are_powers_of_two_and_cover_the_work(n_rf, batch, n_samples):
    for d_in, d_out, n_weights in ((1, 1, 1), (11, 3, 2), (16, 8, 1), (784, 50, 1), (50, 64, 2)):
        tiles = choose(Sizes(d_in, n_rf, d_out, batch, 2, n_weights, n_samples))
        assert tiles is not None
        for name in ("rows", "frequencies", "gradient_frequencies", "outputs"):
            size = getattr(tiles, name, 1)
            assert size & (size - 1) == 0, name
        assert tiles.frequencies_a_split >= 1
        assert tiles.rows_a_split >= 1
        if isinstance(tiles, WideTiles):
            assert tiles.outputs >= d_out
            assert tiles.frequencies_a_split % tiles.frequencies == 0
            assert tiles.rows_a_split % tiles.rows == 0
