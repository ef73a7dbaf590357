import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bochner.features.spectra import SPECTRA
from bochner.gp.layers import Layer, LayerSettings
from bochner.gp.reparameterization import DrawWeights
from bochner.inference.conditioning import condition_last_layer
from bochner.kernels import RBF
from bochner.posteriors.hyperparameters import THETAS, FreeTheta, PriorTheta, VariationalTheta
from bochner.rows.table import Table
from bochner.training import Stage, trainable
from tests import examples


def kernel(log_variance=0.3, log_lengthscale=(0.1, -0.4)):
    return RBF(jnp.asarray(log_variance), jnp.asarray(log_lengthscale))


def test_a_prior_costs_half_the_squared_deviations(x64):
    theta = PriorTheta.start(kernel(), deviation=0.5)
    moved = kernel(0.3 + 0.5, (0.1 - 1.0, -0.4))
    assert float(theta.kl(moved)) == pytest.approx(0.5 * (1.0 + 4.0))
    assert float(FreeTheta.start(kernel(), 0.5).kl(moved)) == 0.0


def test_the_kl_of_a_variational_theta_is_that_between_gaussians(x64):
    theta = VariationalTheta.start(kernel(), deviation=0.7)
    theta = eqx.tree_at(lambda t: t.log_var, theta, kernel(-1.0, (-2.0, 0.5)))
    moved = kernel(0.5, (0.0, 0.0))
    shifts, log_vars = np.array([0.2, -0.1, 0.4]), np.array([-1.0, -2.0, 0.5])
    ratio = np.exp(log_vars) / 0.49
    expected = 0.5 * np.sum(ratio - np.log(ratio) - 1 + shifts**2 / 0.49)
    assert float(theta.kl(moved)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("omega", ["var-fixed", "var-resampled"])
def test_the_kl_of_omega_is_its_mean_over_theta(omega, x64):
    setting = LayerSettings(1, n_rf=4, omega=SPECTRA[omega], theta=VariationalTheta)
    layer = examples.shaken(Layer.start(setting, d_in=2, key=jax.random.key(0)))
    log_var = jnp.log(jnp.array([0.04, 0.2]))
    layer = eqx.tree_at(lambda layer: layer.features.theta.log_var.log_lengthscale, layer, log_var)
    noise = jax.random.normal(jax.random.key(1), (200_000, 2))
    kernel, spectrum, theta = layer.features.kernel, layer.features.spectrum, layer.features.theta
    drawn = kernel.log_lengthscale[None] + jnp.sqrt(jnp.array([[0.04, 0.2]])) * noise

    def at(log_lengthscale):
        return spectrum.kl(RBF(kernel.log_variance, log_lengthscale))

    sampled = jnp.mean(jax.vmap(at)(drawn))
    exact = spectrum.kl(kernel, theta.spread(kernel))
    assert float(exact) == pytest.approx(float(sampled), rel=0.01)
    assert float(exact) > float(spectrum.kl(kernel))
    assert float(layer.features.kl()) == pytest.approx(float(exact + theta.kl(kernel)))


@pytest.mark.parametrize("n_layers", [1, 4])  # four layers hold a stack
def test_each_draw_has_its_own_theta(n_layers):
    model = examples.deep_gp(n_layers, theta=VariationalTheta, omega="prior-fixed")
    X, noise = examples.inputs(), model.draw_noise(key=jax.random.key(0))
    other = jax.tree.map(lambda leaf: leaf, noise)
    features = jax.tree.map(lambda leaf: leaf + 1.0, other[0].features)
    other = (other[0]._replace(features=features), *other[1:])
    assert not np.allclose(model(X, noise, DrawWeights()), model(X, other, DrawWeights()))


def test_a_conditioned_model_holds_its_draw_of_theta():
    model = examples.deep_gp(2, theta=VariationalTheta, omega="prior-fixed")
    X = np.asarray(examples.inputs(10))
    table = Table.of(X, np.sin(X[:, :1]))
    member = condition_last_layer(model, table, n_draws=2, key=jax.random.key(0)).each()[0]
    noises = [member.draw_noise(key=jax.random.key(seed)) for seed in (1, 2)]
    assert all(part.features.theta is None for part in noises[0])
    values = [member.inputs_of_last(table.X, noise, DrawWeights())[0] for noise in noises]
    np.testing.assert_array_equal(*values)
    assert float(member.blocks[0].kl()) == pytest.approx(float(model.blocks[0].kl()), rel=1e-5)


@pytest.mark.parametrize("name", sorted(THETAS))
def test_only_variances_of_q_join_the_learned_arrays(name):
    model = examples.deep_gp(2, theta=THETAS[name])
    marks = trainable(model, Stage(theta=True, omega=False, n_mc=1)).blocks[0].features.theta
    named = jax.tree_util.tree_leaves_with_path(marks)
    learned = [jax.tree_util.keystr(path) for path, mark in named if mark]
    expected = [".log_var.log_variance", ".log_var.log_lengthscale"]
    assert sorted(learned) == sorted(expected if name == "variational" else [])
    held = trainable(model, Stage(theta=False, omega=True, n_mc=1)).blocks[0].features.theta
    assert not any(jax.tree.leaves(held))


def test_residual_layers_add_their_inputs(x64):
    setting = LayerSettings(2, residual=True)
    layer = examples.shaken(Layer.start(setting, d_in=2, key=jax.random.key(0)))
    without = eqx.tree_at(lambda layer: layer.q_W.mean, layer, jnp.zeros_like(layer.q_W.mean))
    noise = jax.tree.map(lambda shape: jnp.zeros(shape.shape), without.noise_shapes(DrawWeights(), 0))  # fmt: skip
    X = examples.inputs()
    np.testing.assert_allclose(without((X,), noise, DrawWeights()), X, atol=1e-12)


def test_a_residual_layer_needs_as_many_inputs_as_outputs():
    with pytest.raises(ValueError, match="adds its 2 inputs to its 3 outputs"):
        examples.deep_gp(2, residual=True)
