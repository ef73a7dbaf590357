"""What concerns one call of `fit` and not the model: where it computes, who listens, what is kept on the way."""

import contextlib
import dataclasses
import math
import sys
import time
from collections.abc import Sequence
from typing import Any

import jax

from bochner.distributed import AbstractDistribution
from bochner.system.terminal import PlainConsole
from bochner.training import AbstractCallback, AbstractEngine, Checkpoints, OneDevice

_LEAST_SECONDS = 0.1


@dataclasses.dataclass(frozen=True)
class Session:
    """One call of `fit`.

    Attributes:
        device: where to compute, such as "cpu" or "gpu:1"; None is JAX's default.
        distributed: how training is spread; None is one device.
        checkpoint: folder of the training's state; None keeps none.
        checkpoint_seconds: about how often it is kept.
        resume: whether to go on from the newest.
        callbacks: who is told of records.
        verbose: whether progress is shown.
        label: what the progress bar says.
        max_seconds: how long the whole call may take; None leaves it open.

    Example:
        >>> from bochner.fitting.session import Session
        >>> with Session(max_seconds=10.0).on_device():
        ...     pass
    """

    device: str | None = None
    distributed: AbstractDistribution | None = None
    checkpoint: Any = None
    checkpoint_seconds: float = 60.0
    resume: bool = False
    callbacks: Sequence[AbstractCallback] = ()
    verbose: int = 0
    label: str = ""
    max_seconds: float | None = None
    started: float = dataclasses.field(default_factory=time.monotonic)

    def __post_init__(self):
        if self.checkpoint_seconds is not None and (
            not isinstance(self.checkpoint_seconds, int | float) or not self.checkpoint_seconds >= 0
        ):
            raise ValueError(
                f"`checkpoint_seconds` must be a number of at least 0; got {self.checkpoint_seconds!r}."
            )
        if not isinstance(self.distributed, AbstractDistribution | None):
            raise ValueError(
                "`distributed` must be None, or `Synchronous(...)` or `Asynchronous(...)` of bochner.distributed; got "
                f"{self.distributed!r}."
            )
        if self.resume and self.checkpoint is None:
            raise ValueError("`resume` needs the folder of the checkpoints: set `checkpoint`.")

    @property
    def until(self) -> float:
        """The moment, as `time.monotonic` counts, at which the call should end."""
        return math.inf if self.max_seconds is None else self.started + self.max_seconds

    def with_time_left(self, share: float = 1.0) -> "Session":
        """The same call with the time that is left of it, or a share of that.

        A training that can be resumed keeps the limit that it was asked for.

        Example:
            >>> from bochner.fitting.session import Session
            >>> 4.0 < Session(max_seconds=10.0).with_time_left(0.5).max_seconds <= 5.0
            True
        """
        if self.max_seconds is None or self.checkpoint is not None:
            return self
        now = time.monotonic()
        left = max(share * (self.until - now), _LEAST_SECONDS)
        return dataclasses.replace(self, started=now, max_seconds=left)

    def quiet(self) -> "Session":
        """The same for a trial, of which nothing is kept or told."""
        return dataclasses.replace(
            self, checkpoint=None, resume=False, callbacks=(), verbose=0, distributed=None
        )

    def tell(self, text: str) -> None:
        """Show a line of progress, where progress is shown."""
        if self.verbose:
            PlainConsole(file=sys.stderr).print(text, style="dim", soft_wrap=True)

    def on_device(self) -> contextlib.AbstractContextManager:
        """Compute on the device."""
        if self.device is None:
            return contextlib.nullcontext()
        platform, _, number = str(self.device).partition(":")
        try:
            devices = jax.local_devices(backend=platform)
            return jax.default_device(devices[int(number or 0)])
        except (RuntimeError, IndexError, ValueError) as error:
            available = ", ".join(sorted({device.platform for device in jax.devices()}))
            raise ValueError(
                f"`device` must name a device such as 'cpu' or 'gpu:0'; got {self.device!r}. "
                f"Available here: {available}."
            ) from error

    def engine(self) -> AbstractEngine:
        """Where the steps of a training run."""
        if self.distributed is None:
            return OneDevice()
        platform = None if self.device is None else str(self.device).partition(":")[0]
        return self.distributed.engine(platform)

    def checkpoints(
        self, fingerprint: dict[str, Any], engine: AbstractEngine
    ) -> Checkpoints | None:
        """Open the folder for the state of a training that is told from others by a fingerprint."""
        if self.checkpoint is None:
            return None
        return engine.checkpoints(
            lambda: Checkpoints(
                self.checkpoint,
                fingerprint,
                resume=self.resume,
                seconds_between=self.checkpoint_seconds,
            )
        )
