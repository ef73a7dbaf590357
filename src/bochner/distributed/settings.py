"""How a training is distributed, as users ask for it."""

import dataclasses
from abc import ABC, abstractmethod

import jax

from bochner.distributed.devices import Devices
from bochner.training import AbstractEngine


class AbstractDistribution(ABC):
    """A way to train on more than one device."""

    @abstractmethod
    def engine(self, platform: str | None = None) -> AbstractEngine:
        """Make the engine for one training; `platform` is such as "cpu", None is JAX's default."""


@dataclasses.dataclass(frozen=True)
class Synchronous(AbstractDistribution):
    """Devices in step, each with its rows of every batch: the answer of one device, sooner.

    Where `join_processes` was called, the devices are those of all processes.

    Args:
        devices: how many devices to use, or "all".

    Example:
        >>> from bochner import DeepGPRegressor
        >>> from bochner.distributed import Synchronous
        >>> model = DeepGPRegressor(max_steps=20, distributed=Synchronous(devices=1), random_state=0)
        >>> model.fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0]).n_steps_
        20
    """

    devices: int | str = "all"

    def engine(self, platform: str | None = None) -> AbstractEngine:  # noqa: D102
        found = jax.devices(platform)
        wanted = self.devices
        if wanted == "all":
            return Devices(found)
        if isinstance(wanted, bool) or not isinstance(wanted, int) or wanted < 1:
            raise ValueError(
                f'`devices` must be "all" or a whole number of at least 1; got {wanted!r}.'
            )
        if wanted > len(found):
            kind = found[0].platform
            raise ValueError(
                f"{wanted} devices were asked for, and there are {len(found)} of kind {kind!r} here. A CPU counts as "
                f"several with the environment variable XLA_FLAGS=--xla_force_host_platform_device_count={wanted}."
            )
        if jax.process_count() > 1 and wanted < len(found):
            raise ValueError(
                f'several processes train on all their devices, {len(found)} together: use devices="all".'
            )
        return Devices(found[:wanted])
