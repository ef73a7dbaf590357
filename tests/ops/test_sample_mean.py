import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bochner.features.spectra import SPECTRA
from bochner.gp.reparameterization import DrawWeights, LocalReparameterization
from bochner.inference.bound import estimate_bound
from bochner.kernels import KERNELS
from bochner.ops import sample_mean
from tests.examples import deep_gp, inputs


def function(shared, sample):
    return jnp.sum(jnp.sin(shared["a"] * sample["x"]) + shared["b"] * sample["y"] ** 2)


def arguments():
    generator = np.random.default_rng(0)
    shared = {"a": jnp.asarray(generator.normal(size=3)), "b": jnp.asarray(0.7)}
    samples = {name: jnp.asarray(generator.normal(size=(5, 3))) for name in ("x", "y")}
    return shared, samples


def plain(shared, samples):
    return jnp.mean(jax.vmap(lambda sample: function(shared, sample))(samples))


def ours(shared, samples):
    return sample_mean(function, shared, samples)


def test_value_and_gradients_equal_those_of_the_mean_over_all_samples(x64):
    np.testing.assert_allclose(ours(*arguments()), plain(*arguments()), rtol=1e-14)
    actual = jax.grad(lambda *a: 3 * ours(*a), argnums=(0, 1))(*arguments())
    expected = jax.grad(lambda *a: 3 * plain(*a), argnums=(0, 1))(*arguments())
    jax.tree.map(lambda a, e: np.testing.assert_allclose(a, e, rtol=1e-12), actual, expected)


def test_it_can_be_mapped_and_compiled(x64):
    shared, samples = arguments()
    several = jax.tree.map(lambda leaf: jnp.stack([leaf, 2 * leaf]), shared)
    actual = jax.jit(jax.vmap(jax.grad(ours), in_axes=(0, None)))(several, samples)
    expected = jax.vmap(jax.grad(plain), in_axes=(0, None))(several, samples)
    jax.tree.map(lambda a, e: np.testing.assert_allclose(a, e, rtol=1e-12), actual, expected)


# One layer; two; a stack with a last layer; a stack that begins the model.
DEPTHS = {"one": (1, 2), "two": (2, 2), "stack": (4, 2), "stack first": (4, 3)}


def assert_bounds_agree(reparameterization, depth="two", **options):
    n_layers, d_in = DEPTHS[depth]
    model = deep_gp(n_layers, d_in=d_in, **options)
    X, Y = inputs(d_in=d_in), inputs(d_in=1, seed=1)
    noise = model.draw_noise(
        (3,), reparameterization=reparameterization, batch=6, key=jax.random.key(3)
    )

    def loss(model, one_at_a_time):
        bound = estimate_bound(
            model, X, Y, jnp.arange(1.0, 7.0), noise, reparameterization, scale=2.0,
            one_at_a_time=one_at_a_time,
        )  # fmt: skip
        return bound.elbo

    actual, expected = (jax.jit(jax.value_and_grad(loss), static_argnums=1)(model, one)
                        for one in (True, False))  # fmt: skip
    jax.tree.map(
        lambda a, e: np.testing.assert_allclose(a, e, rtol=1e-10, atol=1e-10), actual, expected
    )


@pytest.mark.parametrize("omega", SPECTRA)
@pytest.mark.parametrize("reparameterization", [DrawWeights(), LocalReparameterization()])
def test_the_bound_is_the_same_one_sample_at_a_time(reparameterization, omega, x64):
    assert_bounds_agree(reparameterization, omega=omega, feed_inputs=True)


@pytest.mark.parametrize("kernel", [name for name in KERNELS if name != "arccos0"])
def test_so_it_is_for_every_kernel(kernel, x64):
    assert_bounds_agree(DrawWeights(), kernel=kernel)


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("feed_inputs", [False, True])
def test_so_it_is_for_every_depth(depth, feed_inputs, x64):
    assert_bounds_agree(LocalReparameterization(), depth, feed_inputs=feed_inputs)
