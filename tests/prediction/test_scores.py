"""Metrics of parts of a table add up to those of scikit-learn for the whole."""

import numpy as np
import pytest
from sklearn.metrics import mean_absolute_error, r2_score, roc_auc_score

from bochner.prediction import ranks
from bochner.prediction.ranks import RankedClasses
from bochner.prediction.scores import ClassificationScores, RegressionScores


def parts_of(*arrays, n_parts=4):
    return zip(*(np.array_split(array, n_parts) for array in arrays), strict=True)


def regression_scores(y, mean):
    nothing = np.zeros(len(y))
    return RegressionScores.of(y, mean, nothing, mean[..., None], low=mean, high=mean)


@pytest.mark.parametrize("n_targets", [1, 3])
@pytest.mark.parametrize("offset", [0.0, 1e7])
def test_errors_and_shares_of_variance_are_those_of_scikit_learn(n_targets, offset):
    rng = np.random.default_rng(0)
    y = offset + rng.normal(size=(50, n_targets)) * np.arange(1, n_targets + 1)
    mean = y + 0.5 * rng.normal(size=y.shape)
    pairs = [regression_scores(*part) for part in parts_of(y, mean)]
    total = sum(pairs[1:], regression_scores(y[:0], mean[:0]) + pairs[0]).metrics()
    assert total["mae"] == pytest.approx(mean_absolute_error(y, mean), rel=1e-7)
    assert total["r_squared"] == pytest.approx(r2_score(y, mean), rel=1e-7)
    assert total["rmse"] == pytest.approx(np.sqrt(np.mean((y - mean) ** 2)), rel=1e-7)


@pytest.mark.parametrize("value", [1.0, 0.1, -1e7 / 3])  # sums of the latter are rounded
@pytest.mark.parametrize("n_parts", [1, 2, 4])
def test_equal_targets_have_no_share_of_variance(value, n_parts):
    y = np.full((7, 2), value)
    y[:, 1] = np.arange(7)
    pairs = [regression_scores(*part) for part in parts_of(y, y + 1, n_parts=n_parts)]
    total = sum(pairs, regression_scores(y[:0], y[:0]))
    assert np.isnan(total.metrics()["r_squared"])


def test_targets_that_differ_in_their_last_digit_have_a_share_of_variance():
    y = np.array([[0.1], [0.1], [np.nextafter(0.1, 1.0)]])
    assert regression_scores(y, y).metrics()["r_squared"] == 1.0


@pytest.mark.parametrize("n_classes", [2, 3])
def test_areas_are_those_of_scikit_learn(n_classes):
    rng = np.random.default_rng(0)
    labels = rng.integers(n_classes, size=80)
    p = rng.dirichlet(np.ones(n_classes), size=80) + np.eye(n_classes)[labels]
    p = np.round(p / p.sum(axis=1, keepdims=True), 2)  # with ties
    p[:, -1] = 1 - p[:, :-1].sum(axis=1)
    pairs = [ClassificationScores.of(*part, np.zeros(len(part[0]))) for part in parts_of(labels, p)]
    total = sum(pairs[1:], pairs[0]).metrics()
    expected = (
        roc_auc_score(labels, p[:, 1])
        if n_classes == 2
        else roc_auc_score(labels, p, multi_class="ovr")
    )
    assert total["auc"] == pytest.approx(expected, rel=1e-12)


ORDERS = {
    "random": lambda p: np.arange(len(p)),
    "ascending": np.argsort,
    "descending": lambda p: np.argsort(-p),
    "from the ends": lambda p: np.argsort(-abs(p - 0.5)),
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("share", [0.5, 0.03])
def test_areas_of_many_rows_take_little_memory_and_stay_near(order, share, monkeypatch):
    monkeypatch.setattr(ranks, "_MOST_VALUES", 2**8)
    rng = np.random.default_rng(0)
    labels = (rng.random(40 * 2**8) < share).astype(int)
    p = 1 / (1 + np.exp(-(rng.normal(size=len(labels)) + labels)))
    chosen = ORDERS[order](p)
    labels, p = labels[chosen], p[chosen]
    both = np.column_stack([1 - p, p])
    pairs = [RankedClasses.of(*part) for part in parts_of(labels, both, n_parts=40)]
    total = sum(pairs[1:], pairs[0])
    assert len(total.classes[1].values) <= 2**8
    # With 65,536 values it is 256 times nearer.
    near = 1e-2 if order == "from the ends" else 1e-3
    assert total.auc() == pytest.approx(roc_auc_score(labels, p), abs=near)


def test_neighbors_are_taken_as_one_where_they_hold_few_rows_of_either_class():
    rng = np.random.default_rng(0)
    own = rng.integers(100, size=2**17) * (rng.random(2**17) < 0.1)
    others = rng.integers(100, size=2**17) * (rng.random(2**17) < 0.5)
    own[1000], others[2000] = own.sum(), others.sum()  # half of all rows in one value
    counts = np.stack([own, others])
    found = ranks._counted(np.arange(2.0**17), counts)
    assert len(found.values) <= 2**16
    assert np.array_equal(found.counts.sum(axis=1), counts.sum(axis=1))
    several = ~np.any(found.counts == counts.max(axis=1, keepdims=True), axis=0)
    assert several.sum() == len(found.values) - 2
    assert np.all(found.counts[:, several] < 1e-4 * counts.sum(axis=1, keepdims=True))


def test_one_class_alone_has_no_area():
    assert np.isnan(RankedClasses.of(np.zeros(3, int), np.full((3, 2), 0.5)).auc())
