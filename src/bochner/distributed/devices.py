"""Several devices in step: the model on each, the rows of each batch divided among them."""

import contextlib
import dataclasses
import hashlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import PyTree

from bochner.distributed.processes import ProcessLostError, leave_at_once, meet
from bochner.inference.bound import Bound
from bochner.rows.table import Table
from bochner.system.saving import format_arrays, parse_arrays
from bochner.training import AbstractEngine, Checkpoints
from bochner.training.chunk import ChunkInputs, State, run_chunk

_AXIS = "rows"


class Devices(AbstractEngine):
    """One program on several devices, of one process or of many.

    Every device holds the model, the optimizer's state and the table, and computes the gradient of its rows of the
    batch; the compiler adds the sums over devices. All draw the same noise, so updates are those of one device with the
    same batch, up to the order of sums.

    Args:
        devices: the devices, of all processes and in the same order in each.

    Example:
        >>> import jax
        >>> from bochner.distributed.devices import Devices
        >>> Devices(jax.devices()[:1]).is_first
        True
    """

    def __init__(self, devices: Sequence[Any]):
        mesh = Mesh(np.array(devices), (_AXIS,))
        self._whole = NamedSharding(mesh, PartitionSpec())
        self._by_rows = NamedSharding(mesh, PartitionSpec(_AXIS))
        self._several = len({device.process_index for device in devices}) > 1
        self.is_first = not self._several or jax.process_index() == 0
        self._table: tuple[Table, Table] | None = None
        self._programs: set[Any] = set()

    def run(self, inputs: ChunkInputs, state: State, start: int) -> tuple[State, Bound]:  # noqa: D102
        inputs = eqx.tree_at(lambda inputs: inputs.table, inputs, self._placed(inputs.table))
        placed = dataclasses.replace(self.replicate(inputs), batch_sharding=self._by_rows)
        with self._noticing_loss():
            if self._several:
                self._compile(placed, state)
                meet()
            state, bound = run_chunk(placed, state)
            return state, jax.block_until_ready(bound)

    def replicate(self, tree: PyTree) -> PyTree:  # noqa: D102
        return jax.tree.map(lambda leaf: self._put(leaf) if eqx.is_array(leaf) else leaf, tree)

    def here(self, tree: PyTree) -> PyTree:  # noqa: D102
        return jax.tree.map(lambda leaf: _on_one(leaf) if eqx.is_array(leaf) else leaf, tree)

    def broadcast(self, value: float) -> float:  # noqa: D102
        return float(self._gathered(value)[0])

    def check_same(self, describe: Callable[[], str]) -> None:  # noqa: D102
        if not self._several:
            return
        digest = hashlib.sha256(describe().encode()).digest()
        # Six bytes, which a float64 holds exactly.
        found = self._gathered(float(int.from_bytes(digest[:6], "big")))
        others = [number for number, value in enumerate(found) if value != found[0]]
        if others:
            raise ValueError(
                f"processes {others} have other settings or rows than process 0: start all of them with the same "
                "table, seed and settings."
            )

    def any_signal(self, signal: int | None) -> int | None:  # noqa: D102
        return int(max(self._gathered(signal or 0))) or None

    def checkpoints(self, make: Callable[[], Checkpoints]) -> Any:  # noqa: D102
        if not self._several:
            return make()
        return _FilesOfTheFirst(make() if self.is_first else None, self._shared_bytes)

    def _placed(self, table: Table) -> Table:
        """Give the table on all devices; it stays there for as long as steps take their rows from it."""
        if self._table is None or self._table[0] is not table:
            self._table = None  # frees the memory before the next one is made
            self._table = table, self.replicate(table)
        return self._table[1]

    def _compile(self, placed: ChunkInputs, state: State) -> None:
        """Compile the chunk before the processes meet, by running none of its steps: that exchanges nothing."""
        shapes = [leaf.shape for leaf in jax.tree.leaves((placed.table, placed.index))]
        program = (placed.stage, placed.capacity, str(shapes))
        if program not in self._programs:
            none = dataclasses.replace(placed, n_steps=self._put(jnp.zeros((), jnp.int32)))
            jax.block_until_ready(run_chunk(none, jax.tree.map(jnp.copy, state))[1])
            self._programs.add(program)

    def _put(self, leaf: jax.Array) -> jax.Array:
        if leaf.sharding.is_equivalent_to(self._whole, leaf.ndim):
            return leaf
        if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            data = self._put(jax.random.key_data(leaf))
            return jax.random.wrap_key_data(data, impl=jax.random.key_impl(leaf))
        if not self._several:
            return jax.device_put(leaf, self._whole)
        value = np.asarray(leaf)
        return jax.make_array_from_callback(value.shape, self._whole, lambda index: value[index])

    def _gathered(self, value: float) -> np.ndarray:
        if not self._several:
            return np.array([value])
        with self._noticing_loss():
            meet()
            # As bytes, since JAX would round a float64 to float32.
            own = np.frombuffer(np.float64(value).tobytes(), np.uint8)
            return np.frombuffer(
                np.asarray(multihost_utils.process_allgather(own)).tobytes(), np.float64
            )

    def _shared_bytes(self, content: bytes) -> bytes:
        """Give all processes what the first one has."""
        length = int(self.broadcast(len(content)))
        own = np.zeros(length, np.uint8)
        if self.is_first:
            own[:] = np.frombuffer(content, np.uint8)
        with self._noticing_loss():
            meet()
            return np.asarray(multihost_utils.broadcast_one_to_all(own)).tobytes()

    @contextlib.contextmanager
    def _noticing_loss(self) -> Iterator[None]:
        try:
            yield
        except jax.errors.JaxRuntimeError as error:
            if not self._several:
                raise
            leave_at_once()
            if "RESOURCE_EXHAUSTED" in str(error):
                raise  # out of memory here: the others are well
            raise ProcessLostError(error) from error


def _on_one(leaf: jax.Array) -> jax.Array:
    return leaf.addressable_data(0) if len(leaf.sharding.device_set) > 1 else leaf


class _FilesOfTheFirst:
    """Checkpoints of which the first process alone reads and writes files; the others hear from it what they hold."""

    def __init__(self, own: Checkpoints | None, share: Callable[[bytes], bytes]):
        self._own, self._share = own, share
        self.folder = "the folder of the first process" if own is None else own.folder

    def in_use(self) -> contextlib.AbstractContextManager:
        return contextlib.nullcontext() if self._own is None else self._own.in_use()

    @property
    def due(self) -> bool:
        return self._own is not None and self._own.due

    def write(self, step: int, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        if self._own is not None:
            self._own.write(step, arrays, header)

    def newest(self) -> tuple[dict[str, np.ndarray], dict[str, Any]] | None:
        found = None if self._own is None else self._own.newest()
        content = self._share(b"" if found is None else format_arrays(*found))
        return parse_arrays(content, "the first process's checkpoint") if content else None
