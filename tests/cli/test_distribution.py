"""Flags that spread a training over devices and workers."""

import pytest

from bochner.cli.distribution import AskedDistribution
from bochner.distributed import Asynchronous, Synchronous


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ({}, None),
        ({"devices": "all"}, Synchronous("all")),
        ({"devices": "2"}, Synchronous(2)),
        ({"mode": "async", "workers": 3}, Asynchronous(n_workers=3)),
        (
            {"mode": "async", "workers": 3, "address": "host:6379"},
            Asynchronous(n_workers=3, address="host:6379"),
        ),
        ({"mode": "async"}, Asynchronous()),
        (
            {"mode": "async", "shards": 2, "max_staleness": 0, "scale_by_staleness": True},
            Asynchronous(n_shards=2, max_staleness=0, scale_by_staleness=True),
        ),
        ({"mode": "async", "gpus_a_worker": 0.5}, Asynchronous(gpus_a_worker=0.5)),
    ],
)
def test_flags_name_a_way_to_train(flags, expected):
    asked = AskedDistribution(**flags)
    assert asked.distribution() == expected
    assert asked.is_first


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        ({"workers": 2}, "add --mode async"),
        ({"address": "host:1"}, "add --mode async"),
        ({"mode": "async", "devices": "all"}, "belong to synchronous training"),
        ({"mode": "async", "coordinator": "host:1"}, "belong to synchronous training"),
        ({"max_staleness": 3}, "--max-staleness belongs to asynchronous training"),
        ({"devices": "two"}, '--devices must be "all" or a number'),
        (
            {"devices": "2", "coordinator": "host:1", "processes": 2, "process_id": 0},
            "several processes train on all their devices",
        ),
        ({"mode": "both"}, "`mode` must be one of"),
        ({"coordinator": "nowhere", "processes": 2, "process_id": 0}, "must be HOST:PORT"),
    ],
)
def test_flags_that_do_not_go_together_are_refused(flags, says):
    with pytest.raises(ValueError, match=says):
        AskedDistribution(**flags).distribution()


def test_fit_trains_on_several_devices(call, files):
    call(
        "fit", files / "flats.csv", "--target", "price", "--model", files / "two.bochner",
        "--ignore", "id", "--max-steps", 20, "--devices", 2, "--width", 2, "--n-random-features", 10,
        "--n-layers", 2, "--quiet",
    )  # fmt: skip
    call("fit", files / "flats.csv", "--target", "price", "--model", files / "x.bochner",
         "--devices", 99, "--quiet", code=1)  # fmt: skip
