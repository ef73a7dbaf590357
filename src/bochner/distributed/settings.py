"""How a training is distributed, as users ask for it."""

import dataclasses
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

import jax

from bochner.distributed.devices import Devices
from bochner.distributed.worker import check_known
from bochner.distributed.workers import Workers, WorkerSettings
from bochner.training import AbstractEngine


class AbstractDistribution(ABC):
    """A way to train on more than one device."""

    @abstractmethod
    def engine(self, platform: str | None = None) -> AbstractEngine:
        """Make the engine for one training; `platform` is such as "cpu", None is JAX's default."""

    def check(self, *, averaging: float, kl_warmup: float, precision: str) -> None:  # noqa: B027
        """Refuse settings of the training that it does not know, before anything is started."""

    @property
    def spool_options(self) -> dict[str, Any]:
        """How rows that go to disk are kept, so that all who train can read them."""
        return {}


@dataclasses.dataclass(frozen=True)
class Synchronous(AbstractDistribution):
    """Devices in step, each with its rows of every batch: the answer of one device, sooner.

    Where `join_processes` was called, the devices are those of all processes.

    Args:
        devices: how many devices to use, or "all".

    Example:
        >>> from bochner import Deep, DeepGPRegressor
        >>> from bochner.distributed import Synchronous
        >>> model = DeepGPRegressor(Deep(max_steps=20), distributed=Synchronous(devices=1), random_state=0)
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


@dataclasses.dataclass(frozen=True)
class Asynchronous(AbstractDistribution):
    """Workers that do not wait for each other, around a parameter server, on Ray (as in the paper's supplement).

    Each worker fetches parameters, computes the gradient of the bound on its own batches and pushes it; the server
    applies Adam as they come. A gradient's staleness is the number of updates between the parameters it was computed
    from and those it is applied to. One worker gives the result of a serial training.

    Args:
        n_workers: how many workers.
        n_shards: over how many processes the parameters are cut.
        max_staleness: refuse gradients that are staler; None takes all.
        scale_by_staleness: divide the step of each gradient by one plus its staleness.
        address: `HOST:PORT` of a running Ray cluster, or "auto" for one on this machine; None starts one on this
            machine, which listens on the loopback only and ends with the training.
        shared_folder: where rows of large tables are kept for all workers to read; with workers on other hosts, a
            folder that all of them see. The system's folder for temporary files by default.
        gpus_a_worker: GPUs of each worker.
    """

    n_workers: int = 2
    n_shards: int = 1
    max_staleness: int | None = None
    scale_by_staleness: bool = False
    address: str | None = None
    shared_folder: str | Path | None = None
    gpus_a_worker: float = 0

    def __post_init__(self):
        for name, least in (("n_workers", 1), ("n_shards", 1), ("max_staleness", 0)):
            value = getattr(self, name)
            whole = isinstance(value, int) and not isinstance(value, bool) and value >= least
            if not whole and not (name == "max_staleness" and value is None):
                raise ValueError(
                    f"`{name}` must be a whole number of at least {least}; got {value!r}."
                )

    def check(self, *, averaging: float, kl_warmup: float, precision: str) -> None:  # noqa: D102
        check_known(averaging, kl_warmup)
        if precision != "float32":
            raise ValueError(
                f'asynchronous workers multiply in float32; got `precision="{precision}"`. Leave it '
                "open, or train on one device or on devices in step."
            )

    def engine(self, platform: str | None = None) -> AbstractEngine:  # noqa: D102
        names = [field.name for field in dataclasses.fields(WorkerSettings)]
        return Workers(WorkerSettings(**{name: getattr(self, name) for name in names}))

    @property
    def spool_options(self) -> dict[str, Any]:  # noqa: D102
        return {"named": True, "folder": self.shared_folder}
