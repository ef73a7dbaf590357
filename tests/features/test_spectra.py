import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bochner.features.frequencies import Orthogonal, Sparse
from bochner.features.spectra import SPECTRA, PriorFixed, VarFixed, VarResampled
from bochner.gp.layers import Layer, LayerSettings
from bochner.kernels import RBF, Matern
from tests.reference import gaussians

D_IN, N_RF = 3, 4
VARIATIONAL = [VarFixed, VarResampled]


def make(treatment, lengthscale=(0.5, 1.0, 2.0), seed=0):
    generator = np.random.default_rng(seed)
    epsilon = jnp.asarray(generator.normal(size=(D_IN, N_RF)), jnp.float32)
    scale = jnp.asarray(generator.uniform(0.5, 2.0, size=N_RF), jnp.float32)
    kernel = RBF(jnp.zeros(()), jnp.log(jnp.array(lengthscale)))
    return kernel, treatment.start(kernel, epsilon, scale), epsilon, scale


def with_lengthscale(kernel, lengthscale):
    return eqx.tree_at(lambda k: k.log_lengthscale, kernel, jnp.log(jnp.array(lengthscale)))


@pytest.mark.parametrize("treatment", SPECTRA.values())
def test_frequencies_start_as_scale_times_noise_over_lengthscale(treatment):
    kernel, spectrum, epsilon, scale = make(treatment)
    expected = np.asarray(scale) * np.asarray(epsilon) / np.array([[0.5], [1.0], [2.0]])
    np.testing.assert_allclose(spectrum.Omega(kernel, epsilon), expected, rtol=1e-5)


def test_prior_fixed_frequencies_follow_the_lengthscales():
    kernel, spectrum, _, _ = make(PriorFixed)
    doubled = with_lengthscale(kernel, [1.0, 1.0, 2.0])
    ratio = spectrum.Omega(kernel) / spectrum.Omega(doubled)
    np.testing.assert_allclose(ratio[:, 0], [2.0, 1.0, 1.0], rtol=1e-5)
    assert spectrum.kl(kernel) == 0.0


@pytest.mark.parametrize("treatment", VARIATIONAL)
def test_variational_frequencies_do_not_follow_the_lengthscales_but_their_divergence_does(
    treatment,
):
    kernel, spectrum, epsilon, _ = make(treatment)
    moved = with_lengthscale(kernel, [1.0, 3.0, 0.1])
    assert jnp.array_equal(spectrum.Omega(kernel, epsilon), spectrum.Omega(moved, epsilon))
    assert float(spectrum.kl(kernel)) == pytest.approx(0.0, abs=1e-5)
    q = spectrum.q_Omega
    prior = np.broadcast_to(np.array([[1.0], [1 / 9], [100.0]]), q.mean.shape)
    expected = gaussians.kl(np.asarray(q.mean), np.exp(q.log_var), prior)
    assert float(spectrum.kl(moved)) == pytest.approx(expected, rel=1e-4)


def test_gradients_of_the_frequencies_reach_what_each_treatment_learns():
    def names(treatment):
        kernel, spectrum, epsilon, _ = make(treatment)

        def total(kernel_and_spectrum):
            kernel, spectrum = kernel_and_spectrum
            return jnp.sum(spectrum.Omega(kernel, epsilon) ** 2)

        gradient = jax.grad(total)((kernel, spectrum))
        leaves, _ = jax.tree_util.tree_flatten_with_path(gradient)
        return {jax.tree_util.keystr(path) for path, leaf in leaves if jnp.any(leaf != 0)}

    q_Omega = {"[1].q_Omega.mean", "[1].q_Omega.log_var"}
    held = {"[1].scale"}  # has a gradient, but is not trained: see training/test_stages.py
    assert names(PriorFixed) == {"[0].log_lengthscale", "[1].epsilon"} | held
    assert names(VarFixed) == q_Omega | {"[1].epsilon"} | held
    assert names(VarResampled) == q_Omega | held


@pytest.mark.parametrize("treatment", VARIATIONAL)
def test_gradients_of_the_divergence_reach_q_and_the_lengthscales_only(treatment):
    kernel, spectrum, epsilon, _ = make(treatment)
    shifted = eqx.tree_at(lambda s: s.q_Omega.mean, spectrum, epsilon)
    gradient = jax.grad(lambda both: both[1].kl(both[0]))((kernel, shifted))
    assert jnp.any(gradient[0].log_lengthscale != 0)
    assert jnp.any(gradient[1].q_Omega.mean != 0)
    assert gradient[0].log_variance == 0
    assert jnp.all(gradient[1].scale == 0)


def test_var_fixed_ignores_fresh_noise_and_var_resampled_needs_it():
    for treatment in (PriorFixed, VarFixed):
        kernel, spectrum, epsilon, _ = make(treatment)
        assert spectrum.noise_shape is None
        assert jnp.array_equal(spectrum.Omega(kernel), spectrum.Omega(kernel, 2 * epsilon))
    kernel, spectrum, epsilon, _ = make(VarResampled)
    assert spectrum.noise_shape == (D_IN, N_RF)
    assert not jnp.array_equal(spectrum.Omega(kernel, epsilon), spectrum.Omega(kernel, 2 * epsilon))
    with pytest.raises(ValueError, match="VarResampled needs fresh noise"):
        spectrum.Omega(kernel)


def test_one_lengthscale_for_all_inputs_gives_the_prior_of_equal_ones():
    epsilon, scale = jnp.ones((D_IN, N_RF)), jnp.ones(N_RF)
    for treatment in SPECTRA.values():
        shared = RBF(jnp.zeros(()), jnp.log(0.4))
        each = RBF(jnp.zeros(()), jnp.log(jnp.full(D_IN, 0.4)))
        first = treatment.start(shared, epsilon, scale).Omega(shared, epsilon)
        assert jnp.array_equal(first, treatment.start(each, epsilon, scale).Omega(each, epsilon))


@pytest.mark.parametrize("frequencies", [Orthogonal(), Sparse()])
def test_frequencies_that_depend_on_each_other_are_refused_with_var_resampled(frequencies, key):
    settings = LayerSettings(1, omega=VarResampled, frequencies=frequencies)
    with pytest.raises(ValueError, match="independent frequencies"):
        Layer.start(settings, d_in=2, key=key)


@pytest.mark.parametrize("treatment", SPECTRA.values())
def test_matern_scales_multiply_whole_frequencies(treatment, key):
    layer = Layer.start(
        LayerSettings(1, n_rf=N_RF, kernel=Matern, omega=treatment), d_in=3, key=key
    )
    noise = jax.random.normal(key, (D_IN, N_RF))
    factors = jnp.array([1.0, 2.0, 3.0, 4.0])
    scaled = eqx.tree_at(
        lambda s: s.scale, layer.features.spectrum, factors * layer.features.spectrum.scale
    )
    assert len(np.unique(layer.features.spectrum.scale)) == N_RF
    ratio = scaled.Omega(layer.features.kernel, noise) / layer.features.spectrum.Omega(
        layer.features.kernel, noise
    )
    np.testing.assert_allclose(ratio, np.tile(factors, (D_IN, 1)), rtol=1e-5)
