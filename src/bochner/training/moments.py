"""The state of a training at one moment, to go back to."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from bochner.training.checkpoints import filled, named_arrays
from bochner.training.chunk import LONGEST_GRADIENT, State
from bochner.training.stages import Stage


@dataclasses.dataclass(frozen=True)
class Moment:
    """All that changes between chunks.

    Attributes:
        step: its number.
        stage: that the training is in.
        state: what is learned, with the optimizer's averages.
        held: the rest of the model.
    """

    step: int
    stage: Stage
    state: State
    held: Any

    def copied(self) -> "Moment":
        """Copy what a chunk overwrites."""
        return dataclasses.replace(self, state=copied(self.state))

    def filled(self, name: str, arrays: Any, spread: Callable[[Any], Any]) -> "Moment":
        """Put the arrays that a checkpoint has under a name in place of these, spread over devices."""
        state, held = (
            spread(filled(f"{name}.{part}", getattr(self, part), arrays))
            for part in ("state", "held")
        )
        return dataclasses.replace(self, state=state, held=held)


def moments_to_stored(
    moments: Mapping[str, Moment],
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Give what a checkpoint keeps of moments: arrays, and the rest as plain values."""
    arrays, described = {}, {}
    for name, moment in moments.items():
        arrays |= named_arrays(f"{name}.state", moment.state)
        arrays |= named_arrays(f"{name}.held", moment.held)
        described[name] = {"step": moment.step, "stage": dataclasses.asdict(moment.stage)}
    return arrays, described


def holds_long_gradients(state: State) -> bool:
    """Tell whether the optimizer's averages hold gradients so long that it would not forget them."""
    numbers = [
        leaf for leaf in jax.tree.leaves(state.optimizer_state) if eqx.is_inexact_array(leaf)
    ]
    return not all(bool(jnp.all(jnp.abs(leaf) < LONGEST_GRADIENT**2)) for leaf in numbers)


@jax.jit
def _copy_arrays(arrays):
    return jax.tree.map(jnp.copy, arrays)


def copied(tree: Any) -> Any:
    """Copy all arrays of a tree.

    Example:
        >>> import jax.numpy as jnp
        >>> from bochner.training.moments import copied
        >>> one = {"a": jnp.zeros(2), "b": "text"}
        >>> copied(one)["a"] is one["a"], copied(one)["b"]
        (False, 'text')
    """
    arrays, rest = eqx.partition(tree, eqx.is_array)
    return eqx.combine(_copy_arrays(arrays), rest)
