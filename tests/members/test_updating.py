"""Further rows: models in the space of rows are then those of all rows at once at the same hyper-parameters."""

from typing import Any

import numpy as np
import pytest

import bochner.exact.updating
from bochner import Constant, DeepGPClassifier, DeepGPRegressor, Exact, Landmarks, Linear
from bochner.estimators.files import from_parts, to_parts
from bochner.exact.dirichlet import dirichlet_targets
from bochner.exact.landmarks import LandmarkProcess, Seen
from bochner.exact.process import Process
from bochner.exact.transforms import Log, Standardized, YeoJohnson
from bochner.system.saving import format_arrays, parse_arrays
from tests.members.tables import curve, sides

N = 60
KINDS = {
    "exact": Exact(),
    "landmarks": Landmarks(n_landmarks=15, n_learned_from=60),
    "linear": Linear(),
}
X, Y = curve(90)
Y = np.exp(Y / 10)
CLASSES = sides(90)[1]


@pytest.fixture(scope="module", params=KINDS)
def fitted(request):
    """A regressor of one kind of member, and its file, from which each test takes its own."""
    model = DeepGPRegressor(KINDS[request.param], random_state=0).fit(X[:N], Y[:N])
    return model, to_parts(model)


@pytest.fixture(scope="module", params=KINDS)
def fitted_classes(request):
    model = DeepGPClassifier(KINDS[request.param], random_state=0).fit(X[:N], CLASSES[:N])
    return model, to_parts(model)


def again(parts) -> Any:
    return from_parts(*parts)


def parts_of(model) -> list[Any]:
    return list(model.fitted_.predictor.parts)


def conditioned(process, rows, targets, noise):
    """The same process of all rows at once."""
    if isinstance(process, LandmarkProcess):
        return LandmarkProcess.condition(Seen.of(process.landmarks, rows), targets, noise)
    return Process.condition(process.kernel, process.v, rows, targets, noise)


def noise_of_all(member):
    """Noise of the rows of the fit as it was, and of the others as the model says."""
    part, rows = member.part, member.columns(X)
    noise = np.full(len(X), part.noise)
    if part.noise_model is not None:
        noise *= part.noise_model(rows)
    if isinstance(part.process, Process):
        noise[:N] = part.process.noise
    return noise


def assert_conditioned_on_all(model, before):
    """Compare with processes of all rows, made anew."""
    compared = 0
    for new, old in zip(parts_of(model), parts_of(before), strict=True):
        rows, part = old.columns(X), old.part
        wanted = conditioned(part.process, rows, part.transform(Y), noise_of_all(old))
        for own, other in zip(new.part.process.predict(rows), wanted.predict(rows), strict=True):
            np.testing.assert_allclose(own, other, rtol=1e-6, atol=1e-6)
        compared += 1
    assert compared > 0


def test_numbers_are_those_of_all_rows_at_once(fitted):
    model, parts = fitted
    updated = again(parts).update(X[N:75], Y[N:75]).update(X[75:], Y[75:])
    assert_conditioned_on_all(updated, model)
    assert updated.total_weight_ == len(X)
    assert updated.evaluate(X[N:], Y[N:])["mnll"] < model.evaluate(X[N:], Y[N:])["mnll"]


def test_an_exact_process_is_that_of_linear_algebra():
    model = DeepGPRegressor(Linear(), random_state=0).fit(X[:N], Y[:N])
    member = parts_of(model)[0]
    rows, t, noise = member.columns(X), member.part.transform(Y), noise_of_all(member)
    kernel, v = member.part.process.kernel, member.part.process.v
    K = kernel.covariance(v, rows, rows)
    mean = K @ np.linalg.solve(K + np.diag(noise), t)
    variance = np.diag(K - K @ np.linalg.solve(K + np.diag(noise), K))
    found = parts_of(model.update(X[N:], Y[N:]))[0].part.process.predict(rows)
    np.testing.assert_allclose(found[0], mean, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(found[1], variance, rtol=1e-5, atol=1e-7)


def test_forgotten_rows_are_those_of_more_noise(fitted):
    model, parts = fitted
    updated = again(parts).update(X[N:75], Y[N:75], forgetting=0.02)
    updated.update(X[75:], Y[75:], forgetting=0.02)
    before = parts_of(model)
    # What was fitted is forgotten from the first further row on.
    age = np.concatenate([np.full(N, 30.0), np.arange(29.0, -1, -1)])
    for new, old in zip(parts_of(updated), before, strict=True):
        rows, part = old.columns(X), old.part
        noise = noise_of_all(old) / 0.98**age
        if isinstance(part.process, LandmarkProcess):  # what landmarks miss of a row fades with it
            missing = Seen.of(part.process.landmarks, rows).missing
            noise = (noise_of_all(old) + missing) / 0.98**age - missing
        wanted = conditioned(part.process, rows, part.transform(Y), noise)
        for own, other in zip(new.part.process.predict(rows), wanted.predict(rows), strict=True):
            np.testing.assert_allclose(own, other, rtol=1e-6, atol=1e-6)
    assert updated.total_weight_ == pytest.approx(N * 0.98**30 + np.sum(0.98 ** np.arange(30)))


def test_rows_that_say_nothing_any_more_are_dropped():
    model = DeepGPRegressor(Exact(varying_noise=False), random_state=0).fit(X[:N], Y[:N])
    model.update(X[N:], Y[N:], forgetting=0.5)
    assert all(5 <= part.n_rows_held < 40 for part in model.fitted_.predictor.in_rows)


def test_classes_are_those_of_all_rows_at_once(fitted_classes):
    model, parts = fitted_classes
    updated = again(parts).update(X[N:75], CLASSES[N:75]).update(X[75:], CLASSES[75:])
    labels = np.searchsorted(model.classes_, CLASSES)
    before = parts_of(model)
    for new, old in zip(parts_of(updated), before, strict=True):
        rows, functions = old.columns(X), old.part.functions
        targets, noise = dirichlet_targets(labels, 3, old.part.strength)
        for c, process in enumerate(functions.processes):
            t = targets[:, c] - functions.offsets[c]
            wanted = conditioned(process, rows, t, noise[:, c]).predict(rows)
            found = new.part.functions.processes[c].predict(rows)
            np.testing.assert_allclose(found[0], wanted[0], rtol=1e-6, atol=1e-6)
            np.testing.assert_allclose(found[1], wanted[1], rtol=1e-6, atol=1e-6)


def test_constants_are_those_of_all_rows():
    of_numbers = DeepGPRegressor(Constant(), random_state=0).fit(X[:N], Y[:N])
    of_numbers.update(X[N:], Y[N:])
    kinds = {Standardized: 0, Log: 0, YeoJohnson: 0}
    for member in parts_of(of_numbers):
        transform = member.part.transform
        kinds[type(transform)] += 1
        t = transform(Y)
        np.testing.assert_allclose([np.mean(t), np.std(t)], [0, 1], atol=1e-9)
    assert kinds[Standardized] == 1
    assert sum(kinds.values()) > 1
    of_classes = DeepGPClassifier(Constant(), random_state=0).fit(X[:N], CLASSES[:N])
    of_classes.update(X[N:], CLASSES[N:])
    counts = np.unique(CLASSES, return_counts=True)[1] + 0.5
    np.testing.assert_allclose(of_classes.predict_proba(X)[0], counts / counts.sum(), rtol=1e-9)


def test_a_row_of_weight_two_counts_like_two_rows():
    fitted = DeepGPRegressor(Exact(), random_state=0).fit(X[:N], Y[:N])
    heavy = again(to_parts(fitted)).update(X[N:], Y[N:], sample_weight=np.full(30, 2.0))
    twice = again(to_parts(fitted)).update(np.repeat(X[N:], 2, axis=0), np.repeat(Y[N:], 2))
    found, wanted = (one.predict(X, return_std=True) for one in (heavy, twice))
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_an_exact_model_that_has_grown_sees_its_rows_from_landmarks(monkeypatch):
    monkeypatch.setattr(bochner.exact.updating, "MOST_EXACT", 80)
    for y, kind in ((Y, DeepGPRegressor), (CLASSES, DeepGPClassifier)):
        model = kind(Exact(), random_state=0).fit(X[:N], y[:N])
        exact = again(to_parts(model))
        monkeypatch.setattr(bochner.exact.updating, "MOST_EXACT", 90)
        exact.update(X[N:], y[N:])
        monkeypatch.setattr(bochner.exact.updating, "MOST_EXACT", 80)
        model.update(X[N:], y[N:])
        assert all(part.n_rows_held == N for part in model.fitted_.predictor.in_rows)
        # All rows of the fit are landmarks, so that little is missing.
        assert abs(model.score(X, y) - exact.score(X, y)) < 0.05
        np.testing.assert_allclose(again(to_parts(model)).score(X, y), model.score(X, y))


def test_it_goes_into_the_file_and_on_from_there(fitted):
    model, parts = fitted
    updated = again(parts).update(X[N:75], Y[N:75])
    loaded = from_parts(*parse_arrays(format_arrays(*to_parts(updated)), "x"))
    np.testing.assert_allclose(loaded.predict(X), updated.predict(X), rtol=1e-7)
    assert_conditioned_on_all(loaded.update(X[75:], Y[75:]), model)


def test_files_from_before_strengths_open_and_say_why_they_do_not_go_on(fitted_classes):
    _, (arrays, header) = fitted_classes
    _, header = parse_arrays(format_arrays(arrays, header), "x")
    for part in header["fitted"]["predictor"]["rows"]["models"]["parts"]:
        del part["strength"]
    old = from_parts(arrays, header)
    assert old.predict(X[:2]).shape == (2,)
    with pytest.raises(ValueError, match="fit it again"):
        old.update(X[N:], CLASSES[N:])


def test_each_of_several_targets_learns():
    both = np.stack([Y, -100 * Y], axis=1)
    model = DeepGPRegressor(Linear(), random_state=0).fit(X[:N], both[:N])
    one = DeepGPRegressor(Linear(), random_state=0).fit(X[:N], Y[:N])
    model.update(X[N:], both[N:])
    np.testing.assert_allclose(model.predict(X)[:, 0], one.update(X[N:], Y[N:]).predict(X))


def test_errors_say_what_to_do(fitted):
    model = again(fitted[1])
    for wrong in (1.0, -0.1, None, "much"):
        with pytest.raises(ValueError, match="`forgetting` must be from 0 to below 1"):
            model.update(X, Y, forgetting=wrong)
    with pytest.raises(ValueError, match="features"):
        model.update(X[:, :1], Y)


@pytest.mark.parametrize(
    ("target", "reason"), [(-3.0, "targets, which are above 0"), (1e90, "more than 1e.06 deviations")]
)  # fmt: skip
def test_targets_that_a_member_cannot_learn_are_refused_and_the_model_stays(target, reason):
    model = DeepGPRegressor(Linear(), random_state=0).fit(X, np.exp(3 * X[:, 0] + np.sin(9 * Y)))
    before = model.predict(X)
    with pytest.raises(ValueError, match=rf"cannot be learned by the member .*{reason}.*fit anew"):
        model.update(X[:1], [target])
    np.testing.assert_array_equal(model.predict(X), before)
