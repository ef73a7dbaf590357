import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.datasets import load_digits

from bochner.rows.scaling import (
    BY_COLUMN,
    PREPROCESSINGS,
    TargetScaling,
    compressed,
    like_pixels,
    none,
    robust,
    rounding_alone,
    standard,
    unit,
)

finite = st.floats(-1e9, 1e9, allow_subnormal=False)


def column(n=1000, seed=0):
    return np.random.default_rng(seed).normal(3.0, 2.0, size=(n, 1))


@pytest.mark.parametrize("name", PREPROCESSINGS)
@settings(max_examples=50, deadline=None)
@given(X=arrays(np.float64, (7, 2), elements=finite))
def test_every_scaling_gives_finite_numbers_in_their_order(name, X):
    scaling = PREPROCESSINGS[name](X)
    scaled = scaling(X)
    assert np.all(np.isfinite(scaled))
    assert scaling.n_clipped(X) == 0
    order = np.argsort(X, axis=0, kind="stable")
    assert np.all(np.diff(np.take_along_axis(scaled, order, axis=0), axis=0) >= 0)


def test_robust_scaling_standardizes_gaussian_columns():
    scaled = robust(column(20_000))(column(20_000))
    assert abs(np.median(scaled)) < 1e-12
    assert np.std(scaled) == pytest.approx(1.0, abs=0.03)


def test_a_glitch_moves_the_other_values_by_no_more_than_a_rank():
    clean, dirty = column(), column()
    dirty[17] = 1e5
    rest = np.arange(len(clean)) != 17
    before, after = robust(clean)(clean), robust(dirty)(dirty)
    assert np.abs(after - before)[rest].max() < 0.05
    assert 5 < after[17, 0] < 20


def test_a_glitch_spoils_plain_standardization():
    dirty = column()
    dirty[17] = 1e5
    assert np.ptp(standard(dirty)(dirty)[:17]) < 0.01


@pytest.mark.parametrize("name", ["robust", "standard"])
@pytest.mark.parametrize("value", [0.0, 7.0, -1e8])
def test_a_constant_column_is_only_centered(name, value):
    scaling = PREPROCESSINGS[name](np.full((10, 1), value))
    assert scaling.scale.tolist() == [1.0]
    assert scaling(np.full((3, 1), value)).tolist() == [[0.0]] * 3


@pytest.mark.parametrize("name", BY_COLUMN)
@pytest.mark.parametrize("factor", [1e-290, 1e-15, 1e15, 1e290])
def test_units_do_not_matter_however_small_or_large(name, factor):
    X = np.hstack([column(50), np.full((50, 1), 2.0), (np.arange(50) < 3)[:, None] * 1.0])
    X[7, 0] = 1e4
    scaled = PREPROCESSINGS[name](X)(X)
    found = PREPROCESSINGS[name](factor * X)(factor * X)
    np.testing.assert_allclose(found, scaled, rtol=1e-9, atol=1e-12)
    assert not rounding_alone(factor * X).any()


@pytest.mark.parametrize("name", BY_COLUMN)
def test_tiny_numbers_vary_and_large_ones_with_rounding_do_not(name):
    steps = np.arange(30) % 3
    noise = np.random.default_rng(0).integers(-4, 5, size=30)
    X = np.stack(
        [1e-15 * (1 + steps), 1e9 + noise * np.spacing(1e9), 1e20 + noise * np.spacing(1e20)],
        axis=1,
    )
    assert rounding_alone(X).tolist() == [False, True, True]
    scaled = PREPROCESSINGS[name](X)(X)
    assert np.std(scaled[:, 0]) > 0.3
    assert np.abs(scaled[:, 1:]).max() < 1e-5


def test_a_tiny_target_varies_and_rounding_of_a_large_one_keeps_its_unit():
    noise = np.random.default_rng(0).integers(-4, 5, size=30)
    Y = np.stack([1e-15 * noise, 1e9 + noise * np.spacing(1e9)], axis=1)
    scaling = TargetScaling.standard(Y)
    assert scaling(Y)[:, 0].std(ddof=1) == pytest.approx(1.0)
    assert scaling.scale[1] == 1.0
    assert scaling.log_jacobian == pytest.approx(np.log(Y[:, 0].std(ddof=1)))


def test_zeros_with_rounding_count_as_mostly_one_value():
    X = np.random.default_rng(0).normal(size=(100, 1))
    X[:60] *= 1e-17
    assert np.abs(robust(X)(X)).max() < 10


@pytest.mark.parametrize("n", [20, 1000])
def test_a_glitch_of_any_size_leaves_the_scale_to_the_rest(n):
    clean, dirty = column(n), column(n)
    dirty[3] = 1e30
    assert robust(dirty).scale[0] == pytest.approx(robust(clean).scale[0], rel=0.2)


def test_a_column_that_is_mostly_one_value_keeps_its_other_values_apart():
    X = np.zeros((100, 1))
    X[:10] = 1.0
    scaled = robust(X)(X)
    assert scaled[0, 0] - scaled[-1, 0] > 1
    rare = np.zeros((1000, 1))
    rare[0] = 1.0
    assert robust(rare)(rare)[0, 0] > 1


def test_robust_scaling_clips_and_counts_rows_beyond_all_that_was_seen():
    scaling = robust(column())
    X = np.array([[3.0], [1e3], [-1e6], [4.0]])
    assert scaling.n_clipped(X) == 2
    scaled = scaling(X)
    assert scaled[1, 0] == scaling.limit[0]
    assert scaled[2, 0] == -scaling.limit[0]


def test_values_as_wild_as_those_seen_are_not_clipped():
    X = column()
    X[3] = 1e5
    assert robust(X).n_clipped(np.array([[9e4], [-9e4], [2e5]])) == 0
    assert robust(X).n_clipped(np.array([[2e6]])) == 1


def test_rows_with_several_wild_values_count_once():
    scaling = robust(np.hstack([column(seed=0), column(seed=1)]))
    assert scaling.n_clipped(np.full((3, 2), 1e9)) == 3


def test_precision_is_lost_nowhere_before_the_cast():
    # Seconds since 1970: in float32 neighbors a second apart are the same number.
    X = 1.7e9 + np.arange(100.0)[:, None]
    for learn in (robust, standard):
        assert len(np.unique(learn(X)(X).astype(np.float32))) == 100


@pytest.mark.parametrize("learn", [robust, standard, unit, none])
def test_jax_and_numpy_inputs_are_scaled_alike(learn):
    X = column(50)
    X[0] = 1e4
    scaling = learn(X)
    actual = scaling(jnp.asarray(X, jnp.float32))
    assert isinstance(actual, jax.Array)
    np.testing.assert_allclose(actual, scaling(X), rtol=1e-5, atol=1e-5)


def test_the_derivative_is_one_inside_falls_in_the_tails_and_ends_at_the_limit():
    scaling = robust(column(101))
    scale, center = scaling.scale[0], scaling.center[0]

    def scaled(x):
        return scaling(x[None, None])[0, 0]

    for z, factor in [(0.0, 1.0), (-2.0, 1.0), (4.9, 1.0), (7.0, 1 / 3), (100.0, 0.0)]:
        x = jnp.asarray(center + z * scale, jnp.float32)
        assert float(jax.grad(scaled)(x)) == pytest.approx(factor / scale, rel=1e-4)


def test_standard_scaling_uses_the_sample_deviation():
    X = column(30)
    np.testing.assert_allclose(standard(X)(X), (X - X.mean()) / X.std(ddof=1))
    assert standard(X[:1]).scale.tolist() == [1.0]


def test_compressed_scaling_takes_logarithms_on_both_sides_of_the_median():
    X = np.array([-8.0, -1.0, 0.0, 0.0, 1.0, 3.0, 20.0])[:, None]
    scaling = compressed(X)
    np.testing.assert_array_equal(scaling.center, robust(X).center)
    np.testing.assert_array_equal(scaling.scale, robust(X).scale)
    z = X / scaling.scale
    np.testing.assert_allclose(scaling(X), np.sign(z) * np.log1p(np.abs(z)), rtol=1e-12)
    assert scaling.n_clipped(X) == 0
    assert scaling.n_clipped(7 * X) == 0
    assert scaling.n_clipped(10 * X) == 1


def test_compressed_scaling_leaves_columns_without_long_tails_as_robust_scaling_does():
    long, short = np.append(np.linspace(-1, 1, 99), 50.0), np.linspace(-1, 1, 100)
    X = np.stack([long, short], axis=1)
    np.testing.assert_array_equal(compressed(X)(X)[:, 1], robust(X)(X)[:, 1])
    assert np.abs(compressed(X)(X)[:, 0]).max() < 0.9 * np.abs(robust(X)(X)[:, 0]).max()


def test_unit_scaling_divides_all_pixels_by_the_same_number():
    X = np.array([[0.0, 10.0], [255.0, 20.0]])
    np.testing.assert_array_equal(unit(X)(X), X / 255)
    assert unit(np.zeros((2, 2))).scale.tolist() == [1.0, 1.0]


def test_digits_are_like_pixels_and_a_wild_value_or_a_scale_of_its_own_makes_a_table():
    X = load_digits().data
    assert like_pixels(X)
    assert not like_pixels(X[:, :30])
    assert not like_pixels(X - 8)
    assert not like_pixels(np.where(np.arange(X.size).reshape(X.shape) == 5_000, 1e5, X))
    assert not like_pixels(X * np.geomspace(1, 100, X.shape[1]))
    assert not like_pixels(np.zeros_like(X))


def test_targets_come_back_in_their_own_units():
    Y = np.random.default_rng(0).normal([5.0, -1e4], [0.1, 300.0], size=(50, 2))
    scaling = TargetScaling.standard(Y)
    np.testing.assert_allclose(scaling.inverse(scaling(Y)), Y, rtol=1e-12)
    np.testing.assert_allclose(scaling(Y).std(axis=0, ddof=1), 1.0)
    assert scaling.log_jacobian == pytest.approx(np.log(Y.std(axis=0, ddof=1)).sum())
    assert TargetScaling.none(2).log_jacobian == 0.0
