"""Asynchronous training on Ray with real processes, some of which are killed."""

import dataclasses
import os
import signal
import socket

import numpy as np
import pytest

from bochner.distributed import Asynchronous
from bochner.distributed.cluster import connected
from bochner.distributed.worker import Worker
from bochner.distributed.workers import Workers, WorkerSettings
from bochner.rows.spool import Spool, StepsOnDisk
from bochner.training import Budget, OneDevice
from tests.distributed.faulty_workers import (
    Broken,
    DiesAtWork,
    KillsItsCoordinator,
    KillsItsServer,
    NotFinite,
    TenTimesSlower,
)
from tests.distributed.sockets import descendants, listening
from tests.training import problems

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'bochner[distributed]'")

STEPS = 100
SETTINGS = WorkerSettings(
    n_workers=2, n_shards=1, max_staleness=None, scale_by_staleness=False, address=None,
    gpus_a_worker=0,
)  # fmt: skip


@pytest.fixture(scope="module")
def cluster():
    """One local cluster for all tests here, as it is started for one training."""
    before = signal.getsignal(signal.SIGTERM)
    with connected(None, n_cpus=6) as ray:
        yield ray
    assert signal.getsignal(signal.SIGTERM) == before, "the program has its own handler again"


def train(worker_class=Worker, max_steps=STEPS, **changes):
    """Train with workers; give the result and the report."""
    engine = Workers(dataclasses.replace(SETTINGS, **changes), worker_class)
    with engine:
        trained = problems.short_training(budget=Budget(max_steps=max_steps), engine=engine)
    return trained, engine.report


def assert_close(one, other):
    for left, right in zip(problems.leaves(one), problems.leaves(other), strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-4, atol=1e-5)


def test_one_worker_gives_the_result_of_a_serial_training(cluster):
    serial = problems.short_training(budget=Budget(max_steps=STEPS))
    trained, report = train(n_workers=1, n_shards=2)
    assert_close(trained, serial)
    assert report["updates"] == STEPS
    assert report["staleness"] == {"0": STEPS}


@pytest.mark.parametrize("n_workers", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_a_killed_worker_is_replaced_and_its_gradient_in_flight_dropped(cluster, n_workers):
    with pytest.warns(RuntimeWarning, match="was lost and is replaced"):
        trained, report = train(DiesAtWork, n_workers=n_workers)
    assert report["workers_replaced"] == report["dropped_in_flight"] == 1
    assert trained.n_steps == report["updates"] == sum(report["updates_of_worker"]) == STEPS
    if n_workers == 1:
        # The batch of the gradient that was dropped was done again, and no other twice.
        assert_close(trained, problems.short_training(budget=Budget(max_steps=STEPS)))


@pytest.mark.parametrize(
    "killer", [KillsItsServer, pytest.param(KillsItsCoordinator, marks=pytest.mark.slow)]
)
def test_a_lost_server_goes_on_from_its_last_state_and_tells_what_is_lost(cluster, killer):
    with pytest.warns(RuntimeWarning, match="goes on from step 150, and the 2 updates"):
        trained, report = train(killer, n_workers=1, n_shards=2, max_steps=300)
    assert report["server_restarts"] == 1
    assert (
        report["updates_lost"] == 2
    )  # 300 steps have 100 chunks, and it was at the third step of one
    assert report["updates"] == 300
    # What was lost was done again from the same state: with one worker, to the same end.
    assert_close(trained, problems.short_training(budget=Budget(max_steps=300)))


@pytest.mark.slow
def test_a_slow_worker_does_not_hold_up_the_others(cluster):
    trained, report = train(TenTimesSlower, max_steps=300)
    slow, fast = report["updates_of_worker"]
    assert trained.n_steps == slow + fast == 300
    assert fast > 2 * slow
    assert trained.history[-1].elbo > trained.history[0].elbo


def test_gradients_that_are_not_finite_are_refused_and_reported(cluster):
    trained, report = train(NotFinite)
    assert report["not_finite"] > 0
    assert report["updates_of_worker"] == [0, STEPS]
    assert all(np.all(np.isfinite(leaf)) for leaf in problems.leaves(trained))


@pytest.mark.slow
def test_staleness_stays_within_its_bound(cluster):
    _, report = train(n_workers=3, max_staleness=1)
    assert max(map(int, report["staleness"])) <= 1
    assert sum(report["staleness"].values()) == report["updates"] == STEPS


def test_an_error_of_a_worker_reaches_the_caller(cluster):
    with pytest.raises(ValueError, match="no gradient today"):
        train(Broken)


@pytest.mark.parametrize(
    ("changes", "says"),
    [({"n_workers": 50}, "51 CPUs, and .* has 6"), ({"gpus_a_worker": 1000}, "2000 GPUs")],
)
def test_more_than_the_cluster_can_hold_is_refused(cluster, changes, says):
    with pytest.raises(ValueError, match=says):
        train(**changes)


def test_one_worker_ends_its_chunks_with_the_parts_of_a_table_on_disk():
    rows = problems.table()
    with Spool(d_in=rows.X.shape[1], n_targets=1, classes=False, named=True) as spool:
        spool.append(*(np.asarray(column) for column in (rows.X, rows.Y, rows.weights)))
        steps = StepsOnDisk(spool, 12, (0, 3), part_rows=30, block_rows=5)
        serial = [OneDevice().steps_of_table(steps, start) for start in range(4)]
        assert serial == [2, 1, 2, 1]
        for n_workers, expected in ((1, serial), (2, [None] * 4)):
            engine = Workers(dataclasses.replace(SETTINGS, n_workers=n_workers))
            assert [engine.steps_of_table(steps, start) for start in range(4)] == expected


def test_the_cluster_listens_on_the_loopback_only(cluster):
    train(max_steps=20)
    addresses = listening(descendants())
    assert addresses, "Ray's processes listen somewhere"
    assert {str(host) for host, _ in addresses if not host.is_loopback} == set()


def test_there_is_no_dashboard_and_no_usage_statistics(cluster):
    commands = []
    for pid in descendants():
        try:
            with open(f"/proc/{pid}/cmdline") as file:
                commands.append(file.read())
        except OSError:
            continue
    assert any("raylet" in command for command in commands)
    # Ray starts the process of its dashboard always; without the page that one could open, it is a reporter only.
    dashboards = [command for command in commands if "dashboard/dashboard.py" in command]
    assert all("--disable-frontend" in command for command in dashboards)
    assert 8265 not in {port for _, port in listening(descendants())}
    assert os.environ["RAY_USAGE_STATS_ENABLED"] == "0"


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("nonsense", "must be HOST:PORT"),
        ("ray://127.0.0.1:1", "client protocol"),
        (None, "no Ray cluster answers"),
    ],
)
def test_a_wrong_address_is_a_clear_error(address, says, monkeypatch):
    monkeypatch.setattr("ray.is_initialized", lambda: False)
    if address is None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(ValueError, match=says), connected(address, 1):
        pass


@pytest.mark.parametrize(
    "options", [{"n_workers": 0}, {"n_shards": 1.5}, {"max_staleness": -1}, {"n_workers": True}]
)
def test_wrong_settings_are_refused(options):
    with pytest.raises(ValueError, match="must be a whole number"):
        Asynchronous(**options)
