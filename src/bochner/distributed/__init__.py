"""Training beyond one device: devices in step, and asynchronous workers around a parameter server."""

from bochner.distributed.processes import ProcessLostError, join_processes
from bochner.distributed.settings import AbstractDistribution, Synchronous

__all__ = [
    "AbstractDistribution",
    "ProcessLostError",
    "Synchronous",
    "join_processes",
]
