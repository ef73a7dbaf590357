"""Random tables, random settings, random kills, through both interfaces, for as long as asked.

`python -m tests.soak --seconds 3600` ends with a summary, and with exit code 1 if anything was wrong. A case is a
number under a seed; `python -m tests.soak --seed 5 --case 17` runs it again.
"""

import argparse
import collections
import concurrent.futures
import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import time

_SECONDS_A_CASE = 1800


def main() -> int:
    """Run cases until the time is over, and tell what came of them."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--seconds", type=float, default=3600, help="no case starts after these")
    parser.add_argument("--workers", type=int, default=2, help="cases at a time")
    parser.add_argument("--seed", type=int, default=None, help="of everything; printed")
    parser.add_argument("--case", type=int, default=None, help="run this one alone")
    asked = parser.parse_args()
    seed = int(time.time()) if asked.seed is None else asked.seed
    print(f"seed {seed}", flush=True)
    began = time.monotonic()
    if asked.case is not None:
        told = [_run(seed, asked.case)]
        _tell(seed, told[0])
    else:
        told = _run_many(seed, asked.workers, began + asked.seconds)
    return _sum_up(told, time.monotonic() - began)


def _run_many(seed: int, n_workers: int, end: float) -> list[dict]:
    numbers, told, lock = itertools.count(), [], threading.Lock()

    def work() -> None:
        while time.monotonic() < end:
            with lock:
                number = next(numbers)
            one = _run(seed, number)
            with lock:
                told.append(one)
                _tell(seed, one)

    with concurrent.futures.ThreadPoolExecutor(n_workers) as pool:
        for future in [pool.submit(work) for _ in range(n_workers)]:
            future.result()
    return told


def _run(seed: int, number: int) -> dict:
    """Run a case as a process group, so that what hangs can be ended with all that it started."""
    began = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.soak.case", str(seed), str(number)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        output, errors = process.communicate(timeout=_SECONDS_A_CASE)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, errors = process.communicate()
        errors = f"more than {_SECONDS_A_CASE} seconds; {errors}"
    try:
        told = json.loads(output.splitlines()[-1])
    except (IndexError, ValueError):
        told = _wrong(number, f"ended with {process.returncode}: {errors[-1500:]}")
    return told | {"seconds": time.monotonic() - began}


def _wrong(number: int, why: str) -> dict:
    return {"number": number, "kind": "process", "end": "wrong", "why": why, "kills": 0}


def _tell(seed: int, told: dict) -> None:
    line = f"{told['number']:5d}  {told['seconds']:5.1f} s  {told['kind']:18s} {told['end']}"
    print(line, flush=True)
    if told["end"] == "wrong":
        print(f"       python -m tests.soak --seed {seed} --case {told['number']}\n{told['why']}")
    elif told["end"] == "refused":
        print(f"       {told['why'][:200]}")


def _sum_up(told: list[dict], seconds: float) -> int:
    ends = collections.Counter((one["kind"], one["end"]) for one in told)
    wrong = [one["number"] for one in told if one["end"] == "wrong"]
    print(f"\n{len(told)} cases in {seconds:.0f} s, {sum(one['kills'] for one in told)} kills")
    for (kind, end), n in sorted(ends.items()):
        print(f"  {kind:18s} {end:8s} {n}")
    print(f"wrong: {wrong or 'nothing'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
