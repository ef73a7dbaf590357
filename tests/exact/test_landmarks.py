import numpy as np
import pytest

from bochner.exact.columns import Columns
from bochner.exact.kernels import RBF, Constant, Laplace, Linear
from bochner.exact.landmark_classes import fit_classification
from bochner.exact.landmark_regression import fit_regression
from bochner.exact.landmarks import LandmarkProcess, Landmarks, Seen, choose_landmarks
from bochner.exact.process import Process
from bochner.exact.sizes import Sizes, whole_groups
from tests.exact.tables import mixed_columns, mixed_rows

KERNEL = Laplace() + RBF() + Linear() + Constant()


def setting(n=60):
    rng = np.random.default_rng(100)
    rows = mixed_rows(n)
    return rows, KERNEL.start(rows.layout, 0.5).values, rng.normal(size=n), 0.1 + rng.random(n)


def test_it_is_exact_where_all_rows_are_landmarks():
    rows, v, t, noise = setting()
    exact = Process.condition(KERNEL, v, rows[:50], t[:50], noise[:50])
    seen = Seen.of(Landmarks.of(KERNEL, v, rows[:50]), rows[:50])
    process = LandmarkProcess.condition(seen, t[:50], noise[:50])
    for found, expected in zip(process.predict(rows[50:]), exact.predict(rows[50:]), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-6)


def test_variance_far_from_all_rows_is_that_of_the_prior():
    rows, _, t, noise = setting()
    v = np.append(np.log(2.0), np.zeros(rows.layout.n_axes))
    far = rows[:1]
    far.numbers[:] += 100.0
    seen = Seen.of(Landmarks.of(RBF(), v, rows[1:11]), rows[1:])
    assert LandmarkProcess.condition(seen, t[1:], noise[1:]).predict(far)[1][0] == pytest.approx(
        2.0
    )


@pytest.mark.parametrize("grouped", [False, True])
def test_left_out_rows_equal_refits_on_the_same_landmarks(grouped):
    rows, v, t, noise = setting()
    landmarks = Landmarks.of(KERNEL, v, rows[:20])
    seen = Seen.of(landmarks, rows)
    process = LandmarkProcess.condition(seen, t, noise)
    groups = np.random.default_rng(101).integers(0, 20, 60) if grouped else np.arange(60)
    judged = np.flatnonzero(np.isin(groups, [1, 4, 7, 8]))
    mean, variance = process.left_out(seen, t, noise, judged, groups[judged])
    for place, row in enumerate(judged):
        kept = groups != groups[row]
        refit = LandmarkProcess.condition(Seen.of(landmarks, rows[kept]), t[kept], noise[kept])
        expected, spread = refit.predict(rows[row : row + 1])
        np.testing.assert_allclose(mean[place], expected[0], atol=1e-6)
        np.testing.assert_allclose(variance[place], spread[0] + noise[row], atol=1e-6)


def test_landmarks_differ():
    x = np.repeat(np.arange(10.0), 5)
    rows = Columns.learn([x])([x])
    chosen = choose_landmarks(rows, 30, seed=0)
    assert sorted(x[chosen]) == list(range(10))
    assert len(choose_landmarks(rows, 4, seed=0)) == 4


def test_groups_are_judged_as_a_whole():
    groups = np.random.default_rng(100).integers(0, 30, 100)
    judged, others = whole_groups(groups, 40, seed=0)
    assert 40 <= len(judged) < 60
    assert not set(groups[judged]) & set(groups[others])
    assert sorted([*judged, *others]) == list(range(100))


def test_regression_on_landmarks_learns():
    rng = np.random.default_rng(100)
    columns = mixed_columns(900)
    y = np.sin(2 * columns[0]) + (columns[3] == "red") + 0.1 * rng.normal(size=900)
    train, test = [c[:800] for c in columns], [c[800:] for c in columns]
    encoding = Columns.learn(train)
    model = fit_regression(encoding(train), y[:800], sizes=Sizes(150, 100))
    law = model.predict(encoding(test))
    assert np.sqrt(np.mean((law.mean - y[800:]) ** 2)) < 0.13
    assert abs(model.left_out().mean() - law.log_density(y[800:]).mean()) < 0.15


def test_classes_on_landmarks_are_learned():
    columns = mixed_columns(900)
    labels = (columns[0] > 0) + (columns[3] == "red").astype(int)
    train, test = [c[:800] for c in columns], [c[800:] for c in columns]
    encoding = Columns.learn(train)
    model = fit_classification(encoding(train), labels[:800], 3, sizes=Sizes(100, 60, 60))
    p = model.predict_proba(encoding(test))
    np.testing.assert_allclose(p.sum(axis=1), 1)
    assert np.mean(p.argmax(axis=1) == labels[800:]) > 0.95


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kind", ["constant", "duplicates", "few"])
def test_no_table_makes_it_fail(kind):
    x = {
        "constant": np.ones(60),
        "duplicates": np.repeat(np.arange(3.0), 20),
        "few": np.arange(3.0),
    }[kind]
    columns = [x, x]
    encoding = Columns.learn(columns)
    y = np.random.default_rng(100).normal(size=len(x))
    law = fit_regression(encoding(columns), y, sizes=Sizes(50, 30)).predict(encoding(columns))
    assert np.isfinite(law.log_density(y)).all()
    labels = (y > 0).astype(int)
    p = fit_classification(encoding(columns), labels, 2, sizes=Sizes(50, 30, 30)).predict_proba(
        encoding(columns)
    )
    np.testing.assert_allclose(p.sum(axis=1), 1)
