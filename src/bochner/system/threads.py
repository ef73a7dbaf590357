"""Threads: limits that others set are kept by XLA too, and BLAS does not take cores from it."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_LIMITED = threading.Lock()


def respect_thread_limits() -> None:
    """Tell XLA the limit in `OMP_NUM_THREADS`, which it does not read.

    joblib sets that variable in the processes it starts, so that `GridSearchCV(n_jobs=...)` does not multiply threads.
    XLA reads `NPROC`, once, when the first computation starts.
    """
    limit = os.environ.get("OMP_NUM_THREADS", "")
    if limit.isdigit() and int(limit) > 0:
        os.environ.setdefault("NPROC", limit)


@contextmanager
def blas_on_one_thread() -> Iterator[None]:
    """Keep BLAS to one thread for a while, in this whole process, where it lets itself be told.

    After a call its threads wait for the next one in a busy loop, on cores that XLA's own threads need: with a
    factorization in each step, training took half as long again on two cores.

    Example:
        >>> from threadpoolctl import threadpool_info
        >>> from bochner.system.threads import blas_on_one_thread
        >>> with blas_on_one_thread():
        ...     {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"} <= {1}
        True
    """
    import scipy.linalg  # noqa: F401  XLA factorizes with its BLAS, which must be loaded to be limited
    from threadpoolctl import threadpool_limits

    # Of trainings in several threads one alone sets the limit and takes it away: each would give back what it found.
    if not _LIMITED.acquire(blocking=False):
        yield
        return
    try:
        with threadpool_limits(limits=1, user_api="blas"):
            yield
    finally:
        _LIMITED.release()
