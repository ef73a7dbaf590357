"""Several devices in step give the answer of one, to the precision of sums in another order."""

import dataclasses
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bochner import Deep, DeepGPRegressor
from bochner.distributed import Synchronous
from bochner.distributed.devices import Devices
from bochner.gp.reparameterization import DrawWeights, LocalReparameterization
from bochner.rows.spool import Spool, StepsOnDisk
from bochner.training import Checkpoints, Plan, TrainingStoppedError
from bochner.training.chunk import run_chunk
from tests.distributed.test_worker import BATCH, one_chunk
from tests.training import problems

pytestmark = pytest.mark.skipif(len(jax.devices()) < 2, reason="needs two devices")


def two():
    return Devices(jax.devices()[:2])


def assert_close(one, other):
    for left, right in zip(problems.leaves(one), problems.leaves(other), strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-4, atol=2e-6)


@pytest.mark.parametrize(
    "options",
    [
        {"batch_size": 20},
        {"batch_size": 21, "reparameterization": LocalReparameterization()},  # one row more on one
        {"batch_size": 100, "plan": Plan(theta_from=20, n_mc=1, n_mc_final=3)},  # all rows, stages
    ],
    ids=["even", "uneven", "all-rows"],
)
def test_two_devices_give_the_parameters_of_one(options):
    one = problems.short_training(**options)
    both = problems.short_training(engine=two(), **options)
    assert_close(one, both)
    assert [record.elbo for record in one.history] == pytest.approx(
        [record.elbo for record in both.history], rel=1e-4
    )


def sizes_of_products(program):
    """The sizes of the axes of all matrix products in a compiled program."""
    shapes = re.findall(r"f32\[([\d,]+)\]\S* dot\(", program)
    return {int(size) for shape in shapes for size in shape.split(",")}


def test_each_device_computes_its_rows_only_and_sums_are_exchanged():
    engine = two()
    inputs, state = one_chunk(DrawWeights())
    placed = dataclasses.replace(engine.replicate(inputs), batch_sharding=engine._by_rows)
    alone = run_chunk.lower(inputs, state).compile().compiled.as_text()
    both = run_chunk.lower(placed, engine.replicate(state)).compile().compiled.as_text()
    assert BATCH in sizes_of_products(alone)
    assert "all-reduce" not in alone
    assert BATCH not in sizes_of_products(both)
    assert BATCH // 2 in sizes_of_products(both)
    assert "all-reduce" in both


def test_rows_on_disk_are_divided_as_those_in_memory():
    rows = problems.table(200)

    class Parts(Spool):
        def in_steps(self, batch_size, seed):
            return StepsOnDisk(self, batch_size, seed, part_rows=50, block_rows=5)

    with Parts(d_in=rows.X.shape[1], n_targets=1, classes=False) as spool:
        spool.append(*(np.asarray(column) for column in (rows.X, rows.Y, rows.weights)))
        one = problems.short_training(rows=spool)
        both = problems.short_training(rows=spool, engine=two())
    assert_close(one, both)


def test_a_training_on_two_devices_goes_on_from_its_checkpoint_bit_for_bit(tmp_path):
    whole = problems.short_training(engine=two())

    class Stop:
        def on_record(self, record):
            if record.step == 30:
                raise TrainingStoppedError("enough", 15)

        def on_end(self):
            pass

    def checkpoints(**options):
        return Checkpoints(tmp_path, {}, seconds_between=0, **options)

    with pytest.raises(TrainingStoppedError):
        problems.short_training(engine=two(), checkpoints=checkpoints(), callbacks=[Stop()])
    again = problems.short_training(engine=two(), checkpoints=checkpoints(resume=True))
    for left, right in zip(problems.leaves(whole), problems.leaves(again), strict=True):
        np.testing.assert_array_equal(left, right)


def test_estimators_train_on_several_devices(tmp_path):
    generator = np.random.default_rng(0)
    X = generator.normal(size=(250, 2))
    y = np.sin(X[:, 0]) + X[:, 1]
    deep = Deep(objective="elbo", max_steps=50, n_layers=1, n_random_features=10)
    one = DeepGPRegressor(deep, random_state=0).fit(X, y)
    both = DeepGPRegressor(deep, random_state=0, distributed=Synchronous(2)).fit(X, y)
    np.testing.assert_allclose(one.predict(X), both.predict(X), rtol=1e-3, atol=1e-4)
    assert all(len(leaf.sharding.device_set) == 1 for leaf in jax.tree.leaves(both.model_))
    both.save(tmp_path / "model.bochner")


@pytest.mark.parametrize(
    ("devices", "says"), [(0, "at least 1"), ("some", '"all"'), (64, "64 devices were asked for")]
)
def test_devices_that_are_not_there_are_refused(devices, says):
    with pytest.raises(ValueError, match=says):
        Synchronous(devices).engine()


def test_something_else_as_distribution_is_refused_before_any_work():
    with pytest.raises(ValueError, match="`distributed` must be None"):
        DeepGPRegressor(distributed="all").fit(jnp.zeros((3, 1)), jnp.zeros(3))


def test_processes_with_other_rows_or_settings_are_refused(monkeypatch):
    engine = Devices(jax.devices()[:1])
    engine.check_same(lambda: pytest.fail("one process has nothing to compare"))
    engine._several = True
    marks = []
    monkeypatch.setattr(engine, "_gathered", lambda mark: marks.append(mark) or np.array(marks))
    engine.check_same(lambda: "seed 0")
    engine.check_same(lambda: "seed 0")
    with pytest.raises(ValueError, match=r"processes \[2\] have other settings or rows"):
        engine.check_same(lambda: "seed 1")
