"""The flags of `bochner fit` that spread a training over devices, processes and workers."""

import dataclasses
from pathlib import Path
from typing import Any

_OF_WORKERS = {
    "workers": "n_workers",
    "address": "address",
    "shared_folder": "shared_folder",
    "shards": "n_shards",
    "max_staleness": "max_staleness",
    "scale_by_staleness": "scale_by_staleness",
    "gpus_a_worker": "gpus_a_worker",
}


@dataclasses.dataclass(frozen=True)
class AskedDistribution:
    """What the flags say; None where one is not set.

    Example:
        >>> from bochner.cli.distribution import AskedDistribution
        >>> AskedDistribution(devices="2").distribution()
        Synchronous(devices=2)
        >>> AskedDistribution(workers=2).distribution()
        Traceback (most recent call last):
        ValueError: --workers belongs to asynchronous training: add --mode async.
    """

    devices: str | None = None
    coordinator: str | None = None
    processes: int | None = None
    process_id: int | None = None
    workers: int | None = None
    mode: str | None = None
    address: str | None = None
    shared_folder: Path | None = None
    shards: int | None = None
    max_staleness: int | None = None
    scale_by_staleness: bool | None = None
    gpus_a_worker: float | None = None

    def distribution(self) -> Any:
        """Give the way to train; join the other processes first, where there are some."""
        from bochner.fitting.config import check_choice

        check_choice("mode", self.mode or "sync", ["sync", "async"])
        if self.mode == "async":
            return self._asynchronous()
        for name in _OF_WORKERS:
            if getattr(self, name) is not None:
                flag = name.replace("_", "-")
                raise ValueError(f"--{flag} belongs to asynchronous training: add --mode async.")
        return self._synchronous()

    @property
    def is_first(self) -> bool:
        """Whether this process speaks for all."""
        if not self._several_processes:
            return True
        import jax

        return jax.process_index() == 0

    @property
    def _several_processes(self) -> bool:
        return any(v is not None for v in (self.coordinator, self.processes, self.process_id))

    def _synchronous(self) -> Any:
        from bochner.distributed import Synchronous, join_processes

        if self.devices is not None and self.devices != "all" and not self.devices.isdigit():
            raise ValueError(f'--devices must be "all" or a number; got {self.devices!r}.')
        if self._several_processes:
            if self.devices not in (None, "all"):
                raise ValueError(
                    "several processes train on all their devices: leave --devices out, or set it to all."
                )
            join_processes(self.coordinator, self.processes, self.process_id)
            return Synchronous(devices="all")
        if self.devices is None:
            return None
        return Synchronous(int(self.devices) if self.devices.isdigit() else self.devices)

    def _asynchronous(self) -> Any:
        from bochner.distributed import Asynchronous

        if self._several_processes or self.devices is not None:
            raise ValueError(
                "--devices, --coordinator, --processes and --process-id belong to synchronous training; with --mode "
                "async there are --workers and --address."
            )
        asked = {field: getattr(self, name) for name, field in _OF_WORKERS.items()}
        return Asynchronous(**{name: value for name, value in asked.items() if value is not None})
