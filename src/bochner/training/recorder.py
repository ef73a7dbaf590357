"""What a training has told so far: bounds between records, records, and the best model by held-out rows."""

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bochner.gp.members import Members
from bochner.gp.model import DeepGP
from bochner.inference.bound import Bound
from bochner.training.progress import AbstractCallback, Record
from bochner.training.resuming import Kept


@dataclasses.dataclass(frozen=True)
class HeldOut:
    """Early stopping: how held-out rows are judged, how often, and how patiently.

    Attributes:
        mnll: computes the mean negative log-likelihood of the held-out rows.
        n_times: evaluations over the whole budget.
        patience: stop after this many evaluations in a row without improvement; None never stops early.
    """

    mnll: Callable[[DeepGP | Members], float]
    n_times: int = 25
    patience: int | None = None


class Recorder:
    """Keeps records, tells callbacks of them, and remembers the best model.

    Example:
        >>> from bochner.inference.bound import Bound
        >>> from bochner.training.recorder import Recorder
        >>> recorder = Recorder(n_records=2, held_out=None, callbacks=())
        >>> recorder.add(10, Bound(-3.0, -2.0, 1.0))
        >>> recorder.add(30, Bound(-1.0, -0.5, 0.5))
        >>> recorder.is_due(0.4), recorder.is_due(0.5), recorder.mean_bound().elbo
        (False, True, -1.5)
    """

    def __init__(
        self, n_records: int, held_out: HeldOut | None, callbacks: Sequence[AbstractCallback]
    ):
        self.n_records, self.held_out, self.callbacks = n_records, held_out, callbacks
        self.history: list[Record] = []
        self.pending: list[tuple[int, Bound]] = []
        self.best: Any = None
        self.best_mnll, self.without_improvement = math.inf, 0

    def add(self, n_steps: int, bound: Bound) -> None:
        """Note the mean bound of some steps."""
        self.pending.append((n_steps, bound))

    def mean_bound(self) -> Bound:
        """Give the mean bound of the steps since the last record."""
        steps = np.array([n for n, _ in self.pending], float)
        means = steps @ np.array([bound for _, bound in self.pending]) / steps.sum()
        return Bound(*(float(value) for value in means))  # pyright: ignore[reportArgumentType]

    def is_due(self, fraction: float) -> bool:
        """Tell whether a record is due at this share of the budget."""
        return self._reached(self.n_records, fraction)

    def is_to_be_judged(self, fraction: float) -> bool:
        """Tell whether held-out rows are to be looked at."""
        return self.held_out is not None and self._reached(self.held_out.n_times, fraction)

    def _reached(self, n_times: int, fraction: float) -> bool:
        last = self.history[-1].fraction if self.history else 0.0
        return math.floor(fraction * n_times + 1e-9) > math.floor(last * n_times + 1e-9)

    def judge(self, mnll: float, model: Callable[[], Any]) -> None:
        """Keep the model if it is the best so far."""
        if mnll < self.best_mnll:
            self.best, self.best_mnll, self.without_improvement = model(), mnll, 0
        else:
            self.without_improvement += 1

    def keep(self, record: Record) -> None:
        """Keep a record, and tell of it."""
        self.pending = []
        self.history.append(record)
        for callback in self.callbacks:
            callback.on_record(record)

    @property
    def is_hopeless(self) -> bool:
        """Whether held-out rows have not been predicted better for too long."""
        patience = None if self.held_out is None else self.held_out.patience
        return patience is not None and self.without_improvement >= patience

    def to_header(self) -> dict[str, Any]:
        """Give what a checkpoint keeps of it, but for the best model."""
        return {
            "history": [dataclasses.asdict(record) for record in self.history],
            "pending": [[n_steps, *bound] for n_steps, bound in self.pending],
            "best_mnll": None if self.best is None else self.best_mnll,
            "without_improvement": self.without_improvement,
        }

    def restore(self, kept: Kept, best: Callable[[], Any]) -> None:
        """Go on from what a checkpoint has kept."""
        self.history, self.pending = kept.history, kept.pending
        self.without_improvement = kept.without_improvement
        if kept.best_mnll is not None:
            self.best, self.best_mnll = best(), kept.best_mnll
