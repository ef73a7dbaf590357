"""What comes by a deadline, by a clock that moves on each time it is read."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest

from bochner.exact import learning
from bochner.exact.classes import class_parts
from bochner.exact.deadlines import NEVER
from bochner.exact.landmark_classes import landmark_class_parts
from bochner.exact.landmark_regression import landmark_parts
from bochner.exact.learning import learn
from bochner.exact.marginal import LearnedNoise, negative_log_marginal
from bochner.exact.parts import TABLE_KERNEL
from bochner.exact.regression import regression_parts
from bochner.exact.sizes import Sizes
from tests.exact.tables import mixed_rows

N = 80
JUDGED = np.arange(0, N, 2)
Y = np.exp(mixed_rows(N).numbers[:, 0]) + np.random.default_rng(100).normal(size=N) ** 2
LABELS = np.searchsorted([np.median(Y)], Y)
SIZES = Sizes(60, 30, 30)
FITS = {
    "regression": lambda until: regression_parts(mixed_rows(N), Y, until=until),
    "classes": lambda until: class_parts(mixed_rows(N), LABELS, 2, until=until),
    "landmarks": lambda until: landmark_parts(mixed_rows(N), Y, JUDGED, sizes=SIZES, until=until),
    "classes on landmarks": lambda until: landmark_class_parts(
        mixed_rows(N), LABELS, 2, JUDGED, sizes=SIZES, until=until
    ),
}


@pytest.fixture
def clock(monkeypatch):
    """A clock that starts at zero, and how often it was read."""
    read = SimpleNamespace(times=0)

    def monotonic() -> float:
        read.times += 1
        return float(read.times)

    monkeypatch.setattr("bochner.exact.deadlines.time", SimpleNamespace(monotonic=monotonic))
    return read


@pytest.mark.parametrize("fit", FITS.values(), ids=FITS)
def test_what_comes_by_the_deadline_is_usable_and_constant_and_linear_parts_always_come(fit, clock):
    def kinds(until):
        clock.times = 0
        parts = fit(until)
        for part in parts:
            assert np.isfinite(part.left_out).all()
            if hasattr(part, "law"):
                assert np.isfinite(part.law(mixed_rows(N)[:9]).location).all()
            else:
                np.testing.assert_allclose(part.probabilities(mixed_rows(N)[:9]).sum(axis=1), 1)
        return [part.kind for part in parts]

    everything, after_all = kinds(NEVER), clock.times
    assert "sum" in everything
    assert set(kinds(0.0)) == {"constant", "linear"}
    by_then = [kinds(share * after_all) for share in (0.0, 0.4, 0.7, 0.95, 1.1)]
    assert by_then[-1] == everything
    for some, more in itertools.pairwise(by_then):
        assert some == more[: len(some)]


def test_learning_stops_at_the_best_found(clock, monkeypatch):
    rows, t = mixed_rows(N), (Y - Y.mean()) / Y.std()
    noise = LearnedNoise(np.ones(N))
    calls = []

    def counted(*arguments):
        calls.append(1)
        return negative_log_marginal(*arguments)

    monkeypatch.setattr(learning, "negative_log_marginal", counted)

    def learned(until):
        clock.times = 0
        calls.clear()
        v = learn(TABLE_KERNEL, rows, t[:, None], noise, until=until)
        return negative_log_marginal(TABLE_KERNEL, v, rows, t[:, None], noise)[0], len(calls)

    start, none = learned(0.0)
    early, few = learned(8.0)
    late, many = learned(NEVER)
    assert (none, few) == (0, 8 - 1)
    assert many > 40
    assert late < early < start
