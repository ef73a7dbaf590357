import functools

import jax
import jax.export
import numpy as np
import pytest

from bochner.exact.classes import ClassPart
from bochner.exact.encode_program import encoded
from bochner.exact.laws import Mixture
from bochner.exact.mixtures import Classification
from bochner.exact.program import class_program, in_double, regression_program
from bochner.exact.transforms import Standardized, YeoJohnson
from tests.exact.models import (
    CLASSES,
    KERNELS,
    REGRESSION,
    class_part,
    constant_part,
    density_part,
    encoding,
    frequencies,
    matrix,
    parameters,
    regression_part,
    training,
)

EXTENT = (0.5, 9.0)
CLOSE = {"rtol": 1e-8, "atol": 1e-11}


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_covariances_are_those_of_numpy(kernel):
    rows, _, rng = training()
    v, some = parameters(kernel, rows, rng), rows[:9]
    both = in_double(lambda: kernel.covariance(v, encoded(some), encoded(rows)))()
    np.testing.assert_allclose(both, kernel.covariance(v, some, rows), rtol=1e-11)
    own = in_double(lambda: kernel.diagonal(v, encoded(some)))()
    np.testing.assert_allclose(own, kernel.diagonal(v, some), rtol=1e-12)


def assert_mixtures_agree(parts, weights):
    X = matrix(30, seed=5)
    rows = encoding()(X)
    laws = [part.law(rows) for part in parts]
    mixture = Mixture(weights, laws, EXTENT)
    mean, deviation = in_double(regression_program(parts, weights, EXTENT, encoding()))(X)
    np.testing.assert_allclose(mean, mixture.mean, **CLOSE)
    np.testing.assert_allclose(deviation, np.sqrt(mixture.variance), **CLOSE)


@pytest.mark.parametrize("own", REGRESSION.values(), ids=REGRESSION)
def test_moments_are_those_of_numpy(own):
    assert_mixtures_agree([regression_part(*own)], np.ones(1))


def test_moments_of_a_density_are_those_of_numpy():
    X, part = matrix(30, seed=5), density_part()
    mean, deviation = in_double(regression_program([part], np.ones(1), EXTENT, encoding()))(X)
    expected, _, variance = part.law(encoding()(X)).moments()
    np.testing.assert_allclose(mean, expected, **CLOSE)
    np.testing.assert_allclose(deviation, np.sqrt(variance), **CLOSE)


def test_moments_of_a_mixture_are_those_of_numpy():
    parts = [regression_part(), regression_part("landmarks", varying=True), constant_part()]
    assert_mixtures_agree(parts, np.array([0.5, 0.3, 0.2]))


@pytest.mark.parametrize("power", [0.0, 0.6, 2.0])
def test_powers_at_their_limits_are_those_of_numpy(power):
    part = regression_part()
    object.__setattr__(
        part, "transform", YeoJohnson(Standardized(1.0, 2.0), power, Standardized(0.1, 0.9))
    )
    assert_mixtures_agree([part], np.ones(1))


def probabilities(parts, weights, X):
    return in_double(class_program(parts, weights, encoding()))(X)


@pytest.mark.parametrize("own", CLASSES.values(), ids=CLASSES)
def test_probabilities_are_those_of_numpy(own):
    X, part = matrix(30, seed=5), class_part(*own)
    expected = part.probabilities(encoding()(X))
    np.testing.assert_allclose(probabilities([part], np.ones(1), X), expected, **CLOSE)


def test_probabilities_of_a_mixture_are_those_of_numpy():
    parts: list[ClassPart] = [class_part(), class_part("landmarks"), frequencies()]
    weights, X = np.array([0.5, 0.0, 0.5]), matrix(30, seed=5)
    model = Classification(parts, weights, np.arange(0))
    expected = model.predict_proba(encoding()(X))
    np.testing.assert_allclose(probabilities(parts, weights, X), expected, **CLOSE)


@pytest.mark.parametrize("task", ["regression", "classes", "three classes"])
def test_programs_are_exported_for_any_number_of_rows_in_single_precision(task):
    part = regression_part("landmarks", "product", "log", True)
    program = regression_program([part], np.ones(1), EXTENT, encoding())
    if task != "regression":
        own = class_part("exact", 2 if task == "classes" else 3)
        program = class_program([own], np.ones(1), encoding())
    (batch,) = jax.export.symbolic_shape("batch")
    with jax.enable_x64(True):
        rows = jax.ShapeDtypeStruct((batch, 6), np.float32)
        written = jax.export.export(jax.jit(program), platforms=["cpu", "cuda"])(rows).serialize()
    again = jax.export.deserialize(written)
    for n in (1, 7):
        X = matrix(n, seed=5).astype(np.float32)
        expected = in_double(program)(X.astype(np.float64))
        found = functools.partial(again.call, X)()
        for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-10)


def test_precision_elsewhere_is_left_alone():
    in_double(regression_program([constant_part()], np.ones(1), EXTENT, encoding()))(matrix(3))
    assert not jax.config.jax_enable_x64
