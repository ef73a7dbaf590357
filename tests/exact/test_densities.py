"""Densities of free shape: what they are good for, and that judged rows are not seen."""

import dataclasses

import numpy as np
import pytest

from bochner.exact import Columns, densities, landmark_parts, regression_parts
from bochner.exact.densities import density_parts
from bochner.exact.folds import folds_of_groups
from bochner.exact.lattice import Lattice
from bochner.exact.learning import Effort
from bochner.exact.sizes import Sizes
from tests.exact.tables import every_odd_table

LIGHT = Effort(few=80, some=80, scales=(1.0,), first=3, then=3, all=1)
N = 300


@pytest.fixture(scope="module")
def branches():
    """Two branches, so that the law has two hills."""
    rng = np.random.default_rng(0)
    x = rng.uniform(0.3, 1, N)
    y = x * rng.choice([-3, 3], N) + 0.1 * rng.normal(size=N)
    columns = Columns.learn([x])
    parts = regression_parts(columns([x]), y, varying_noise=False, effort=LIGHT)
    return columns, columns([x]), y, parts


@pytest.fixture(scope="module")
def part(branches):
    _, rows, y, parts = branches
    (found,) = density_parts(rows, y, parts, np.arange(N))
    return found


def test_it_has_the_shape_of_the_data(branches, part):
    columns, _, _, parts = branches
    law = part.law(columns([np.array([0.9, 0.9, 0.9])]))
    low, middle, high = np.exp(law.log_density(np.array([-2.7, 0.0, 2.7])))
    assert low > 10 * middle
    assert high > 10 * middle
    np.testing.assert_allclose(law.cdf(np.zeros(3)), 0.5, atol=0.15)
    best = max(one.left_out.mean() for one in parts)
    assert part.left_out.mean() > best + 0.3


def test_what_it_says_of_left_out_rows_is_what_it_says_of_new_ones(branches, part):
    columns = branches[0]
    rng = np.random.default_rng(1)
    x = rng.uniform(0.3, 1, 2000)
    y = x * rng.choice([-3, 3], 2000) + 0.1 * rng.normal(size=2000)
    new = part.law(columns([x])).log_density(y)
    error = (new.var() / 2000 + part.left_out.var() / N) ** 0.5
    assert abs(new.mean() - part.left_out.mean()) < 4 * error


@pytest.fixture
def no_choice(monkeypatch):
    """One amplitude and smoothness, for their choice has seen all judged rows."""
    monkeypatch.setattr(densities, "_AMPLITUDES", (3.0,))
    monkeypatch.setattr(densities, "_SMOOTHNESSES", (0.15,))
    monkeypatch.setattr(densities, "_START", (0, 0))
    monkeypatch.setattr(densities, "_HOPELESS", np.inf)


def exchanged(y: np.ndarray, some: np.ndarray) -> np.ndarray:
    """Targets of some rows in another order, so that cells and their frequencies stay."""
    other = y.copy()
    other[some] = y[np.roll(some, 1)]
    return other


@pytest.mark.usefixtures("no_choice")
def test_targets_of_a_fold_do_not_change_what_is_said_of_it(branches):
    _, rows, y, parts = branches
    fold = np.flatnonzero(folds_of_groups(rows.groups(), 5, 0) == 2)
    (part,) = density_parts(rows, y, parts, np.arange(N))
    (changed,) = density_parts(rows, exchanged(y, fold), parts, np.arange(N))
    np.testing.assert_array_equal(
        changed.unseen.probabilities[fold], part.unseen.probabilities[fold]
    )
    rest = np.setdiff1d(np.arange(N), fold)
    assert not np.allclose(changed.unseen.probabilities[rest], part.unseen.probabilities[rest])


@pytest.mark.usefixtures("no_choice")
def test_held_out_targets_are_seen_only_by_the_model_that_predicts(branches):
    columns, rows, y, _ = branches
    judged = np.arange(0, N, 4)
    parts = landmark_parts(rows, y, judged, sizes=Sizes(100, 30), effort=LIGHT, varying_noise=False)
    parts = [one for one in parts if one.kind == "sum"]  # of several the best would be chosen
    (one,) = density_parts(rows, y, parts, judged)
    (other,) = density_parts(rows, exchanged(y, judged), parts, judged)
    np.testing.assert_array_equal(one.unseen.probabilities, other.unseen.probabilities)
    assert not np.allclose(one.weights, other.weights)
    assert one.landmarks is parts[0].process.landmarks
    assert np.isfinite(one.law(columns([np.array([0.5])])).log_density(np.array([9.0]))).all()


@pytest.mark.usefixtures("no_choice")
def test_groups_are_left_out_together(branches):
    _, rows, y, parts = branches
    groups = np.arange(N) % 8
    (found,) = density_parts(rows, y, parts, np.arange(N), groups=groups)
    same = exchanged(y, np.flatnonzero(groups == 3))
    (changed,) = density_parts(rows, same, parts, np.arange(N), groups=groups)
    own = groups == 3
    np.testing.assert_array_equal(
        found.unseen.probabilities[own], changed.unseen.probabilities[own]
    )


@pytest.mark.usefixtures("no_choice")
def test_of_many_rows_it_learns_from_some_and_judges_all_that_are_judged(branches, monkeypatch):
    _, rows, y, parts = branches
    judged = np.random.default_rng(0).permutation(N)[:60]
    parts = [dataclasses.replace(one, unseen=one.unseen.at(judged)) for one in parts]
    (every,) = density_parts(rows, y, parts, judged)
    monkeypatch.setattr(densities, "_MOST_ROWS", 150)
    (some,) = density_parts(rows, y, parts, judged)
    assert len(some.left_out) == 60
    assert not np.array_equal(some.weights, every.weights)
    np.testing.assert_allclose(some.left_out.mean(), every.left_out.mean(), atol=0.2)
    np.testing.assert_array_equal(some.unseen.log_density(y[judged]), some.left_out)


def test_there_is_none_where_it_is_far_behind():
    x = np.linspace(0, 6, 100)
    rows = Columns.learn([x])([x])
    parts = regression_parts(rows, np.sin(x), varying_noise=False, effort=LIGHT)
    assert density_parts(rows, np.sin(x), parts, np.arange(100)) == []


def test_on_a_lattice_it_is_held_against_masses(branches):
    _, rows, y, _ = branches
    points = np.where(rows.numbers[:, 0] > 0, 4.0, np.where(y > 0, 1.0, 2.0))
    parts = regression_parts(rows, points, varying_noise=False, effort=LIGHT)
    lattice = Lattice.found(points)
    # As if they were densities of spikes, beside which every mass is hopeless.
    parts = [dataclasses.replace(one, left_out=one.left_out + 20) for one in parts]
    (part,) = density_parts(rows, points, parts, np.arange(N), lattice=lattice)
    assert part.cells.edges.tolist() == [1.5, 2.5, 3.5]
    masses = [lattice.log_density(one.unseen, points).mean() for one in (*parts, part)]
    assert masses[-1] > max(masses[:-1])


def test_there_is_none_of_few_rows_without_processes_or_without_time(branches):
    _, rows, y, parts = branches
    everyone = np.arange(N)
    assert density_parts(rows[:50], y[:50], parts, everyone[:50]) == []
    assert density_parts(rows, y, parts[:2], everyone) == []
    assert density_parts(rows, y, parts, everyone, until=0.0) == []


@every_odd_table
def test_odd_tables_give_finite_laws(make):
    columns, y = make(np.random.default_rng(0))
    encoding = Columns.learn(columns)
    rows = encoding(columns)
    parts = regression_parts(rows, y, varying_noise=False, effort=LIGHT)
    for part in density_parts(rows, y, parts, np.arange(len(y))):
        law = part.law(rows)
        assert np.isfinite(law.log_density(y)).all()
        assert np.isfinite(part.left_out).all()
        assert all(np.isfinite(moment).all() for moment in law.moments())
