import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from bochner import Deep, DeepGPRegressor
from bochner.system.threads import blas_on_one_thread, respect_thread_limits

COMPUTE = """
import os
import bochner
import jax.numpy as jnp
(jnp.ones((300, 300)) @ jnp.ones((300, 300))).block_until_ready()
print(os.environ.get("NPROC"), len(os.listdir("/proc/self/task")))
"""


def compute_elsewhere(**variables):
    """Compute in a new process; gives what XLA was told, and how many threads there are."""
    inherited = {k: v for k, v in os.environ.items() if k not in ("NPROC", "OMP_NUM_THREADS")}
    done = subprocess.run(
        [sys.executable, "-c", COMPUTE],
        env=inherited | variables,
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    told, n_threads = done.stdout.split()
    return told, int(n_threads)


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="threads are counted in /proc")
def test_the_number_of_threads_follows_omp_num_threads():
    told_one, threads_of_one = compute_elsewhere(OMP_NUM_THREADS="1")
    told_eight, threads_of_eight = compute_elsewhere(OMP_NUM_THREADS="8")
    assert (told_one, told_eight) == ("1", "8")
    # Several pools follow the limit, beside a fixed number of other threads.
    assert threads_of_eight - threads_of_one >= 7


@pytest.mark.parametrize(("given", "told"), [("3", "3"), ("", None), ("0", None), ("many", None)])
def test_xla_is_told_a_limit_only_where_there_is_one(monkeypatch, given, told):
    monkeypatch.delenv("NPROC", raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", given)
    respect_thread_limits()
    assert os.environ.get("NPROC") == told


def test_a_limit_meant_for_xla_itself_is_kept(monkeypatch):
    monkeypatch.setenv("NPROC", "2")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    respect_thread_limits()
    assert os.environ["NPROC"] == "2"


def blas_threads():
    return {
        library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"
    }


class SeesThreads:
    def on_record(self, record):
        self.seen = blas_threads()

    def on_end(self):
        pass


def test_blas_leaves_the_cores_to_xla_while_a_model_trains():
    if not blas_threads():
        pytest.skip("the BLAS of this machine tells nothing of its threads")
    watcher = SeesThreads()
    x = np.linspace(-1, 1, 30)
    with threadpool_limits(limits=2, user_api="blas"):
        assert blas_threads() == {2}
        DeepGPRegressor(Deep(max_steps=3, n_members=1), callbacks=[watcher]).fit(x[:, None], x)
        assert blas_threads() == {2}  # as the user had it
    assert watcher.seen == {1}


@pytest.mark.skipif(
    max(blas_threads(), default=1) < 2, reason="BLAS has one thread here, or does not tell"
)
def test_trainings_in_several_threads_leave_blas_as_it_was():
    first_entered, second_entered, first_left = Event(), Event(), Event()

    def first():
        with blas_on_one_thread():
            first_entered.set()
            assert second_entered.wait(timeout=60)
        first_left.set()

    def second():
        assert first_entered.wait(timeout=60)
        with blas_on_one_thread():
            second_entered.set()
            assert first_left.wait(timeout=60)

    before = blas_threads()
    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(first), pool.submit(second)]:
            done.result(timeout=60)
    assert blas_threads() == before
