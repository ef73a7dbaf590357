"""What time has to do with a training: how much of its budget is used, and how long a step takes."""

import math
import time

from bochner.training.budget import Budget
from bochner.training.engine import AbstractEngine


class Clock:
    """The seconds of one training, from its first start on.

    Where time decides something, all processes take the first one's.

    Attributes:
        seconds: that had passed at the last look.
        seconds_per_step: of the stage; None before its first chunk, which compiles and so counts as endless.

    Example:
        >>> from bochner.training import Budget, OneDevice
        >>> from bochner.training.clock import Clock
        >>> Clock(Budget(max_steps=200), OneDevice()).fraction(50)
        0.25
    """

    def __init__(self, budget: Budget, engine: AbstractEngine):
        self._budget, self._engine = budget, engine
        self._started = time.monotonic()
        self.seconds = 0.0
        self.seconds_per_step: float | None = None

    @property
    def now(self) -> float:
        """Seconds since the start, by this process."""
        return time.monotonic() - self._started

    def look(self) -> None:
        """Take note of the time."""
        self.seconds = self._agreed(self.now)

    def go_on_from(self, seconds: float) -> None:
        """Count seconds of an earlier process, too."""
        self._started = time.monotonic() - seconds

    def fraction(self, step: int) -> float:
        """The share of the budget that is used at a step."""
        return self._budget.fraction(step, self.seconds)

    def note_chunk(self, seconds: float, n_steps: int) -> None:
        """Note what a chunk took; the first of a stage compiles, which says nothing about the steps."""
        known, taken = self.seconds_per_step is not None, self._agreed(seconds / n_steps)
        self.seconds_per_step = taken if known else math.inf

    def enter_stage(self) -> None:
        """Forget what a step took, as those of another stage take other times."""
        self.seconds_per_step = None

    def steps_to_look(self) -> int | None:
        """How many steps may pass until the next look; None where time decides nothing."""
        if self._budget.max_seconds is None:
            return None
        per_step = math.inf if self.seconds_per_step is None else self.seconds_per_step
        return max(int(self._budget.max_seconds / self._budget.n_records / per_step), 1)

    def _agreed(self, seconds: float) -> float:
        return seconds if self._budget.max_seconds is None else self._engine.broadcast(seconds)
