import numpy as np
import pytest

from bochner.exact.columns import Columns
from bochner.exact.kernels import RBF, Category, Constant, Laplace, Linear
from bochner.exact.process import Process
from tests.exact.kernel_checks import check_kernel, parameters
from tests.exact.tables import mixed_columns, mixed_rows, rows_of_many_values

KERNELS = {
    "text": Category(3),
    "numbers": Category(2),
    "several": Category(2, 3),
    "missing values": Category(1),
    "own functions": Category(3) * Laplace(0) + Laplace(0) + Constant(),
    "own planes": (Category(3) + Constant()) * Linear(0, 1) * RBF(2),
}


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_it_holds_what_every_covariance_must(kernel):
    check_kernel(kernel, mixed_rows(40))


@pytest.mark.parametrize(
    "kernel",
    [Linear(), Linear(1), Laplace(), Category(1), RBF() + Linear(), Category(1) * Laplace(0)],
    ids=str,
)
def test_so_it_is_with_very_many_values(kernel):
    check_kernel(kernel, rows_of_many_values(40))


def test_a_plane_has_an_effect_of_each_of_many_values():
    rows = rows_of_many_values(60)
    effects = (rows.codes[:, :1] == np.unique(rows.codes[:, 0])).astype(float)
    assert effects.shape[1] == 30
    v = np.log([2.0, 3.0, 5.0])
    by_hand = 3.0 * effects @ effects.T + (rows.numbers * [2.0, 5.0, 5.0, 5.0]) @ rows.numbers.T
    np.testing.assert_allclose(Linear().covariance(v, rows, rows), by_hand, atol=1e-12)


@pytest.mark.parametrize("places", [(3,), (2,), (2, 3), (0,)], ids=str)
def test_it_is_the_variance_where_values_are_equal(places):
    columns = mixed_columns(60)
    rows = Columns.learn(columns)(columns)
    equal = np.all([columns[j][:, None] == columns[j][None] for j in places], axis=0)
    found = Category(*places).covariance(np.log([2.5]), rows, rows)
    np.testing.assert_allclose(found, np.where(equal, 2.5, 0.0), atol=1e-30)


def test_missing_values_are_equal_to_each_other_alone():
    x = np.array([1.0, np.nan, 2.0, np.nan, 1.5, 1.5, 1.0])
    rows = Columns.learn([x])([x])
    equal = (x[:, None] == x[None]) | (np.isnan(x)[:, None] & np.isnan(x)[None])
    found = Category(0).covariance(np.zeros(1), rows, rows)
    np.testing.assert_allclose(found, equal.astype(float), atol=1e-30)


def route_effects(n=120):
    rng = np.random.default_rng(0)
    route = rng.choice(["north", "south", "east"], n).astype(object)
    effect = {"north": 3.0, "south": -2.0, "east": -1.0}
    y = np.array([effect[one] for one in route]) + 0.1 * rng.normal(size=n)
    return Columns.learn([route]), route, y


def test_a_value_never_seen_is_as_uncertain_as_the_prior():
    columns, route, y = route_effects()
    v = np.log([4.0])
    process = Process.condition(Category(0), v, columns([route]), y, np.full(len(y), 0.01))
    new = np.array(["west", "north"], dtype=object)
    mean, variance = process.predict(columns([new]))
    np.testing.assert_allclose(mean[0], 0.0, atol=1e-12)
    np.testing.assert_allclose(variance[0], 4.0, rtol=1e-12)
    # Each value has the posterior of its own mean, by the formula for normal numbers.
    own = y[route == "north"]
    precision = 1 / 4.0 + len(own) / 0.01
    np.testing.assert_allclose(mean[1], np.sum(own) / 0.01 / precision, rtol=1e-6)
    np.testing.assert_allclose(variance[1], 1 / precision, rtol=1e-5)


def test_functions_of_categories_share_nothing():
    columns = mixed_columns(50)
    rows = Columns.learn(columns)(columns)
    kernel = Category(3) * RBF(0)
    v = parameters(kernel, rows)
    differ = columns[3][:, None] != columns[3][None]
    assert not np.any(kernel.covariance(v, rows, rows)[differ])


def test_it_needs_a_column():
    with pytest.raises(ValueError, match="needs the name of a column"):
        Category()
