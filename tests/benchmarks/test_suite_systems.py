"""Systems of the suite: our own with its members, and when GPyTorch's training ends."""

import dataclasses
import math

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.suite import systems, tables
from benchmarks.suite.rows import TrainingRows
from benchmarks.suite.scores import COVERAGES
from benchmarks.suite.systems.ours import Ours
from benchmarks.suite.tables import Groups
from bochner.members.auto import MOST_EXACT

N = 60
GENERATOR = np.random.default_rng(0)
INPUTS = pa.table({"x": GENERATOR.uniform(-2, 2, N), "color": ["red", "blue", "green"] * (N // 3)})
X = INPUTS["x"].to_numpy()
NUMBERS = TrainingRows(INPUTS, X + 0.1 * GENERATOR.normal(size=N), "y", None, None, seed=0)
CLASSES = TrainingRows(INPUTS, (X > 0).astype(int), "y", np.array(["left", "right"]), None, seed=0)


def predicted(system, rows):
    return system.fit(rows, systems.Clock(math.inf))(rows.inputs)


def kinds_of(found):
    simple = {"constant": "constant", "frequencies": "constant", "linear": "linear"}
    firsts = {one["name"].replace(",", "").split()[0] for one in found.about["members"]}
    return {simple.get(first, "exact") for first in firsts}


@pytest.fixture(scope="module")
def default():
    return predicted(Ours(), NUMBERS)


def test_the_default_predicts_numbers_with_intervals_and_says_what_its_members_weigh(default):
    scores, densities = default.scores(NUMBERS.y)
    assert kinds_of(default) == {"constant", "linear", "exact"}
    assert sum(one["weight"] for one in default.about["members"]) == pytest.approx(1.0)
    assert densities.shape == (N,)
    assert scores["rmse"] < 0.2
    widths = [np.ptp(default.law.interval(coverage), axis=1) for coverage in COVERAGES]
    assert (widths[0] < widths[1]).all()
    assert (widths[1] < widths[2]).all()


def test_whole_numbers_are_covered_by_their_ranks():
    rows = TrainingRows(INPUTS, np.rint(1.5 * X), "y", None, None, seed=0)
    found = predicted(Ours(alone="exact"), rows)
    below, up_to = found.law.ranks(rows.y)
    np.testing.assert_allclose(np.log(up_to - below), found.law.log_density(rows.y), atol=1e-6)
    assert found.scores(rows.y)[0]["coverage_50"] < 0.75


@pytest.mark.parametrize("kind", ["constant", "linear", "exact"])
def test_our_default_less_a_kind_has_its_other_members(kind):
    others = {"constant", "linear", "exact"} - {kind}
    assert kinds_of(predicted(Ours(without=kind), NUMBERS)) == others


def test_leaving_out_a_kind_that_takes_no_part_changes_nothing(default):
    same = predicted(Ours(without="deep"), NUMBERS)
    np.testing.assert_array_equal(same.law.mean, default.law.mean)


def test_classes_are_predicted_by_exact_members_alone():
    found = predicted(Ours(alone="exact"), CLASSES)
    assert kinds_of(found) == {"exact"}
    assert found.probabilities.shape == (N, 2)
    assert found.scores(CLASSES.y)[0]["error_rate"] < 0.1


def test_rows_of_a_group_are_left_out_together_and_its_name_is_not_learned_from():
    groups = np.arange(N) // 2
    places, shifts = (np.random.default_rng(seed).normal(size=N // 2)[groups] for seed in (1, 2))
    noise = 0.001 * np.random.default_rng(3).normal(size=(2, N))
    y, twins = shifts + noise[0], pa.table({"x": places + noise[1]})
    apart = TrainingRows(twins, y, "y", None, Groups(groups, in_time=False), seed=0)
    together = dataclasses.replace(apart, groups=None)
    judged = {}
    for name, rows in (("groups", apart), ("rows", together)):
        found = predicted(Ours(alone="exact"), rows)
        judged[name] = max(one["log_likelihood"] for one in found.about["members"])
    assert judged["groups"] < judged["rows"] - 1.0


def test_groups_in_time_are_judged_by_the_last_rows():
    rows = dataclasses.replace(NUMBERS, groups=Groups(np.arange(N) // 6, in_time=True))
    assert np.isfinite(predicted(Ours(), rows).scores(rows.y)[1]).all()


@pytest.mark.parametrize("name", ["titanic", "segment", "contraceptive"])
def test_the_suite_knows_which_tables_are_fitted_exactly(name):
    n = tables.n_rows(name)
    exact = n <= systems.PLACES[systems.without("exact")].most_rows
    assert exact == (n - n // 10 <= MOST_EXACT)
    assert exact != (n >= systems.PLACES[systems.without("deep")].least_rows)


def test_a_training_of_gpytorch_ends_where_its_bound_is_flat_or_the_time_is_up():
    pytest.importorskip("gpytorch")
    from benchmarks.suite.systems.gpytorch_models import _Flat

    def steps(losses, clock):
        is_over = _Flat(n_rows=50, clock=clock)
        return next((step for step, loss in enumerate(losses, 1) if is_over(loss)), None)

    falling, flat = (np.r_[np.linspace(2, 1, 1_000), np.full(2_000, last)] for last in (0.0, 1.0))
    clock = systems.Clock(math.inf)
    assert steps(falling[:1_000], clock) is None
    assert steps(flat, clock) in range(1_400, 1_701)
    assert not clock.stopped
    late = systems.Clock(0.0)
    assert steps(falling, late) == 1
    assert late.stopped
    with pytest.raises(FloatingPointError):
        steps([np.nan], clock)
