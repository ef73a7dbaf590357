"""Clocks for tests of budgets in seconds: a busy machine must not decide whether they pass."""

from types import SimpleNamespace


def steady_clock(monkeypatch, tick: float) -> None:
    """Let the training loop live by a clock that moves on by one tick each time it is read."""
    now = 0.0

    def monotonic() -> float:
        nonlocal now
        now += tick
        return now

    monkeypatch.setattr("bochner.training.clock.time", SimpleNamespace(monotonic=monotonic))
