import numpy as np
import pytest

from bochner.exact.columns import Columns
from bochner.exact.folds import folds_of_groups
from bochner.exact.landmark_regression import landmark_parts
from bochner.exact.laws import log_density
from bochner.exact.mixtures import Regression
from bochner.exact.parts import TABLE_KERNEL
from bochner.exact.process import Process
from bochner.exact.regression import regression_parts
from bochner.exact.varying_noise import learn_noise, left_out_by_folds
from tests.exact.tables import every_odd_table, mixed_columns


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

    def judge(t):
        plain = Process.condition(TABLE_KERNEL, v[1:], rows, t, np.full(60, 0.5))
        return left_out_by_folds(plain, model, v, folds, groups)

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


@pytest.mark.filterwarnings("error")
@every_odd_table
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


@pytest.mark.parametrize("kind", ["exact", "landmarks"])
def test_a_category_never_seen_gets_a_wide_law(kind):
    rng = np.random.default_rng(100)
    color = np.repeat(["red", "green", "blue", "white"], 20)
    y = np.repeat([0.0, 1.0, 3.0, 7.0], 20) + 0.1 * rng.normal(size=80)
    columns = Columns.learn([color])
    rows = columns([color])
    if kind == "exact":
        parts = regression_parts(rows, y, transforms=["as it is"], varying_noise=False)
    else:
        parts = landmark_parts(rows, y, np.arange(80), varying_noise=False)
    for part in parts[1:]:
        law = part.law(columns([np.array(["red", "green", "blue", "white", "new"])]))
        assert (law.scale[:4] < 0.15).all()
        assert law.scale[4] > 0.5
        assert law.location[:4].min() < law.location[4] < law.location[:4].max()
