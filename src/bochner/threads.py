"""Thread limits that others set are kept by XLA too."""

import os


def respect_thread_limits() -> None:
    """Tell XLA the limit in `OMP_NUM_THREADS`, which it does not read.

    joblib sets that variable in the processes it starts, so that `GridSearchCV(n_jobs=...)` does not multiply threads.
    XLA reads `NPROC`, once, when the first computation starts.
    """
    limit = os.environ.get("OMP_NUM_THREADS", "")
    if limit.isdigit() and int(limit) > 0:
        os.environ.setdefault("NPROC", limit)
