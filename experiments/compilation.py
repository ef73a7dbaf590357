"""How much of some time went into compilation, as JAX itself reports it."""

import time
from typing import Any

import jax

_EVENTS = "/jax/core/compile/"


class CompilationClock:
    """Adds up the seconds of tracing and compilation while it is open; work inside other such work counts once.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from experiments.compilation import CompilationClock
        >>> with CompilationClock() as clock:
        ...     _ = jax.jit(lambda x: x + 41)(jnp.ones(7))
        >>> clock.seconds > 0
        True
    """

    def __init__(self) -> None:
        self._spans: list[tuple[float, float]] = []
        self._open = False

    @property
    def seconds(self) -> float:
        """What was spent so far."""
        total, covered = 0.0, -float("inf")
        for start, end in sorted(self._spans):
            total += max(0.0, end - max(start, covered))
            covered = max(covered, end)
        return total

    def __enter__(self) -> "CompilationClock":
        self._open = True
        jax.monitoring.register_event_duration_secs_listener(self._add)
        return self

    def __exit__(self, *_: Any) -> None:
        # JAX has no public way to take a listener back; a closed clock does not listen.
        self._open = False

    def _add(self, event: str, duration_secs: float, **_: Any) -> None:
        if self._open and event.startswith(_EVENTS):
            now = time.monotonic()
            self._spans.append((now - duration_secs, now))
