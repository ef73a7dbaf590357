"""The same number of threads for every system."""

import os


def limit_threads(n_threads: int | None) -> None:
    """Restrict the process to some of its cores; call it before JAX or PyTorch are imported."""
    if n_threads is None:
        return
    cores = sorted(os.sched_getaffinity(0))
    if not 1 <= n_threads <= len(cores):
        raise ValueError(f"`threads` must be from 1 to {len(cores)}; got {n_threads}.")
    os.sched_setaffinity(0, cores[:n_threads])


def n_threads() -> int:
    """How many cores the process may use."""
    return len(os.sched_getaffinity(0))
