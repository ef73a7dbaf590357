"""Functions drawn from the posterior of an estimator."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.deep_alone import deep_regressor
from tests.estimators import problems
from tests.estimators.problems import SMALL

X, Y = problems.numbers()


def test_a_drawn_function_is_the_same_wherever_it_is_evaluated(regressor):
    f, other = regressor.sample_functions(2)
    values = f(X)
    for rows in (slice(0, 1), slice(10, 33), slice(None, None, -1)):
        np.testing.assert_allclose(f(X[rows]), values[rows], rtol=1e-5)
    assert np.all(values != other(X))


def test_the_seed_decides_which_functions_are_drawn(regressor):
    first, again = regressor.sample_functions(1)[0], regressor.sample_functions(1)[0]
    np.testing.assert_array_equal(first(X), again(X))
    seeded = regressor.sample_functions(1, random_state=3)[0]
    assert np.all(first(X) != seeded(X))


def test_functions_are_those_whose_mean_and_variance_are_predicted(regressor):
    n = 200
    values = np.stack([f(X[:20]) for f in regressor.sample_functions(n)])
    mean = regressor.predict(X[:20])
    epistemic, _ = regressor.predict_variance(X[:20])
    # Predictions are means over 50 functions of their own.
    z = (values.mean(axis=0) - mean) / np.sqrt(epistemic * (1 / n + 1 / 50))
    assert np.abs(z).max() < 4.5
    assert abs(np.mean(z)) < 3
    ratio = values.var(axis=0) / epistemic
    assert 0.5 < np.median(ratio) < 2


def test_drawn_probabilities_sum_to_one_and_average_to_the_prediction(classifier):
    x = problems.classes()[0][:20]
    values = np.stack([f(x) for f in classifier.sample_functions(100)])
    np.testing.assert_allclose(values.sum(axis=2), 1.0, rtol=1e-5)
    assert np.abs(values.mean(axis=0) - classifier.predict_proba(x)).max() < 0.2


def test_the_gradient_is_that_of_finite_differences_in_raw_inputs(regressor):
    f = regressor.sample_functions(1)[0]
    for x, size in [(X[5], 0.05), (regressor.fitted_.deep.input_scaling.center, 0.05)]:
        gradient = jax.grad(lambda v: f(v[None, :])[0])(jnp.asarray(x, jnp.float32))
        scale = regressor.fitted_.deep.input_scaling.scale
        for j in range(3):
            step = np.zeros(3)
            step[j] = size * scale[j]
            high, low = f((x + step)[None]), f((x - step)[None])
            slope = float((high - low)[0]) / (2 * size)
            assert float(gradient[j]) * scale[j] == pytest.approx(slope, rel=0.03, abs=0.05)


def test_arrays_of_jax_and_numpy_give_their_own_kind(regressor):
    f = regressor.sample_functions(1)[0]
    assert isinstance(f(X), np.ndarray)
    assert isinstance(f(X.tolist()), np.ndarray)
    traced = f(jnp.asarray(X, jnp.float32))
    assert isinstance(traced, jax.Array)
    np.testing.assert_allclose(traced, f(X), rtol=1e-3)
    compiled = jax.jit(lambda x: f(x))(jnp.asarray(X, jnp.float32))
    np.testing.assert_allclose(compiled, traced, rtol=1e-3)


def test_a_drawn_function_can_be_compiled_as_an_argument(regressor):
    f = regressor.sample_functions(1)[0]
    x = jnp.asarray(X, jnp.float32)
    compiled = eqx.filter_jit(lambda function, x: function(x))(f, x)
    np.testing.assert_allclose(compiled, f(x), rtol=1e-3)


def test_fitting_again_does_not_change_functions_drawn_before():
    model = deep_regressor(**SMALL | {"max_steps": 20}).fit(X, Y)
    f = model.sample_functions(1)[0]
    before = f(X)
    model.fit(X, 1000 * Y)
    np.testing.assert_array_equal(f(X), before)


def test_a_vector_is_refused_with_what_was_expected(regressor):
    with pytest.raises(ValueError, match=r"takes a matrix, one row a point; got shape \(3,\)"):
        regressor.sample_functions(1)[0](X[0])
    with pytest.raises(ValueError, match="`n` must be a whole number of at least 1; got 0"):
        regressor.sample_functions(0)
