"""The parameter server decides on each push: once, in order, on all shards or none."""

import numpy as np
import optax
import pytest

from bochner.distributed.server import Coordinator, ParameterShard
from tests.distributed.local_actors import Handle, Loop

N = 5
BOUND = [-1.0, -0.5, 0.5]


class Server:
    """A coordinator and its shards in this process."""

    def __init__(self, n_shards=1, n_workers=2, max_staleness=None, scale_by_staleness=False):
        self.loop = Loop()
        self.shards = [ParameterShard() for _ in range(n_shards)]
        self.ends = np.linspace(0, N, n_shards + 1).astype(int)
        handles = [Handle(shard) for shard in self.shards]
        self.coordinator = Coordinator(handles, n_workers, max_staleness, scale_by_staleness)
        self.load(generation=1, step=0)

    def load(self, generation, step):
        for shard, piece in zip(self.shards, self.pieces(np.zeros(N, np.float32)), strict=True):
            shard.load(generation, piece, None, version=step)
        self.wait(self.coordinator.begin(generation, {}, step))

    def pieces(self, vector):
        return np.split(vector, self.ends[1:-1])

    def wait(self, call):
        return self.loop.wait(call)

    def advance(self, n_steps):
        factors = np.full(n_steps, 0.1, np.float32)
        key = np.zeros(2, np.uint32)
        return self.loop.begin(self.coordinator.advance(n_steps, factors, key, 1))

    def ticket(self, slot, incarnation=0):
        return self.wait(self.coordinator.ticket(slot, incarnation))

    def stage(self, gradient, slot, position, incarnation=0):
        push = (slot, incarnation, position)
        for shard, piece in zip(self.shards, self.pieces(gradient), strict=True):
            shard.stage(push, piece)
        return push

    def push(self, gradient, slot, position, version, incarnation=0, generation=1):
        push = self.stage(np.asarray(gradient, np.float32), slot, position, incarnation)
        return self.wait(self.coordinator.push(push, generation, version, BOUND))[0]

    @property
    def parameters(self):
        return np.concatenate([shard.fetch()[2] for shard in self.shards])

    @property
    def report(self):
        return self.wait(self.coordinator.report())


@pytest.fixture
def server():
    made = []

    def make(**options):
        made.append(Server(**options))
        return made[-1]

    yield make
    for each in made:
        each.loop.close()


def adam(gradients, rate=0.1):
    """What Adam, applied to these gradients in turn, makes of zeros."""
    optimizer = optax.adam(rate)
    parameters = np.zeros(N, np.float32)
    state = optimizer.init(parameters)
    for gradient in gradients:
        updates, state = optimizer.update(np.asarray(gradient, np.float32), state)
        parameters = parameters + updates
    return np.asarray(parameters)


@pytest.mark.parametrize("n_shards", [1, 2, 5])
def test_shards_together_make_the_steps_of_one_optimizer(server, n_shards):
    gradients = np.random.default_rng(0).normal(size=(4, N)).astype(np.float32)
    one = server(n_shards=n_shards, n_workers=1)
    chunk = one.advance(4)
    for position, gradient in enumerate(gradients):
        assert one.ticket(0)["position"] == position
        assert one.push(gradient, 0, position, version=position) == "accepted"
    np.testing.assert_allclose(one.parameters, adam(gradients), rtol=1e-5)
    assert one.wait(chunk) == pytest.approx(BOUND)
    assert [shard.fetch()[1] for shard in one.shards] == [4] * n_shards


def test_a_push_that_comes_twice_is_applied_once(server):
    one = server()
    one.advance(5)
    one.ticket(0)
    assert one.push(np.ones(N), 0, 0, version=0) == "accepted"
    once = one.parameters
    assert one.push(np.ones(N), 0, 0, version=0) == "repeated"
    np.testing.assert_array_equal(one.parameters, once)
    assert one.report["updates"] == 1


def test_the_gradient_of_a_dead_worker_is_dropped_and_counted_and_its_batch_done_again(server):
    one = server(n_shards=2)
    one.advance(5)
    assert one.ticket(0)["position"] == 0
    push = one.stage(np.ones(N, np.float32), 0, 0)
    assert one.wait(one.coordinator.replace(0)) == 1
    assert one.wait(one.coordinator.push(push, 1, 0, BOUND))[0] == "replaced"
    np.testing.assert_array_equal(one.parameters, 0)
    assert one.report["dropped_in_flight"] == 1
    assert one.ticket(0, incarnation=0) is None
    assert one.ticket(0, incarnation=1)["position"] == 0
    assert one.push(np.ones(N), 0, 0, version=0, incarnation=1) == "accepted"
    assert one.report["updates"] == 1


def test_a_worker_that_dies_between_batches_drops_nothing(server):
    one = server()
    one.advance(5)
    one.ticket(0)
    one.push(np.ones(N), 0, 0, version=0)
    one.wait(one.coordinator.replace(0))
    assert one.report["dropped_in_flight"] == 0


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_gradient_that_is_not_finite_anywhere_is_refused_on_all_shards(server, bad):
    one = server(n_shards=2)
    one.advance(5)
    one.ticket(0)
    gradient = np.ones(N)
    gradient[-1] = bad
    assert one.push(gradient, 0, 0, version=0) == "not_finite"
    np.testing.assert_array_equal(one.parameters, 0)
    assert one.report["not_finite"] == 1
    assert one.ticket(0)["position"] == 1


def test_when_no_worker_has_finite_gradients_any_more_the_chunk_ends_without_a_bound(server):
    one = server()
    chunk = one.advance(10)
    one.ticket(0)
    for position in range(20):  # of one worker alone they say nothing about the parameters
        assert one.push(np.full(N, np.nan), 0, position, version=0) == "not_finite"
    assert not chunk.done()
    one.push(np.ones(N), 1, 0, version=0)
    for position in range(1, 6):
        one.push(np.full(N, np.nan), 1, position, version=0)
    assert not chunk.done()
    for position in range(20, 25):
        one.push(np.full(N, np.nan), 0, position, version=0)
    assert np.all(np.isnan(one.wait(chunk)))
    one.load(generation=2, step=0)  # as the loop does, which goes back
    chunk = one.advance(1)
    one.push(np.ones(N), 0, 0, version=0, generation=2)
    assert one.wait(chunk) == pytest.approx(BOUND)


def test_staleness_is_counted_and_bounded(server):
    one = server(max_staleness=1)
    one.advance(10)
    one.ticket(0)
    one.ticket(1)
    for position in range(3):
        one.push(np.ones(N), 0, position, version=position)
    before = one.parameters
    assert one.push(np.ones(N), 1, 0, version=0) == "too_stale"
    np.testing.assert_array_equal(one.parameters, before)
    assert one.ticket(1)["position"] == 0
    assert one.push(np.ones(N), 1, 0, version=2) == "accepted"
    report = one.report
    assert report["staleness"] == {"0": 3, "1": 1}
    assert report["too_stale"] == 1
    assert report["updates_of_worker"] == [3, 1]


def test_steps_are_divided_by_one_plus_their_staleness(server):
    gradients, reached = [np.full(N, 1.0), np.full(N, 3.0), np.full(N, -6.0)], {}
    for scaled in (False, True):
        one = server(scale_by_staleness=scaled)
        one.advance(10)
        one.ticket(0)
        one.ticket(1)
        one.push(gradients[0], 0, 0, version=0)
        one.push(gradients[1], 0, 1, version=1)
        before = one.parameters
        one.push(gradients[2], 1, 0, version=0)
        reached[scaled] = before, one.parameters
    np.testing.assert_allclose(reached[False][1], adam(gradients), rtol=1e-5)
    np.testing.assert_array_equal(reached[True][0], reached[False][0])
    whole, third = (after - before for before, after in (reached[False], reached[True]))
    np.testing.assert_allclose(third, whole / 3, rtol=1e-4)


def test_a_chunk_ends_at_its_last_update_and_later_pushes_wait_for_the_next(server):
    one = server()
    chunk = one.advance(1)
    one.ticket(0)
    one.ticket(1)
    one.push(np.ones(N), 0, 0, version=0)
    assert one.wait(chunk) == pytest.approx(BOUND)
    reached = one.parameters
    push = one.stage(np.ones(N, np.float32), 1, 0)
    late = one.loop.begin(one.coordinator.push(push, 1, 0, BOUND))
    np.testing.assert_array_equal(one.parameters, reached)
    assert not late.done()
    one.advance(1)
    assert one.wait(late)[0] == "accepted"
    assert one.report["staleness"] == {"0": 1, "1": 1}


def test_gradients_of_an_earlier_state_are_outdated(server):
    one = server()
    one.advance(2)
    one.ticket(0)
    one.load(generation=2, step=40)
    one.advance(2)
    assert one.push(np.ones(N), 0, 20, version=40, generation=1) == "outdated"
    np.testing.assert_array_equal(one.parameters, 0)
    assert one.report["outdated"] == 1


def test_slots_go_on_at_the_place_of_a_serial_run(server):
    one = server(n_workers=3)
    one.load(generation=2, step=7)
    one.advance(3)
    assert [one.ticket(slot)["position"] for slot in range(3)] == [3, 2, 2]
