"""Where the steps of a training run; the loop over chunks is the same everywhere."""

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from jaxtyping import PyTree

from bochner.inference.bound import Bound
from bochner.rows.table import AbstractSteps, TrainingData
from bochner.training.checkpoints import Checkpoints
from bochner.training.chunk import ChunkInputs, State, run_chunk


class AbstractEngine(ABC):
    """What runs chunks of steps: one device, several in step, or workers that do not wait for each other.

    An engine is open for one training: `with engine: train(..., engine=engine)`.

    Attributes:
        is_first: whether this process speaks for all: it alone writes files and shows progress.
    """

    is_first: bool = True

    @property
    def report(self) -> dict[str, Any]:
        """What happened while it trained, in names and numbers."""
        return {}

    def __enter__(self) -> "AbstractEngine":
        return self

    def __exit__(self, *_) -> None:  # noqa: B027
        """Let go of devices and processes."""

    @abstractmethod
    def run(self, inputs: ChunkInputs, state: State, start: int) -> tuple[State, Bound]:
        """Run the steps of a chunk that begins with step `start`; give the new state and the mean bound."""

    def bound(self, inputs: ChunkInputs, state: State, start: int) -> Bound:
        """Compute the bound of a state at step `start`; the state is used up."""
        return self.run(inputs, state, start)[1]

    def capacity(self, of_chunk: int) -> int:
        """How many steps a chunk holds, where one on one device would hold `of_chunk`."""
        return of_chunk

    def steps(self, data: TrainingData, batch_size: int, seed: tuple[int, ...]) -> AbstractSteps:
        """Cut the rows into training steps."""
        return data.in_steps(batch_size, seed)

    def rows(self, steps: AbstractSteps, start: int, n_steps: int, capacity: int):
        """Give a table, and the rows in it of each step of the chunk, as `AbstractSteps.take` does."""
        return steps.take(start, n_steps, capacity)

    def steps_of_table(self, steps: AbstractSteps, start: int) -> int | None:
        """How many steps from `start` on take their rows from one table; None where all do."""
        return steps.steps_of_table(start)

    def replicate(self, tree: PyTree) -> PyTree:
        """Put arrays where the steps run."""
        return tree

    def here(self, tree: PyTree) -> PyTree:
        """Give such arrays as those of one device of this process."""
        return tree

    def broadcast(self, value: float) -> float:
        """Give the first process's value, so that all take the same decision."""
        return value

    def check_same(self, describe: Callable[[], str]) -> None:  # noqa: B027
        """Refuse to train where the processes do not describe their settings and rows alike."""

    def any_signal(self, signal: int | None) -> int | None:
        """Give a signal that any of the processes has heard."""
        return signal

    def checkpoints(self, make: Callable[[], Checkpoints]) -> Checkpoints:
        """Give the checkpoints of the training, of which only one process makes files."""
        return make()


class OneDevice(AbstractEngine):
    """One device of this process: each chunk is one compiled program.

    Example:
        >>> from bochner.training import OneDevice
        >>> OneDevice().broadcast(2.0)
        2.0
    """

    def run(self, inputs: ChunkInputs, state: State, start: int):  # noqa: D102
        reparameterization = inputs.reparameterization
        fastest = reparameterization.on(reparameterization.backend.on_one_device())
        return run_chunk(dataclasses.replace(inputs, reparameterization=fastest), state)
