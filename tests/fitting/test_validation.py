"""Rows that a model has not seen: which ones, by whom they are left out, and what they say of two models."""

import jax
import numpy as np
import pytest

from bochner import Deep
from bochner.fitting.held_out import HeldOutRows
from bochner.fitting.rows import Rows
from bochner.fitting.splits import ByGroups, ByTime
from bochner.fitting.validation import Judged, OwnRows, brief, parts_to_judge
from bochner.gp.layers import LayerSettings
from bochner.gp.model import DeepGP
from bochner.gp.reparameterization import DrawWeights
from bochner.inference.objectives import OBJECTIVES
from bochner.likelihoods import Gaussian
from bochner.rows.table import Table, Tables
from tests.deep_alone import deep_regressor, settled


def rows(n, weights=None):
    numbers = np.arange(n, dtype=float)[:, None]
    return Rows(numbers, numbers, np.ones(n) if weights is None else weights)


def config(**settings):
    model = deep_regressor(**settings, random_state=0)
    return settled(model, 300, np.zeros((10, 1)))


# Which rows are held out.


@pytest.mark.parametrize(("n", "held_out"), [(199, 0), (200, 40), (1000, 200)])
def test_a_share_is_held_out_from_two_hundred_rows_on(n, held_out):
    kept, out = HeldOutRows().parts(config(validation_fraction=0.2), rows(n))
    assert len(out or []) == held_out
    together = np.concatenate([part.X[:, 0] for part in (kept, out) if part])
    assert sorted(together) == list(range(n))
    assert list(kept.X[:, 0]) == sorted(kept.X[:, 0])


def test_given_rows_and_numbers_come_before_the_share():
    given = rows(7)
    kept, out = HeldOutRows(given).parts(config(validation_fraction=0.2), rows(300))
    assert (len(kept), out) == (300, given)
    numbers = np.array([5, 2, 9])
    kept, out = HeldOutRows(numbers=numbers).parts(config(validation_fraction=0.0), rows(20))
    assert out.X[:, 0].tolist() == [2, 5, 9]
    assert len(kept) == 17


def test_groups_are_held_out_as_a_whole():
    groups = np.repeat([f"group {i}" for i in range(60)], 5)
    kept, out = HeldOutRows(split=ByGroups(groups)).parts(
        config(validation_fraction=0.2), rows(300)
    )
    inside, outside = ({groups[int(i)] for i in part.X[:, 0]} for part in (kept, out))
    assert not inside & outside
    assert (len(outside), len(out)) == (12, 60)


def test_few_groups_are_not_enough_to_judge_by():
    many, some, few = (ByGroups(np.arange(6000) // size) for size in (5, 100, 500))
    assert many.enough(600) == 600
    assert some.enough(600) == 2000  # 20 of 60 groups
    assert few.enough(600) == 2000  # a third of the rows: 4 of 12 groups
    assert few.independent(few.held_out(few.enough(600), seed=0)) == 4
    assert ByTime(np.arange(6000)).enough(600) == 600


def test_the_latest_rows_are_held_out_in_time():
    moments = np.random.default_rng(0).permutation(300)
    settings = config(validation_fraction=0.2)
    kept, out = HeldOutRows(split=ByTime(moments)).parts(settings, rows(300))
    assert sorted(moments[out.X[:, 0].astype(int)]) == list(range(240, 300))
    assert len(kept) == 240


def test_nothing_is_held_out_where_that_would_leave_no_weight():
    weights = np.zeros(200)
    weights[0] = 1.0
    kept, out = HeldOutRows().parts(config(validation_fraction=0.2), rows(200, weights))
    assert (len(kept), out) == (200, None)


def test_of_very_many_rows_some_are_tried():
    kept, judged = parts_to_judge(rows(30_000))
    assert (len(kept), len(judged)) == (16_000, 4_000)
    assert not {*kept.X[:, 0]} & {*judged.X[:, 0]}


def test_a_trial_is_short():
    long = config(max_steps=800, n_members=2)
    assert (brief(long).max_steps, brief(long).n_members) == (200, 1)
    assert brief(config(max_steps=1)).max_steps == 1
    seconds = settled(deep_regressor(max_seconds=16.0), 300, np.zeros((10, 1)))
    assert brief(seconds).max_seconds == 2.0


# Rows that members leave out.


@pytest.mark.parametrize("name", OBJECTIVES)
def test_rows_without_weight_are_as_if_they_were_not_there(name, key):
    generator = np.random.default_rng(0)
    X, Y = generator.normal(size=(30, 2)), generator.normal(size=(30, 1))
    left_out = np.arange(30) % 3 == 0
    settings = [LayerSettings(2, n_rf=5), LayerSettings(1, n_rf=5)]
    model = DeepGP.start(settings, Gaussian.start(1), d_in=2, feed_inputs=True, key=key)
    noise = model.draw_noise((2,), key=jax.random.key(1))
    all_rows, others = Table.of(X, Y, 1.0 * ~left_out), Table.of(X[~left_out], Y[~left_out])
    bounds = [
        OBJECTIVES[name]()(model, table, noise, DrawWeights(), scale=1.0)
        for table in (all_rows, others)
    ]
    np.testing.assert_allclose(*bounds, rtol=1e-5)


def test_each_member_leaves_out_a_fold_of_its_own():
    folds = np.random.default_rng(0).integers(0, 4, size=100)
    own = OwnRows.in_folds(folds)
    assert own.left_out.shape == (4, 100)
    assert own.left_out.sum(axis=0).tolist() == [1] * 100
    table = Table.of(np.zeros((100, 1)), np.zeros((100, 1)), np.full(100, 2.0))
    together = own.to_learn_from(table)
    assert isinstance(together, Tables)
    np.testing.assert_array_equal(np.asarray(together.weights), 2.0 * ~own.left_out)
    assert [float(one.weights.sum()) for one in own.tables(table)] == (
        2.0 * np.bincount(folds) * -1 + 200
    ).tolist()


# What they say.


def test_a_difference_in_one_row_is_no_noise():
    ours, other = np.zeros(200), np.zeros(200)
    ours[0] = -1_000.0
    weights = np.ones(200)
    assert Judged(other, weights).clearly_better_than(Judged(ours, weights))
    ours[0], ours[1::2], ours[2::2] = 0.0, -0.1, 0.1
    assert not Judged(other, weights).clearly_better_than(Judged(ours, weights))


def test_weights_count():
    densities, weights = np.array([0.0, -3.0]), np.array([2.0, 1.0])
    assert Judged(densities, weights).mean == -1.0
    assert isinstance(Deep().get_params()["n_members"], type(None))
