"""Synchronous training over real processes: equal answers, and a clear end when one is killed."""

import os
import signal
import socket
import subprocess
import sys
import time

import numpy as np
import pytest

from bochner.distributed.processes import join_processes
from bochner.system.saving import read_arrays
from tests.cli.conftest import make_frame
from tests.distributed.sockets import descendants, listening

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

STEPS = 400
_WAIT = 300


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Team:
    """`bochner fit` as processes of their own."""

    def __init__(self, folder):
        self.folder = folder
        make_frame(600).to_csv(folder / "flats.csv", index=False)

    def start(self, name, *more, n_devices=2):
        words = [
            "fit", "flats.csv", "--target", "price", "--model", f"{name}.bochner", "--ignore", "id",
            "--max-steps", STEPS, "--n-layers", 1, "--n-random-features", 10, "--batch-size", 50,
            "--validation-fraction", 0, "--n-mc-predict", 5, *more,
        ]  # fmt: skip
        environment = os.environ | {
            "XLA_FLAGS": f"--xla_force_host_platform_device_count={n_devices}",
            "JAX_PLATFORMS": "cpu",
            "JAX_COMPILATION_CACHE_DIR": str(self.folder / "cache"),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        }
        return subprocess.Popen(
            [sys.executable, "-m", "bochner", *map(str, words)],
            cwd=self.folder, env=environment, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def start_two(self, name, *more):
        port = free_port()
        address = ["--coordinator", f"127.0.0.1:{port}", "--processes", 2]
        return [self.start(name, *address, "--process-id", i, *more) for i in range(2)]

    def kept(self, name):
        """The options that keep checkpoints."""
        return ["--checkpoint", name, "--checkpoint-seconds", 0, "--resume"]

    def wait_for_checkpoint(self, process, name):
        while process.poll() is None and not list((self.folder / name).glob("step-*")):
            time.sleep(0.01)

    def arrays(self, name):
        return read_arrays(self.folder / f"{name}.bochner")[0]


def ended(processes):
    """Wait for the ends of processes; give their errors."""
    outputs = [process.communicate(timeout=_WAIT)[1] for process in processes]
    for process, errors in zip(processes, outputs, strict=True):
        assert process.returncode == 0, errors
    return outputs


@pytest.fixture(scope="module")
def team(tmp_path_factory):
    team = Team(tmp_path_factory.mktemp("team"))
    ended([team.start("alone", n_devices=1)])
    return team


def test_two_processes_with_two_devices_each_give_the_parameters_of_one_device(team):
    processes = team.start_two("four", *team.kept("four"))
    team.wait_for_checkpoint(processes[0], "four")
    addresses = set().union(*(listening(descendants(process.pid)) for process in processes))
    ended(processes)
    four, alone = team.arrays("four"), team.arrays("alone")
    assert four.keys() == alone.keys()
    for name, array in alone.items():
        np.testing.assert_allclose(four[name], array, rtol=1e-4, atol=1e-5, err_msg=name)
    assert addresses, "the coordinator listens"
    if socket.gethostbyname(socket.gethostname()).startswith("127."):
        assert {str(host) for host, _ in addresses if not host.is_loopback} == set()


@pytest.mark.parametrize("victim", [pytest.param(0, marks=pytest.mark.slow), 1])
def test_when_one_is_killed_all_stop_soon_and_resume_bit_for_bit(team, victim):
    if not (team.folder / "four.bochner").exists():
        ended(team.start_two("four"))
    name = f"killed{victim}"
    processes = team.start_two(name, *team.kept(name))
    team.wait_for_checkpoint(processes[0], name)
    processes[victim].send_signal(signal.SIGKILL)
    killed, other = time.monotonic(), processes[1 - victim]
    _, errors = other.communicate(timeout=_WAIT)
    seconds = time.monotonic() - killed
    processes[victim].communicate()
    if other.returncode != 0:  # else it was done before
        assert "a process of the training was lost" in errors
        assert "resume" in errors
        assert seconds < 60  # about ten on a machine that is not busy
    ended(team.start_two(name, *team.kept(name)))
    again, four = team.arrays(name), team.arrays("four")
    for key, array in four.items():
        np.testing.assert_array_equal(again[key], array, err_msg=key)


def test_a_port_in_use_is_a_clear_error():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(ValueError, match="process 0 cannot listen at"):
            join_processes(address, 2, 0)


def test_a_coordinator_that_is_not_there_is_a_clear_error():
    with pytest.raises(ValueError, match="no coordinator answers at"):
        join_processes(f"127.0.0.1:{free_port()}", 2, 1, wait_seconds=1)


@pytest.mark.parametrize(
    ("address", "processes", "process_id", "says"),
    [
        ("here", 2, 0, "must be HOST:PORT"),
        ("127.0.0.1:1234", 2, 2, "numbered from 0 to 1"),
        ("127.0.0.1:1234", 0, 0, "at least 1"),
        ("no-such-host.invalid:1234", 2, 1, "no coordinator answers"),
    ],
)
def test_wrong_addresses_and_numbers_are_clear_errors(address, processes, process_id, says):
    with pytest.raises(ValueError, match=says):
        join_processes(address, processes, process_id, wait_seconds=1)
