"""What a checkpoint says of a training, beside its arrays; each value is checked before a training goes on from it."""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

from bochner.inference.bound import Bound
from bochner.system.saving import ModelFileError
from bochner.system.taking import named, taken
from bochner.training.checkpoints import CheckpointError
from bochner.training.progress import Record, checked_record
from bochner.training.stages import Stage

MOMENTS = ("now", "trusted", "fresh")
"""What a training may go back to, by the name that checkpoints give it."""


@dataclasses.dataclass(frozen=True)
class Kept:
    """The plain values of a checkpoint.

    Attributes:
        moments: step and stage of each moment.
        seconds: that the training had taken.
        halvings: how often the step size was halved.
        history: records.
        pending: numbers of steps since the last record, with their mean bounds.
        best_mnll: of the best model so far; None where there is none.
        without_improvement: evaluations since then.
    """

    moments: Mapping[str, tuple[int, Stage]]
    seconds: float
    halvings: int
    history: list[Record]
    pending: list[tuple[int, Bound]]
    best_mnll: float | None
    without_improvement: int

    @classmethod
    def of(cls, header: Mapping[str, Any], samples: tuple[int, ...], most_halvings: int) -> "Kept":
        """Take the values from a header, or raise a `CheckpointError` that says what is odd.

        Args:
            header: of the file.
            samples: numbers of Monte Carlo samples that the training's stages have.
            most_halvings: how often the step size may have been halved.
        """
        try:
            found = named(taken(header, "moments", dict), set(MOMENTS), "'moments'")
            return cls(
                moments={name: _moment(found[name], samples) for name in MOMENTS},
                seconds=taken(header, "seconds", float, lambda v: 0 <= v < math.inf, "a duration"),
                halvings=taken(header, "halvings", int, lambda v: 0 <= v <= most_halvings, "few"),
                history=[Record(**checked_record(one)) for one in taken(header, "history", list)],
                pending=[_pending(one) for one in taken(header, "pending", list)],
                best_mnll=taken(header, "best_mnll", float | None),
                without_improvement=_count(header, "without_improvement"),
            )
        except ModelFileError as error:
            raise CheckpointError(
                f"the checkpoint cannot be gone on from: {error} Remove it, so that the one before it is used, or "
                "start anew with another folder."
            ) from error


def _moment(found: Any, samples: tuple[int, ...]) -> tuple[int, Stage]:
    both = named(found, {"step", "stage"}, "a moment")
    stage = named(both["stage"], {"theta", "omega", "n_mc"}, "a stage")
    flags = {name: taken(stage, name, bool) for name in ("theta", "omega")}
    n_mc = taken(stage, "n_mc", int, lambda n: n in samples, f"one of {samples}")
    return _count(both, "step"), Stage(**flags, n_mc=n_mc)


def _pending(found: Any) -> tuple[int, Bound]:
    numbers = isinstance(found, list) and all(type(one) in (int, float) for one in found)
    if not numbers or len(found) != 4 or type(found[0]) is not int or found[0] < 1:
        raise ModelFileError("its bounds since the last record are none.")
    return found[0], Bound(*map(float, found[1:]))  # pyright: ignore[reportArgumentType]


def _count(found: Mapping[str, Any], name: str) -> int:
    return taken(found, name, int, lambda v: 0 <= v < 2**31, "a count")
