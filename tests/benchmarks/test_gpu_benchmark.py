import dataclasses
import doctest

import pytest

from benchmarks import check_fused, floors, gpu, launches
from benchmarks.configurations import A
from benchmarks.floors import Card, Work, work

CARD = Card(product_rate=2e6, vector_rate=25e6, bandwidth=1e6)


def test_one_tiny_case_runs_on_any_device():
    systems = ["bochner", "bochner-xla", "plain-jax"]
    measured = gpu.measure(quick=True, systems=systems)
    assert [record["system"] for record in measured["records"]] == systems
    for record in measured["records"]:
        assert record["us_per_step"] > 0
        assert record["floor_us"] > 0
    gpu.print_tables(measured)


def test_a_system_that_fails_costs_no_other_its_record(monkeypatch, capsys):
    def broken(*_):
        raise RuntimeError("no such luck")

    monkeypatch.setattr(gpu, "_plain_jax", broken)
    told = []
    gpu.measure(quick=True, systems=["bochner-xla", "plain-jax"], tell=told.append)
    assert [line.get("system") for line in told] == [None, "bochner-xla"]
    assert set(told[0]) == {"device", "card"}
    assert "plain-jax left out: RuntimeError: no such luck" in capsys.readouterr().err


def test_kernels_agree_with_double_precision_and_leave_nothing_unwritten(capsys):
    assert check_fused.run(n_shapes=2, seed=0)
    assert "2 of 2 shapes agree" in capsys.readouterr().out


def test_the_floor_is_the_larger_of_arithmetic_and_memory():
    assert Work(product_operations=2_000_000, sines=1_000_000, bytes=0).seconds(CARD) == 2.0
    assert Work(product_operations=2_000_000, sines=0, bytes=3_000_000).seconds(CARD) == 3.0


def test_the_work_of_a_single_layer_is_the_count_by_hand():
    single = dataclasses.replace(A, n_layers=1, batch=10, n_rf=5, d_in=2, d_out=3)
    counted = work(single, n_mc=4)
    projection, outputs = 2 * 10 * 2 * 5, 2 * 4 * 10 * 10 * 3
    assert counted.product_operations == 2 * projection + 3 * outputs
    assert counted.sines == 2 * 10 * 5
    parameters, noise = 2 * 2 * 5 + 2 * 10 * 3, 4 * 10 * 3
    assert counted.bytes == 4 * (10 * 3 + 6 * parameters + 2 * noise)


@pytest.mark.parametrize("module", [floors, launches])
def test_examples_run(module):
    assert doctest.testmod(module).failed == 0


def test_loops_inside_a_step_count_as_often_as_they_run():
    program = """
%inner (p: (s32[])) -> (s32[]) {
  %p = (s32[]) parameter(0)
  %a = s32[] fusion(%p), kind=kLoop, calls=%fused
  ROOT %b = (s32[]) custom-call(%a), custom_call_target="__gpu$xla.gpu.triton"
}
%outer (p: (s32[])) -> (s32[]) {
  %p = (s32[]) parameter(0)
  %g = s32[] get-tuple-element(%p), index=0
  %w = (s32[], /*index=1*/f32[]) while(%p), condition=%c, body=%inner, backend_config={"known_trip_count":{"n":"18"}}
  ROOT %c = (s32[]) copy(%w)
}
ENTRY %main (a: s32[]) -> s32[] {
  ROOT %w = (s32[]) while(%a), condition=%c, body=%outer, backend_config={"known_trip_count":{"n":"256"}}
}
"""
    assert launches.launches_per_step(program, 256) == 18 * 2 + 1
    assert launches.launches_per_step(program, 7) is None
