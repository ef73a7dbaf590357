"""One call of `fit`: how long it may take, where it computes, what it refuses."""

import math
import time

import pytest

from bochner.fitting.session import Session


def test_the_end_is_counted_from_the_start():
    assert Session().until == math.inf
    session = Session(max_seconds=5.0)
    assert session.until == session.started + 5.0


def test_the_time_that_is_left_ends_when_the_whole_does():
    session = Session(max_seconds=100.0, started=time.monotonic() - 60.0)
    left = session.with_time_left()
    assert 35.0 < left.max_seconds <= 40.0
    assert left.until == pytest.approx(session.until)
    assert session.with_time_left(0.25).max_seconds == pytest.approx(left.max_seconds / 4, rel=0.01)


def test_a_call_out_of_time_has_a_moment_left():
    late = Session(max_seconds=1.0, started=time.monotonic() - 60.0)
    assert 0.0 < late.with_time_left().max_seconds < 1.0


def test_no_limit_and_a_limit_that_a_resumed_training_must_repeat_stay(tmp_path):
    session = Session()
    assert session.with_time_left() is session
    kept = Session(max_seconds=9.0, checkpoint=tmp_path)
    assert kept.with_time_left() is kept


def test_a_trial_tells_and_keeps_nothing(tmp_path):
    quiet = Session(checkpoint=tmp_path, resume=True, callbacks=[print], verbose=1).quiet()
    assert (quiet.checkpoint, quiet.resume, quiet.callbacks, quiet.verbose) == (None, False, (), 0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"checkpoint_seconds": -1}, "`checkpoint_seconds` must be a number of at least 0; got -1"),
        ({"checkpoint_seconds": "often"}, "`checkpoint_seconds` must be a number"),
        ({"distributed": "two"}, "`distributed` must be None, or `Synchronous"),
        ({"resume": True}, "`resume` needs the folder of the checkpoints"),
    ],
)
def test_what_does_not_fit_is_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        Session(**settings)


@pytest.mark.parametrize("device", ["abacus", "cpu:99", "cpu:x"])
def test_devices_that_do_not_exist_are_refused(device):
    with pytest.raises(ValueError, match=f"`device` must name a device.*got '{device}'. Available"):
        Session(device=device).on_device()
