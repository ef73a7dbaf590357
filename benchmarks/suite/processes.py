"""Jobs side by side, each in a new process with one core of its own; one that hangs or dies takes no other along."""

import multiprocessing
import multiprocessing.connection
import os
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from benchmarks.suite import work

_PATIENCE = 5.0  # times the processor seconds that a fit may take, as other work may hold the cores
_MORE_PATIENCE = 300.0


def run_jobs(
    jobs: Iterable[work.Job], n_processes: int, seconds: Callable[[work.Job], float]
) -> Iterator[dict[str, Any]]:
    """Give the record of each job as it ends.

    The processes are forked from one that has imported what all need, which saves seconds a job.
    """
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["benchmarks.suite.preloaded"])
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [0]
    waiting, running = iter(jobs), {}
    free = [cores[slot % len(cores)] for slot in range(n_processes)]
    try:
        while True:
            while free and (job := next(waiting, None)) is not None:
                core = free.pop()
                receiver, sender = context.Pipe(duplex=False)
                process = context.Process(target=_work, args=(sender, dict(job), core), daemon=True)
                process.start()
                sender.close()
                until = time.monotonic() + _PATIENCE * seconds(job) + _MORE_PATIENCE
                running[receiver] = job, process, core, until
            if not running:
                return
            ready = multiprocessing.connection.wait(list(running), timeout=1.0)
            late = [one for one, (*_, until) in running.items() if time.monotonic() > until]
            for receiver in {*ready, *late}:
                job, process, core, _ = running.pop(receiver)
                yield _received(receiver, job, process, is_late=receiver not in ready)
                free.append(core)
    finally:
        for _, process, *_ in running.values():
            process.kill()


def _received(receiver: Any, job: work.Job, process: Any, *, is_late: bool) -> dict[str, Any]:
    try:
        if is_late:
            process.kill()
            return {**job, "failed": "did not end", "stopped": True}
        return receiver.recv()
    except EOFError:
        process.join()
        return {**job, "failed": f"its process ended with {process.exitcode}", "stopped": False}
    finally:
        receiver.close()
        process.join()


def _work(sender: Any, job: dict[str, Any], core: int) -> None:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, [core])
    warnings.simplefilter("ignore")
    sender.send(work.run(job))
    sender.close()
