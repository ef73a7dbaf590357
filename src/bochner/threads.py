"""Threads: limits that others set are kept by XLA too, and BLAS does not take cores from it."""

import os
from contextlib import AbstractContextManager

import scipy.linalg  # noqa: F401  XLA factorizes with its BLAS, which must be loaded to be limited
from threadpoolctl import threadpool_limits


def respect_thread_limits() -> None:
    """Tell XLA the limit in `OMP_NUM_THREADS`, which it does not read.

    joblib sets that variable in the processes it starts, so that `GridSearchCV(n_jobs=...)` does not multiply threads.
    XLA reads `NPROC`, once, when the first computation starts.
    """
    limit = os.environ.get("OMP_NUM_THREADS", "")
    if limit.isdigit() and int(limit) > 0:
        os.environ.setdefault("NPROC", limit)


def blas_on_one_thread() -> AbstractContextManager:
    """Keep BLAS to one thread for a while, in this whole process.

    After a call its threads wait for the next one in a busy loop, on cores that XLA's own threads need: with a
    factorization in each step, training took half as long again on two cores.

    Example:
        >>> from threadpoolctl import threadpool_info
        >>> from bochner.threads import blas_on_one_thread
        >>> with blas_on_one_thread():
        ...     {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}
        {1}
    """
    return threadpool_limits(limits=1, user_api="blas")
