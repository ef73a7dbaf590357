"""Signals during a training, also inside programs that handle them themselves."""

import signal

import pytest

from bochner.cli.common import _ending_in_order
from bochner.distributed.cluster import _handler_of_sigterm_kept
from bochner.training.interruption import listen_for_stop


@pytest.fixture
def in_a_host(monkeypatch):
    """Have SIGTERM handled by a program around Python, as R and uWSGI do: Python sees None, and cannot set that."""
    found = signal.getsignal
    monkeypatch.setattr(
        "signal.getsignal", lambda number: None if number == signal.SIGTERM else found(number)
    )


@pytest.mark.parametrize("kept", [listen_for_stop, _handler_of_sigterm_kept, _ending_in_order])
def test_handlers_that_are_not_pythons_are_left_alone(in_a_host, kept):
    real = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with kept() as request:
            signal.raise_signal(signal.SIGTERM)  # ignored, as the host asked
        assert not getattr(request, "signal", request)  # what was heard, where the program keeps it
    finally:
        signal.signal(signal.SIGTERM, real)


def test_the_other_signal_is_still_heard(in_a_host):
    before = signal.getsignal(signal.SIGINT)
    with listen_for_stop() as request:
        signal.raise_signal(signal.SIGINT)
    assert request.signal == signal.SIGINT
    assert signal.getsignal(signal.SIGINT) is before
