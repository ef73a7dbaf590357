"""Fits in processes of their own: what is run, what is kept, and what a failing one leaves."""

import os
from importlib.util import find_spec

import numpy as np
import pytest

from benchmarks.suite import processes, records, run, systems, tables
from benchmarks.suite.work import unpacked

pytestmark = pytest.mark.skipif(
    not os.path.isdir(os.path.join(os.environ.get("BOCHNER_DATA", ""), "suite")),
    reason="BOCHNER_DATA names no folder with the suite's tables",
)


def test_first_splits_come_first_and_small_tables_before_large_ones():
    found = run.jobs(["constant"], ["ring", "servo", "adult"])
    assert [(job["data"], job["split"]) for job in found][:4] == [
        ("servo", 0), ("ring", 0), ("adult", 0), ("servo", 1),
    ]  # fmt: skip
    assert len(found) == 10 + 2 + 1


def test_a_system_is_not_asked_for_tables_that_are_not_for_it():
    assert run.jobs(["exact GP"], ["adult"]) == []
    assert len(run.jobs(["RealMLP"], ["ring"])) == 1
    assert len(run.jobs([systems.OURS[0]], ["concrete"])) == 20
    assert run.jobs(["bochner, exact alone"], ["mnist"]) == []


def test_a_kind_of_member_is_left_out_only_where_the_default_has_it_beside_others():
    small, large = "servo", "adult"
    for kind, names in (
        ("constant", [small, large, "mnist"]),
        ("linear", [small, large, "mnist"]),
        ("exact", [small]),
        ("landmarks", [large]),
        ("deep", [large]),
    ):
        found = run.jobs([systems.without(kind)], [small, large, "mnist"], [0])
        assert [job["data"] for job in found] == names


def test_every_system_has_a_file_and_those_less_a_member_run_only_where_they_are_asked_for():
    for place in systems.PLACES.values():
        assert find_spec(f"benchmarks.suite.systems.{place.module}")
    others = set(systems.NAMES) - set(systems.USUAL)
    assert others == {systems.without(kind) for kind in systems.KINDS}
    assert systems.USUAL[0] == systems.OURS[0] == "bochner"


def test_fits_are_recorded_with_where_they_come_from_and_are_not_run_again(tmp_path):
    jobs = run.jobs(["constant", "linear"], ["servo", "heart"], [0])
    first = list(run.run(tmp_path, jobs, processes=2))
    assert {(one["system"], one["data"]) for one in first} == {
        (system, name) for system in ("constant", "linear") for name in ("servo", "heart")
    }
    for one in first:
        assert one["commit"]
        assert {"numpy", "scikit-learn"} <= set(one["versions"])
        densities = unpacked(one["densities"])
        assert len(densities) == tables.n_rows(one["data"]) // 10
        assert np.mean(densities) == pytest.approx(one["scores"]["log_likelihood"], abs=2e-3)
    assert list(run.run(tmp_path, jobs, processes=1)) == []


def test_a_failing_fit_is_recorded_and_takes_no_other_along(tmp_path):
    jobs = [
        {"system": "constant", "data": "servo", "split": "none"},
        {"system": "constant", "data": "servo", "split": 0},
    ]
    found = list(processes.run_jobs(jobs, 2, lambda job: 60.0))
    assert sum("failed" in one for one in found) == 1
    assert sum("scores" in one for one in found) == 1


def test_a_record_of_a_failure_is_kept_apart_from_scores(tmp_path):
    failed = {
        "system": "constant",
        "data": "servo",
        "split": 0,
        "failed": "x",
        "stopped": False,
        "commit": "0",
    }
    records.append(tmp_path, failed)
    (again,) = run.run(tmp_path, run.jobs(["constant"], ["servo"], [0]), processes=1)
    assert "scores" in again
