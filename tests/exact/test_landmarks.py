import numpy as np
import pytest

from bochner.exact.columns import Columns
from bochner.exact.kernels import RBF, Constant, Laplace, Linear
from bochner.exact.landmark_classes import landmark_class_parts
from bochner.exact.landmark_regression import landmark_parts
from bochner.exact.landmarks import LandmarkProcess, Landmarks, Seen, choose_landmarks
from bochner.exact.process import Process
from bochner.exact.sizes import Sizes, whole_groups
from tests.exact.tables import every_odd_table, mixed_columns, mixed_rows

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


@pytest.mark.parametrize(
    ("n_groups", "n_landmarks"), [(None, 20), (20, 20), (4, 5)], ids=["rows", "groups", "large"]
)
def test_left_out_rows_equal_refits_on_the_same_landmarks(n_groups, n_landmarks):
    """All rows of a judged row's group leave with it, judged or not."""
    rows, v, t, noise = setting()
    landmarks = Landmarks.of(KERNEL, v, rows[:n_landmarks])
    seen = Seen.of(landmarks, rows)
    process = LandmarkProcess.condition(seen, t, noise)
    rng = np.random.default_rng(101)
    groups = np.arange(60) if n_groups is None else rng.integers(0, n_groups, 60)
    judged = rng.permutation(60)[:15]
    given = None if n_groups is None else groups
    mean, variance = process.left_out(seen, t, noise, judged, given)
    for place, row in enumerate(judged):
        kept = groups != groups[row]
        refit = LandmarkProcess.condition(Seen.of(landmarks, rows[kept]), t[kept], noise[kept])
        expected, spread = refit.predict(rows[row : row + 1])
        np.testing.assert_allclose(mean[place], expected[0], atol=1e-6)
        np.testing.assert_allclose(variance[place], spread[0], atol=1e-6)


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
    parts = landmark_parts(encoding(train), y[:800], np.arange(200), sizes=Sizes(150, 100))
    part = max(parts, key=lambda part: part.left_out.mean())
    law = part.law(encoding(test))
    mean = law.transform.inverse(law.location)
    assert np.sqrt(np.mean((mean - y[800:]) ** 2)) < 0.13
    assert abs(part.left_out.mean() - law.log_density(y[800:]).mean()) < 0.15


def test_classes_on_landmarks_are_learned():
    columns = mixed_columns(900)
    labels = (columns[0] > 0) + (columns[3] == "red").astype(int)
    train, test = [c[:800] for c in columns], [c[800:] for c in columns]
    encoding = Columns.learn(train)
    parts = landmark_class_parts(
        encoding(train), labels[:800], 3, np.arange(300), sizes=Sizes(100, 60, 60)
    )
    p = parts[-1].probabilities(encoding(test))
    np.testing.assert_allclose(p.sum(axis=1), 1)
    assert np.mean(p.argmax(axis=1) == labels[800:]) > 0.95
    assert np.mean(parts[-1].left_out.argmax(axis=1) == labels[:300]) > 0.95


@pytest.mark.filterwarnings("error")
@every_odd_table
def test_no_table_makes_it_fail(make):
    columns, y = make(np.random.default_rng(100))
    encoding, judged = Columns.learn(columns), np.arange(len(y))[::2]
    rows, sizes = encoding(columns), Sizes(40, 30, 30)
    new = encoding([np.append(c, 1e3) for c in columns])
    for part in landmark_parts(rows, y, judged, sizes=sizes):
        law = part.law(new)
        assert np.isfinite(law.location).all()
        assert (law.scale > 0).all()
        assert np.isfinite(part.left_out).all()
    for part in landmark_class_parts(rows, (y > np.median(y)).astype(int), 2, judged, sizes=sizes):
        p = part.probabilities(new)
        assert (p > 0).all()
        np.testing.assert_allclose(p.sum(axis=1), 1)
        assert np.isfinite(part.left_out).all()
