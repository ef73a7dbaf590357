"""Training beyond one device: devices in step, and asynchronous workers around a parameter server."""

from bochner.distributed.processes import ProcessLostError, join_processes
from bochner.distributed.settings import AbstractDistribution, Asynchronous, Synchronous

__all__ = [
    "AbstractDistribution",
    "Asynchronous",
    "ProcessLostError",
    "Synchronous",
    "join_processes",
]
