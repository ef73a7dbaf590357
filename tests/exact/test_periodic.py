import numpy as np
import pyarrow as pa
import pytest

from bochner import DeepGPRegressor, Exact
from bochner.exact import Regression
from bochner.exact.columns import Columns, bent, unbent
from bochner.exact.kernels import RBF, Category, Constant, Inputs, Laplace, Periodic
from tests.exact.kernel_checks import check_kernel
from tests.exact.tables import mixed_rows

YEAR = 365.25
INPUTS = Inputs(((0,),), ("day",))
KERNELS = {
    "given": Periodic(0, period=0.7),
    "learned": Periodic(0, near=1.3),
    "of a column with missing values": Periodic(1, period=2.0),
    "slowly changing": Periodic(0, near=0.9) * RBF(0) + Constant(),
    "of each category": Category(3) * Periodic(0, period=0.4) + Laplace(),
}


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_it_holds_what_every_covariance_must(kernel):
    check_kernel(kernel, mixed_rows(40))


def days(n=60):
    return np.random.default_rng(0).uniform(0, 5 * YEAR, n)


def mackay(x, period, variance, lengthscale):
    d = x[:, None] - x[None]
    return variance * np.exp(-2 * np.sin(np.pi * d / period) ** 2 / lengthscale**2)


def test_it_is_that_of_mackay_on_the_raw_column():
    x = days()
    columns = Columns.learn([x])
    kernel = Periodic("day", period=YEAR).resolved(INPUTS, columns)
    found = kernel.covariance(np.log([2.0, 0.7]), columns([x]), columns([x]))
    np.testing.assert_allclose(found, mackay(x, YEAR, 2.0, 0.7), rtol=1e-9)


def test_a_learned_period_moves_by_its_parameter():
    x = days()
    columns = Columns.learn([x])
    kernel = Periodic("day", near=350.0).resolved(INPUTS, columns)
    v = np.array([0.0, 0.0, np.log(YEAR / 350) / 0.05])
    found = kernel.covariance(v, columns([x]), columns([x]))
    np.testing.assert_allclose(found, mackay(x, YEAR, 1.0, 1.0), rtol=1e-9)


def test_values_far_out_keep_their_phase():
    x = np.append(days(200), [400 * YEAR, 401 * YEAR, -30 * YEAR])
    columns = Columns.learn([x[:200]])
    kernel = Periodic("day", period=YEAR).resolved(INPUTS, columns)
    rows = columns([x])
    found = kernel.covariance(np.log([2.0, 0.7]), rows, rows)
    np.testing.assert_allclose(found, mackay(x, YEAR, 2.0, 0.7), rtol=1e-6)


@pytest.mark.parametrize("value", [0.0, -3.0, 5.0, -5.5, 40.0, -1e6, 1e150])
def test_unbent_numbers_are_those_before(value):
    found = unbent(bent(np.array([value])))
    np.testing.assert_allclose(found, [value], rtol=1e-12)


def test_wild_numbers_stay_finite():
    x = np.append(days(200), [1e300, -1e300, np.inf, np.nan])
    columns = Columns.learn([x[:200]])
    rows = columns([x])
    kernel = Periodic("day", period=1e-3).resolved(INPUTS, columns)
    K, pull_back = kernel.with_pull_back(np.zeros(2), rows)
    assert np.isfinite(K).all()
    assert np.isfinite(pull_back(np.ones_like(K))).all()


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Periodic(period=7), "takes one column"),
        (lambda: Periodic(0, 1, period=7), "takes one column"),
        (lambda: Periodic(0), "either `period` or `near`"),
        (lambda: Periodic(0, period=7, near=7), "either `period` or `near`"),
        (lambda: Periodic(0, period=0), "a number above 0"),
        (lambda: Periodic(0, near=float("nan")), "a number above 0"),
        (lambda: Periodic(0, near=float("inf")), "a number above 0"),
    ],
)
def test_what_it_cannot_be_is_refused(make, said):
    with pytest.raises(ValueError, match=said):
        make()


@pytest.mark.parametrize("column", [["a", "b"] * 5, [3.0] * 10], ids=["text", "constant"])
def test_it_needs_a_column_of_numbers_that_vary(column):
    columns = Columns.learn([np.array(column, dtype=object if column[0] == "a" else float)])
    with pytest.raises(ValueError, match="needs a column of numbers that are not all the same"):
        Periodic("day", period=7).resolved(INPUTS, columns)


def seasonal(day):
    return 10 + 3 * np.sin(2 * np.pi * day / YEAR) + np.cos(4 * np.pi * day / YEAR)


@pytest.mark.parametrize("kernel", [Periodic(0, period=YEAR), Periodic(0, near=350)], ids=str)
def test_a_series_of_five_years_goes_on_for_another(kernel):
    rng = np.random.default_rng(0)
    day = np.sort(rng.choice(1826, 900, replace=False)).astype(float)
    columns = Columns.learn([day])
    sum_ = (kernel + Constant()).resolved(Inputs(((0,),)), columns)
    y = seasonal(day) + 0.5 * rng.normal(size=900)
    options = {"transforms": ["as it is"], "varying_noise": False}
    model = Regression.fit(columns([day]), y, kernel=sum_, **options)
    new = np.arange(1826.0, 2191.0)
    law = model.predict(columns([new]))
    assert np.abs(law.mean - seasonal(new)).max() < 0.3
    low, high = law.quantiles([0.05, 0.95]).T
    target = seasonal(new) + 0.5 * rng.normal(size=len(new))
    assert 0.84 < np.mean((low < target) & (target < high)) < 0.96
    assert np.mean(high - low) < 1.3 * 2 * 1.645 * 0.5
    if kernel.near:
        process = model.parts[-1].process
        assert 350 * np.exp(0.05 * process.v[2]) == pytest.approx(YEAR, rel=0.003)


def test_a_date_is_in_days():
    rng = np.random.default_rng(0)
    day = rng.choice(1000, 120, replace=False)
    table = pa.table({"when": pa.array(day, pa.int32()).cast(pa.date32()), "y": seasonal(day)})
    kernel = "periodic(when, period=365.25) + constant"
    model = DeepGPRegressor(Exact(kernel=kernel), likelihood="gaussian", random_state=0)
    model.fit(table, "y")
    later = np.arange(1200, 1500, 20)
    new = pa.table({"when": pa.array(later, pa.int32()).cast(pa.date32())})
    np.testing.assert_allclose(model.predict(new), seasonal(later), atol=0.2)
