import numpy as np
import pytest

from bochner.exact.columns import Columns
from bochner.exact.folds import folds_of_groups
from bochner.exact.laws import log_density
from bochner.exact.parts import TABLE_KERNEL
from bochner.exact.regression import Regression
from bochner.exact.varying_noise import learn_noise, left_out_by_folds
from tests.exact.tables import mixed_columns


def constant_score(y, new):
    deviation = np.std(y)
    return float(np.mean(log_density((new - np.mean(y)) / deviation, np.inf))) - np.log(deviation)


def test_functions_smooth_and_rough_are_learned_with_their_noise():
    rng = np.random.default_rng(100)
    columns = mixed_columns(260)
    y = (
        np.sin(2 * columns[0])
        + (columns[2] > 1)
        + (columns[3] == "red")
        + 0.1 * rng.normal(size=260)
    )
    train, test = [c[:200] for c in columns], [c[200:] for c in columns]
    encoding = Columns.learn(train)
    model = Regression.fit(encoding(train), y[:200])
    law = model.predict(encoding(test))
    assert np.sqrt(np.mean((law.mean - y[200:]) ** 2)) < 0.2
    low, high = law.quantiles([0.05, 0.95]).T
    assert 0.75 < np.mean((low < y[200:]) & (y[200:] < high)) < 1
    assert abs(model.left_out().mean() - law.log_density(y[200:]).mean()) < 0.35


def test_columns_of_noise_say_no_more_than_a_constant():
    rng = np.random.default_rng(100)
    columns, y = list(rng.normal(size=(50, 420))), rng.normal(size=420)
    train, test = [c[:120] for c in columns], [c[120:] for c in columns]
    encoding = Columns.learn(train)
    model = Regression.fit(encoding(train), y[:120], transforms=["as it is"])
    score = model.predict(encoding(test)).log_density(y[120:]).mean()
    assert score > constant_score(y[:120], y[120:]) - 0.05


def test_noise_that_varies_is_found():
    rng = np.random.default_rng(100)
    x = rng.uniform(-2, 2, 400)
    y = x + np.exp(x) * 0.3 * rng.normal(size=400)
    encoding = Columns.learn([x[:300]])
    model = Regression.fit(encoding([x[:300]]), y[:300], transforms=["as it is"])
    law = model.predict(encoding([np.array([-1.5, 1.5])]))
    assert law.variance[1] > 20 * law.variance[0]
    plain = Regression.fit(
        encoding([x[:300]]), y[:300], transforms=["as it is"], varying_noise=False
    )
    new = encoding([x[300:]])
    gain = model.predict(new).log_density(y[300:]) - plain.predict(new).log_density(y[300:])
    assert gain.mean() > 0.1


def test_varying_noise_is_judged_by_folds_it_has_not_seen():
    """The targets of a fold change nothing of what is said about them."""
    rng = np.random.default_rng(100)
    columns, t = mixed_columns(60), rng.normal(size=60)
    rows = Columns.learn(columns)(columns)
    groups = np.arange(60)
    folds = folds_of_groups(groups, 4, seed=0)
    v = np.append(np.log(0.5), TABLE_KERNEL.start(rows.layout, 0.5).values)
    model, _ = learn_noise(rows, t, groups)
    K = TABLE_KERNEL.covariance(v[1:], rows, rows)

    def judge(t):
        return left_out_by_folds(
            TABLE_KERNEL, v, model.process_parameters, rows, t, folds, groups, (K, 0.5)
        )

    mean, variance = judge(t)
    other_mean, other_variance = judge(np.where(folds == 2, t + 100, t))
    np.testing.assert_array_equal(mean[folds == 2], other_mean[folds == 2])
    np.testing.assert_array_equal(variance[folds == 2], other_variance[folds == 2])
    assert not np.allclose(mean[folds != 2], other_mean[folds != 2])


def test_the_same_seed_gives_the_same_model():
    columns, y = mixed_columns(80), np.random.default_rng(101).normal(size=80)
    rows = Columns.learn(columns)(columns)
    one, other = (Regression.fit(rows, y, seed=3).predict(rows).mean for _ in range(2))
    np.testing.assert_array_equal(one, other)


TABLES = {
    "one row": lambda rng: ([rng.normal(size=1)], np.ones(1)),
    "two rows": lambda rng: ([rng.normal(size=2)], np.array([1.0, 2.0])),
    "three rows": lambda rng: ([rng.normal(size=3)], np.array([1.0, 2.0, 4.0])),
    "no column that varies": lambda rng: ([np.ones(20)], rng.normal(size=20)),
    "constant target": lambda rng: ([rng.normal(size=20)], np.full(20, 7.0)),
    "two values": lambda rng: ([rng.normal(size=40)], rng.integers(0, 2, 40).astype(float)),
    "collinear": lambda rng: ([np.arange(40.0)] * 5, np.arange(40.0)),
    "duplicates": lambda rng: ([np.repeat(np.arange(4.0), 20)], np.repeat(rng.normal(size=4), 20)),
    "duplicates that differ": lambda rng: ([np.repeat(np.arange(4.0), 20)], rng.normal(size=80)),
    "one input for all": lambda rng: ([np.append(np.ones(79), 2.0)], rng.normal(size=80)),
    "300 columns": lambda rng: (list(rng.normal(size=(300, 62))), rng.normal(size=62)),
    "huge": lambda rng: ([1e300 * rng.normal(size=30)], 1e100 * rng.normal(size=30)),
    "tiny": lambda rng: ([1e-300 * rng.normal(size=30)], 1e-100 * rng.normal(size=30)),
    "outlier": lambda rng: ([rng.normal(size=70)], np.append(rng.normal(size=69), 1e6)),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("make", TABLES.values(), ids=TABLES)
def test_no_table_makes_it_fail(make):
    columns, y = make(np.random.default_rng(100))
    encoding = Columns.learn(columns)
    model = Regression.fit(encoding(columns), y)
    law = model.predict(encoding([np.append(c, 1e3) for c in columns]))
    assert np.isfinite(law.mean).all()
    assert (law.variance >= 0).all()
    assert np.isfinite(law.log_density(np.append(y, y[0]))).all()
    quantiles = law.quantiles([0.05, 0.5, 0.95])
    assert (np.diff(quantiles, axis=1) >= 0).all()
    assert np.sum(model.weights) == pytest.approx(1)
