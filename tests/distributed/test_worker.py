"""A worker's gradients are those of the compiled steps on one device."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from bochner.distributed.blueprint import described, skeleton
from bochner.distributed.server import Coordinator, ParameterShard
from bochner.distributed.worker import Worker, program_of, step_of_shard
from bochner.features.spectra import SPECTRA
from bochner.gp.layers import LayerSettings
from bochner.gp.model import DeepGP
from bochner.gp.reparameterization import DrawWeights, LocalReparameterization
from bochner.kernels import KERNELS
from bochner.likelihoods import CLASSIFICATION_LIKELIHOODS, REGRESSION_LIKELIHOODS, Gaussian
from bochner.ops import PallasLayer
from bochner.rows.spool import Spool
from bochner.training import Constant, Stage, trainable
from bochner.training.chunk import ChunkInputs, State, chunk_capacity, run_chunk
from bochner.training.loop import ADAM
from tests.distributed.local_actors import Handle, Loop
from tests.training import problems

BATCH, N_STEPS, RATE = 24, 12, 0.01
STAGE = Stage(theta=True, omega=True, n_mc=1)
SEED = (0, 3)
KEY = jax.random.key(3)


def one_chunk(reparameterization):
    """The inputs of a chunk of steps on one device, and its state."""
    model, rows = problems.model(), problems.table()
    learned, held = eqx.partition(model, trainable(model, STAGE))
    capacity = chunk_capacity(model, STAGE, reparameterization, BATCH)
    table, index = rows.in_steps(BATCH, SEED).take(0, N_STEPS, capacity)
    inputs = ChunkInputs(
        held=held, table=table, scale=jnp.asarray(rows.n_rows / BATCH, jnp.float32),
        total_weight=jnp.asarray(rows.total_weight, jnp.float32), index=jnp.asarray(index),
        fractions=jnp.zeros(2), step_size=jnp.asarray(RATE), n_steps=jnp.asarray(N_STEPS, jnp.int32),
        key=KEY, capacity=capacity, stage=STAGE, schedule=Constant(),
        reparameterization=reparameterization, optimizer=ADAM,
    )  # fmt: skip
    return inputs, State(learned, ADAM.init(learned))


def trained_by_one_worker(n_shards, reparameterization=DrawWeights(), spool=None):  # noqa: B008
    """Run the same steps by a worker, a coordinator and shards in this process."""
    (inputs, state), loop = one_chunk(reparameterization), Loop()
    parameters, unravel = ravel_pytree(state.learned)
    ends = np.linspace(0, parameters.size, n_shards + 1).astype(int)[1:-1]
    shards = [ParameterShard() for _ in range(n_shards)]
    for shard, piece in zip(shards, np.split(np.asarray(parameters), ends), strict=True):
        shard.load(1, piece, None, version=0)
    handles = [Handle(shard) for shard in shards]
    coordinator = Coordinator(handles, 1, None, False)
    program = program_of(inputs, state.learned, n_targets=1)
    loop.wait(coordinator.begin(1, program, 0))
    settings = {"n_workers": 1, "batch_size": BATCH, "seed": list(SEED), "spool": spool}
    rows = inputs.table
    columns = [] if spool else [np.asarray(column) for column in (rows.X, rows.Y, rows.weights)]
    worker = Worker(0, 0, Handle(coordinator), handles, settings, *columns, wait=loop.wait)
    factors, key = np.full(N_STEPS, RATE, np.float32), np.asarray(jax.random.key_data(KEY))
    chunk = loop.begin(coordinator.advance(N_STEPS, factors, key, inputs.capacity))
    for _ in range(N_STEPS):
        assert worker.work_once()
    loop.wait(chunk)
    loop.close()
    vector = np.concatenate([shard.fetch()[2] for shard in shards])
    return [np.asarray(leaf) for leaf in jax.tree.leaves(unravel(jnp.asarray(vector)))]


@pytest.mark.parametrize(
    ("n_shards", "reparameterization"), [(1, DrawWeights()), (3, LocalReparameterization())]
)
def test_one_worker_makes_the_steps_of_a_serial_training(n_shards, reparameterization):
    found = trained_by_one_worker(n_shards, reparameterization)
    before = jax.tree.leaves(one_chunk(reparameterization)[1].learned)
    state, _ = run_chunk(*one_chunk(reparameterization))
    expected = jax.tree.leaves(state.learned)
    for one, other, first in zip(found, expected, before, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
        assert not np.array_equal(one, first)


def test_rows_of_another_process_are_read_from_its_file():
    rows = problems.table()
    with Spool(d_in=rows.X.shape[1], n_targets=1, classes=False, named=True) as spool:
        columns = (np.asarray(column) for column in (rows.X, rows.Y, rows.weights))
        spool.append(*columns)
        from_file = trained_by_one_worker(1, spool=spool.shared())
    for one, other in zip(from_file, trained_by_one_worker(1), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_file_that_cannot_be_read_is_named():
    with Spool(d_in=1, n_targets=1, classes=False, named=True) as spool:
        shared = spool.shared()
    with pytest.raises(OSError, match="all hosts share"):
        Spool.opened(**shared)


@pytest.mark.parametrize("steps_a_table", [None, 1, 3])
def test_slots_share_out_all_steps_and_none_twice(steps_a_table):
    n_workers, n = 4, 30
    dealt = [
        step_of_shard(position, slot, n_workers, steps_a_table)
        for slot in range(n_workers)
        for position in range(n)
    ]
    assert sorted(dealt) == list(range(n_workers * n))


@pytest.mark.parametrize(
    ("kernel", "omega", "ards"),
    [
        ("arccos0", "prior-fixed", [False]),  # the only form in which it can be learned
        *((kernel, "var-fixed", [True, False, False]) for kernel in KERNELS if kernel != "arccos0"),
        *(("rbf", omega, [True, True, True]) for omega in SPECTRA),
    ],
)
def test_models_are_rebuilt_from_names(kernel, omega, ards):
    settings = [
        LayerSettings(2, 5, kernel=KERNELS[kernel], omega=SPECTRA[omega], ard=ard) for ard in ards
    ]
    model = DeepGP.start(
        settings, Gaussian.start(2), d_in=3, feed_inputs=kernel == "rbf", key=jax.random.key(0)
    )
    found = skeleton(described(model, DrawWeights(), 2))
    assert jax.tree.structure(found) == jax.tree.structure(model)
    assert [leaf.shape for leaf in jax.tree.leaves(found)] == [
        leaf.shape for leaf in jax.tree.leaves(model)
    ]


@pytest.mark.parametrize("name", [*REGRESSION_LIKELIHOODS, *CLASSIFICATION_LIKELIHOODS])
def test_likelihoods_are_rebuilt_from_names(name):
    likelihood = {**REGRESSION_LIKELIHOODS, **CLASSIFICATION_LIKELIHOODS}[name]
    model = DeepGP.start(
        [LayerSettings(likelihood.n_functions(2), 5)],
        likelihood.from_targets(np.zeros((4, 1)), 0.1),
        d_in=3,
        feed_inputs=False,
        key=jax.random.key(0),
    )
    assert described(model, LocalReparameterization(), 1)["likelihood"] == name


def test_kernels_for_gpus_are_refused_rather_than_forgotten():
    model = DeepGP.start(
        [LayerSettings(1, 5)], Gaussian.start(1), d_in=1, feed_inputs=False, key=jax.random.key(0)
    )
    with pytest.raises(ValueError, match="on the plain backend, in float32"):
        described(model, DrawWeights(PallasLayer()), 1)


def test_a_part_without_a_name_is_refused():
    class Own(Gaussian):
        pass

    model = DeepGP.start(
        [LayerSettings(1, 5)], Own(jnp.zeros(1)), d_in=1, feed_inputs=False, key=jax.random.key(0)
    )
    with pytest.raises(ValueError, match="Own has no name"):
        described(model, DrawWeights(), 1)


class OvertakenAtFirst(Worker):
    """A worker during whose first gradient, as it compiles, the other one makes an update."""

    def __init__(self, overtake, *arguments, **options):
        super().__init__(*arguments, **options)
        self.overtake = overtake

    def _gradient(self, parameters, ticket):
        found = super()._gradient(parameters, ticket)
        if self.overtake is not None:
            self.overtake(found[0])
            self.overtake = None
        return found


@pytest.mark.parametrize("overtaken", [True, False])
def test_a_new_worker_drops_a_gradient_of_parameters_from_before_it_was_ready(overtaken):
    (inputs, state), loop = one_chunk(DrawWeights()), Loop()
    shard = ParameterShard()
    shard.load(1, np.asarray(ravel_pytree(state.learned)[0]), None, version=0)
    coordinator = Coordinator([Handle(shard)], 2, None, False)
    loop.wait(coordinator.begin(1, program_of(inputs, state.learned, n_targets=1), 0))
    factors, key = np.full(N_STEPS, RATE, np.float32), np.asarray(jax.random.key_data(KEY))
    loop.begin(coordinator.advance(N_STEPS, factors, key, 1))
    loop.wait(coordinator.ticket(1, 0))

    def update(gradient):
        shard.stage((1, 0, 0), gradient)
        assert loop.wait(coordinator.push((1, 0, 0), 1, 0, [0.0] * 3))[0] == "accepted"

    settings = {"n_workers": 2, "batch_size": BATCH, "seed": list(SEED), "spool": None}
    rows = inputs.table
    columns = [np.asarray(column) for column in (rows.X, rows.Y, rows.weights)]
    worker = OvertakenAtFirst(
        update if overtaken else None, 0, 0, Handle(coordinator), [Handle(shard)], settings, *columns,
        wait=loop.wait,
    )  # fmt: skip
    assert worker.work_once()
    assert worker.work_once()
    report = loop.wait(coordinator.report())
    loop.close()
    assert report["staleness"] == {"0": 2}, (
        "no gradient was applied to parameters that had moved on"
    )
    assert report["updates_of_worker"] == ([1, 1] if overtaken else [2, 0])
