"""How long training may take, and how the learning rate follows the share of it that is used."""

import dataclasses
import math
from abc import abstractmethod

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float


@dataclasses.dataclass(frozen=True)
class Budget:
    """A number of steps, a number of seconds (compilation included), or whichever of both ends first.

    Example:
        >>> from bochner.training import Budget
        >>> Budget(max_steps=100).fraction(step=25, seconds=3.0)
        0.25

    Attributes:
        max_steps: steps.
        max_seconds: seconds.
        n_records: records over the whole of it.
    """

    max_steps: int | None = None
    max_seconds: float | None = None
    n_records: int = 100

    def __post_init__(self):
        if self.max_steps is None and self.max_seconds is None:
            raise ValueError("a budget needs `max_steps`, `max_seconds` or both; got neither.")
        for name in ("max_steps", "max_seconds"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(f"`{name}` must be above 0; got {value!r}.")

    def fraction(self, step: int, seconds: float) -> float:
        """The share of the budget that is used, from 0 to 1."""
        steps = 0.0 if self.max_steps is None else step / self.max_steps
        time = 0.0 if self.max_seconds is None else seconds / self.max_seconds
        return min(max(steps, time), 1.0)

    def steps_to(self, moment: float, step: int) -> int | None:
        """How many steps from `step` on reach a share of the budget, where steps alone decide that."""
        if self.max_steps is None:
            return None
        return max(math.ceil(moment * self.max_steps - 1e-9) - step, 0)


class AbstractSchedule(eqx.Module):
    """A factor on the learning rate as a function of the share of the budget used."""

    @abstractmethod
    def __call__(self, fraction: Float[Array, ""]) -> Float[Array, ""]:
        """Compute the factor."""


class Constant(AbstractSchedule):
    """The same learning rate throughout, as in the paper.

    Example:
        >>> import jax.numpy as jnp
        >>> from bochner.training import Constant
        >>> float(Constant()(jnp.array(0.5)))
        1.0
    """

    def __call__(self, fraction):  # noqa: D102
        return jnp.ones_like(fraction)


class Cosine(AbstractSchedule):
    """A short linear rise, then half a cosine down to zero.

    Example:
        >>> import jax.numpy as jnp
        >>> from bochner.training import Cosine
        >>> round(float(Cosine(warmup=0.0)(jnp.array(0.5))), 4)
        0.5
    """

    warmup: float = eqx.field(static=True, default=0.02)

    def __call__(self, fraction):  # noqa: D102
        rise = jnp.minimum(fraction / self.warmup, 1.0) if self.warmup > 0 else 1.0
        decayed = (fraction - self.warmup) / (1.0 - self.warmup)
        fall = 0.5 * (1.0 + jnp.cos(jnp.pi * jnp.clip(decayed, 0.0, 1.0)))
        return jnp.maximum(rise, 0.02) * fall


class KLWeight(eqx.Module):
    """What the KL counts in the objective: a constant, reached linearly over a first share of the budget.

    One is the bound. Less tempers the prior, which lets a model with more weights than its rows can pay for use them; a
    rise from zero lets the fit lead before the prior prunes.

    Example:
        >>> import jax.numpy as jnp
        >>> from bochner.training import KLWeight
        >>> float(KLWeight(0.5, warmup=0.2)(jnp.array(0.1)))
        0.25
    """

    weight: float = eqx.field(static=True, default=1.0)
    warmup: float = eqx.field(static=True, default=0.0)

    def __call__(self, fraction: Float[Array, ""]) -> Float[Array, ""] | float:
        """Compute the weight at a share of the budget."""
        if self.warmup == 0:
            return self.weight
        return self.weight * jnp.minimum(fraction / self.warmup, 1.0)


SCHEDULES: dict[str, AbstractSchedule] = {"constant": Constant(), "cosine": Cosine()}
"""Schedules by the name used in configurations."""
