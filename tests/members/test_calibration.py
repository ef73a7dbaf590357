"""Calibrated intervals and sets: what they hold, by order statistics, by simulation, in groups and in streams."""

import math

import numpy as np
import pytest
import scipy.stats

from bochner import DeepGPClassifier, DeepGPRegressor, Linear, load
from bochner.estimators.files import from_parts, to_parts
from bochner.fitting.rows import Rows
from bochner.members.calibration import Calibration, labels_of
from bochner.members.conformal import _summary, scores
from bochner.members.predictors import AbstractRegressor
from bochner.system.saving import ModelFileError, format_arrays, parse_arrays
from tests.deep_alone import deep_regressor
from tests.members.tables import TINY

ERRORS = 4.0


def rows_of(n, seed, shift=0.0):
    """A plane with noise that is wide on one side of the second column, and the side."""
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n, 2))
    wide = X[:, 1] > 0
    return X, X[:, 0] + shift + generator.normal(size=n) * np.where(wide, 4.0, 1.0), wide


def covered(model, X, y, coverage=0.9, **options):
    low, high = model.predict_interval(X, coverage, **options).T
    return (low <= y) & (y <= high)


def assert_share(found, stated, n_calibrated):
    """Compare with a share that holds on average over calibration and test rows, by its binomial errors."""
    error = math.sqrt(stated * (1 - stated) * (1 / len(found) + 1 / n_calibrated))
    # Rounding away from the median adds up to two places among the calibration rows.
    assert stated - ERRORS * error < found.mean() < stated + ERRORS * error + 2 / n_calibrated


@pytest.fixture(scope="module")
def too_sure():
    """A model of targets with a tenth of the noise, whose intervals are far too narrow."""
    X, y, _ = rows_of(60, 0)
    return DeepGPRegressor(Linear(), random_state=0).fit(X, X[:, 0] + (y - X[:, 0]) / 10)


@pytest.fixture
def model(too_sure):
    """The same, for a test to calibrate."""
    return from_parts(*to_parts(too_sure))


@pytest.mark.parametrize("n", [1, 9, 19, 20, 200])
def test_levels_are_those_of_the_ranks_of_one_more_row(n):
    drawn = np.random.default_rng(n).normal(size=n)
    calibration, ranked = Calibration.of(drawn[:, None]), np.sort(drawn)
    for level in (0.02, 0.05, 0.3, 0.5, 0.9, 0.95, 0.99):
        rank = math.ceil(round((n + 1) * level, 6))
        assert calibration.upper(level) == (ranked[rank - 1] if rank <= n else np.inf)
        rank = math.floor(round((n + 1) * level, 6))
        assert calibration.lower(level) == (ranked[rank - 1] if rank >= 1 else -np.inf)


def test_a_row_of_weight_two_counts_like_two_rows():
    values = np.random.default_rng(0).normal(size=20)
    one = Calibration.of(values[:, None])
    twice = Calibration.of(np.repeat(values, 2)[:, None])
    heavy = Calibration(one.scores, np.full(20, 2.0), one.group, None, one.when)
    for level in (0.1, 0.5, 0.8, 0.95):
        assert heavy.at(level) == twice.at(level)


def test_with_few_rows_the_probability_is_held_and_exceeded_by_little():
    generator, inside = np.random.default_rng(0), []
    for _ in range(3000):
        *seen, new = generator.exponential(size=15)
        inside.append(new <= Calibration.of(np.array(seen)[:, None]).upper(0.8))
    assert_share(np.array(inside), 12 / 15, np.inf)


def test_a_model_that_is_too_sure_holds_what_it_says_once_calibrated(model):
    X, y, _ = rows_of(1000, 1)
    new_X, new_y, _ = rows_of(4000, 2)
    assert covered(model, new_X, new_y).mean() < 0.4
    before = model.predict(new_X, return_std=True), model.log_prob(new_X, new_y)
    model.calibrate(X, y)
    for coverage in (0.5, 0.8, 0.9, 0.99):
        assert_share(covered(model, new_X, new_y, coverage), coverage, 1000)
    quantiles = model.predict_quantiles(new_X, [0.01, 0.1, 0.3, 0.5, 0.7, 0.999])
    assert np.all(np.diff(quantiles[:, :-1], axis=1) > 0)
    for level, values in zip([0.01, 0.1, 0.3, 0.5, 0.7], quantiles.T, strict=False):
        assert abs(np.mean(new_y <= values) - level) < 0.06
    assert model.evaluate(new_X, new_y)["coverage_90"] == covered(model, new_X, new_y).mean()
    after = model.predict(new_X, return_std=True), model.log_prob(new_X, new_y)
    np.testing.assert_array_equal(before[0], after[0])
    np.testing.assert_array_equal(before[1], after[1])


def test_a_shift_that_calibration_rows_share_is_made_good(model):
    model.calibrate(*rows_of(1000, 3, shift=10.0)[:2])
    X, y, _ = rows_of(4000, 4, shift=10.0)
    assert_share(covered(model, X, y), 0.9, 1000)
    X, y, _ = rows_of(4000, 4)
    assert covered(model, X, y).mean() < 0.5


def test_groups_hold_it_each(model):
    X, y, wide = rows_of(2000, 5)
    names = np.where(wide, "wide", "narrow")
    model.calibrate(X, y, groups=names)
    X, y, wide = rows_of(6000, 6)
    names = np.where(wide, "wide", "narrow")
    over_all = covered(model, X, y)
    assert_share(over_all, 0.9, 2000)
    assert over_all[wide].mean() < 0.86 < 0.94 < over_all[~wide].mean()
    by_group = covered(model, X, y, groups=names)
    for own in (wide, ~wide):
        assert_share(by_group[own], 0.9, 1000)


def test_a_stream_forgets_what_it_was_before_a_shift(model):
    for shift, seed in ((0.0, 7), (0.0, 8), (15.0, 9)):
        model.calibrate(*rows_of(500, seed, shift)[:2], forgetting=0.01)
    X, y, _ = rows_of(3000, 10, shift=15.0)
    # About a hundred rows count.
    assert_share(covered(model, X, y), 0.9, 100)
    assert len(model.fitted_.calibration) < 1000
    for shift, seed in ((0.0, 7), (0.0, 8), (15.0, 9)):
        model.calibrate(*rows_of(500, seed, shift)[:2], forgetting=0.0 if seed > 7 else None)
    low, high = model.predict_interval(X).T
    assert np.mean(high - low) > 15.0  # wide enough for both


def test_forgetting_nothing_is_one_calibration_of_all_rows(model):
    X, y, wide = rows_of(300, 11)
    at_once = model.calibrate(X, y, wide).predict_interval(X, groups=wide)
    model.calibrate(X[:100], y[:100], wide[:100]).calibrate(
        X[100:], y[100:], wide[100:], forgetting=0.0
    )
    np.testing.assert_array_equal(model.predict_interval(X, groups=wide), at_once)


def test_weights_of_a_stream_fall_by_one_rate(model):
    X, y, _ = rows_of(5, 12)
    model.calibrate(X[:2], y[:2], forgetting=0.1).calibrate(X[2:], y[2:], forgetting=0.1)
    np.testing.assert_allclose(model.fitted_.calibration.weights, 0.9 ** np.arange(5, 0, -1.0))


def test_too_few_rows_give_infinite_ends(model):
    X, y, _ = rows_of(18, 13)
    low, high = model.calibrate(X, y).predict_interval(X, 0.9).T
    assert np.all(np.isneginf(low))
    assert np.all(np.isposinf(high))
    assert np.all(np.isfinite(model.predict_interval(X, 0.8)))


@pytest.mark.parametrize("far", [-1e4, -3.0, 0.1, 2.0, 1e4])
def test_the_level_of_a_row_leads_back_to_its_target(model, far):
    X = np.array([[0.5, -1.0]])
    mean, std = model.predict(X, return_std=True)
    y = mean + far * std
    found = model.calibrate(X, y).predict_quantiles(X, [0.5])[0]
    np.testing.assert_allclose(found, y, rtol=1e-4, atol=1e-5)


def test_several_targets_are_calibrated_each():
    X, y, _ = rows_of(200, 14)
    Y = np.stack([y, -100 * X[:, 1] + np.random.default_rng(0).normal(size=200)], axis=1)
    model = DeepGPRegressor(Linear(), random_state=0).fit(X[:50], Y[:50]).calibrate(X, Y * 1.5)
    low, high = np.moveaxis(model.predict_interval(X, 0.8), -1, 0)
    wider = Y * 1.5
    inside = (low <= wider) & (wider <= high)
    assert np.all((inside.mean(axis=0) >= 0.8) & (inside.mean(axis=0) <= 0.82))


def test_a_deep_model_alone_is_calibrated():
    X, y, _ = rows_of(400, 15)
    model = deep_regressor(**TINY).fit(X[:60], y[:60] / 3).calibrate(X, y)
    inside = covered(model, X, y, 0.8)
    assert 0.8 <= inside.mean() <= 0.82
    np.testing.assert_allclose(  # by the distribution function, and back by quantiles
        model.calibrate(X[:1], y[:1]).predict_quantiles(X[:1], [0.5])[0], y[:1], rtol=1e-3
    )


class Counts(AbstractRegressor):
    """A Poisson law of each row, by SciPy."""

    def __init__(self, rate):
        self.poisson = scipy.stats.poisson(rate[:, None])

    def cdf(self, rows):
        return self.poisson.cdf(rows.Y)

    def summary(self, X, levels=()):
        found = np.stack([self.poisson.ppf(level)[: len(X)] for level in levels], axis=-1)
        return {"quantiles": found}

    law = parts = log_density = samples = functions = None  # pyright: ignore


def test_whole_numbers_are_inside_the_interval_that_their_own_level_gives():
    rate, generator = np.linspace(1, 30, 400), np.random.default_rng(0)
    y = generator.poisson(rate)[:, None].astype(float)
    rows = Rows(np.zeros((400, 1)), y, np.ones(400))
    calibration = Calibration.of(scores(Counts(rate), rows))
    found = _summary(Counts(rate), calibration, rows.X, [0.1, 0.9], None)["quantiles"][:, 0]
    assert np.mean((found[:, 0] <= y[:, 0]) & (y[:, 0] <= found[:, 1])) >= 0.8


def classes_of(n, seed):
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n, 2))
    return X, np.array(["a", "b", "c"])[
        np.argmax(X @ [[1, -1, 0], [0, 0, 1.5]] + 0.7 * generator.gumbel(size=(n, 3)), axis=1)
    ]


@pytest.fixture(scope="module")
def of_classes():
    return DeepGPClassifier(Linear(), random_state=0).fit(*classes_of(60, 0))


def test_sets_of_classes_hold_the_right_one(of_classes):
    model = from_parts(*to_parts(of_classes))
    X, y = classes_of(4000, 2)
    truth = np.searchsorted(model.classes_, y)
    plain = model.predict_set(X, 0.8)
    p = model.predict_proba(X)
    assert np.all(np.sum(p * plain, axis=1) >= 0.8)
    model.calibrate(*classes_of(1000, 1))
    for coverage in (0.8, 0.9, 0.95):
        sets = model.predict_set(X, coverage)
        assert np.all(sets[np.arange(len(X)), p.argmax(axis=1)])
        assert_share(sets[np.arange(len(X)), truth], coverage, 1000)
    groups = np.where(X[:, 0] > 0, 1.0, 2.0)
    model.calibrate(X[:2000], y[:2000], groups[:2000].astype(int))
    sets = model.predict_set(X[2000:], 0.9, groups=groups[2000:])
    for group in (1.0, 2.0):
        own = groups[2000:] == group
        assert_share(sets[np.arange(2000), truth[2000:]][own], 0.9, 1000)


def test_it_is_part_of_the_file(model, tmp_path):
    X, y, wide = rows_of(100, 16)
    model.calibrate(X, y, wide, forgetting=0.01).save(tmp_path / "m")
    loaded = load(tmp_path / "m")
    for options in ({}, {"groups": wide}):
        np.testing.assert_array_equal(
            loaded.predict_interval(X, **options), model.predict_interval(X, **options)
        )
    assert loaded.fitted_.calibration.in_words() == model.fitted_.calibration.in_words()
    assert "on 100 rows in 2 groups" in loaded.fitted_.calibration.in_words()


def test_files_from_before_it_open(too_sure):
    arrays, header = parse_arrays(format_arrays(*to_parts(too_sure)), "x")
    del header["fitted"]["calibration"]
    assert from_parts(arrays, header).fitted_.calibration is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("calibration.scores", None),
        ("calibration.scores", np.full((30, 1), np.nan)),
        ("calibration.scores", np.zeros((30, 2))),
        ("calibration.weights", np.full(30, 2.0)),
        ("calibration.weights", np.ones(29)),
        ("calibration.group", np.full(30, 2)),
        ("calibration.group", np.zeros(30)),
        ("when", "yesterday"),
        ("names", []),
        ("names", ["True", "True"]),
        ("names", "TF"),
        ("more", 1),
    ],
)
def test_changed_files_are_refused(model, name, value):
    X, y, wide = rows_of(30, 17)
    arrays, header = to_parts(model.calibrate(X, y, wide))
    if "." in name:
        arrays.pop(name)
        arrays |= {} if value is None else {name: value}
    else:
        header["fitted"]["calibration"] = header["fitted"]["calibration"] | {name: value}
    with pytest.raises(ModelFileError):
        from_parts(arrays, header)


def test_errors_say_what_to_do(model):
    X, y, wide = rows_of(30, 18)
    with pytest.raises(ValueError, match="call `calibrate` with `groups` first"):
        model.predict_interval(X, groups=wide)
    with pytest.raises(ValueError, match=r"`forgetting` must be None, or from 0 to below 1; got 1"):
        model.calibrate(X, y, forgetting=1)
    with pytest.raises(ValueError, match=r"one entry for each of the 30 rows; got 3\."):
        model.calibrate(X, y, wide[:3])
    with pytest.raises(ValueError, match="so X must be a table"):
        model.calibrate(X, y, "side")
    model.calibrate(X, y)
    with pytest.raises(ValueError, match="Leave them out, or call"):
        model.predict_quantiles(X, [0.5], groups=wide)
    with pytest.raises(ValueError, match="at each call of `calibrate`"):
        model.calibrate(X, y, wide, forgetting=0.1)
    model.calibrate(X, y, wide)
    with pytest.raises(ValueError, match="holds 'north', which the calibration has not seen"):
        model.predict_summary(X, [0.5], groups=["north"] * 30)
    with pytest.raises(ValueError, match="one entry for each"):
        model.predict_interval(X, groups=wide[:3])


def test_groups_are_told_apart_by_their_text():
    assert labels_of(np.array([1.0, 2.5])) == ["1", "2.5"]
    assert labels_of(np.array([True, False])) == ["True", "False"]


def test_whole_numbers_and_gaps_are_calibrated():
    generator = np.random.default_rng(19)
    X = generator.normal(size=(400, 2))
    y = np.rint(3 + X[:, 0] + generator.normal(size=400))
    model = DeepGPRegressor(Linear(), random_state=0).fit(X[:100], y[:100])
    X[::7, 1] = np.nan
    with pytest.warns(UserWarning, match="averaged over training rows"):
        model.calibrate(X[100:300], y[100:300])
    with pytest.warns(UserWarning, match="averaged over training rows"):
        intervals = model.predict_interval(X[300:], 0.8)
    low, high = intervals.T
    assert np.mean((low <= y[300:]) & (y[300:] <= high)) >= 0.75
    whole = ~np.isnan(X[300:, 1])
    np.testing.assert_array_equal(low[whole], np.rint(low[whole]))
