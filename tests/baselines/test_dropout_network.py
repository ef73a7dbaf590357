import jax
import numpy as np
import pytest

from experiments.baselines import regressor
from experiments.baselines.dropout_network import DropoutRegressor, matched_units


@pytest.mark.parametrize(
    ("d_in", "d_out", "n_hidden"), [(4, 1, 1), (57, 2, 1), (9, 1, 2), (14, 2, 3)]
)
def test_networks_have_as_many_weights_as_the_deep_gp(d_in, d_out, n_hidden):
    units = matched_units(d_in, d_out, n_hidden)
    n_weights = d_in * units + (n_hidden - 1) * units**2 + units * d_out
    wanted = 200 * (3 * n_hidden + d_out)
    per_unit = d_in + d_out + 2 * (n_hidden - 1) * units
    assert abs(n_weights - wanted) <= per_unit


def test_dropout_keeps_the_mean_of_hidden_units():
    network = DropoutRegressor(units=4, dropout=0.5)
    parameters = network.start(3, 1, seed=0)
    X = np.random.default_rng(0).normal(size=(1, 3)).astype(np.float32)
    keys = jax.random.split(jax.random.key(1), 20_000)
    passes = jax.vmap(lambda key: network.forward(parameters, X, key))(keys)
    plain = network.forward(parameters, X, None)
    error = np.std(np.asarray(passes)) / np.sqrt(20_000)
    assert abs(float(passes.mean() - plain[0, 0])) < 4 * error


def test_one_pass_is_one_gaussian_and_many_passes_are_a_mixture():
    generator = np.random.default_rng(0)
    X = generator.normal(size=(100, 2))
    y = X[:, 0] + 0.1 * generator.normal(size=100)
    settings = {"n_steps": 200, "units": 20, "batch_size": 100}
    one = regressor("dnn", **settings).fit(X, y, seed=0)(X)
    many = regressor("mc-dropout", **settings).fit(X, y, seed=0)(X)
    assert one.means.shape == (1, 100)
    assert many.means.shape == (100, 100)
    assert np.all(many.variance > one.variance)
