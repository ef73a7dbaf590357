"""Microseconds a training step on a GPU, for each system on each case, beside the floor of the card."""

import dataclasses
import functools
import importlib.util
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypedDict

import jax
import jax.numpy as jnp
from rich.console import Console
from rich.table import Table as RichTable

from benchmarks import bochner_model, plain_jax
from benchmarks.configurations import A, B, C, Configuration
from benchmarks.floors import Card, work
from benchmarks.launches import launches_per_step
from bochner.gp.reparameterization import DrawWeights
from bochner.ops import AbstractBackend, PallasLayer, XlaLayer
from bochner.ops.fused_layer import Precision
from bochner.training.chunk import run_chunk

_SECONDS_A_REPETITION = 0.2
_console = Console(stderr=True, markup=False)


@dataclasses.dataclass(frozen=True)
class Case:
    """A configuration and a number of Monte Carlo samples."""

    configuration: Configuration
    n_mc: int = 1

    @property
    def name(self) -> str:
        """How the case is called in the tables."""
        return self.configuration.name + (f", {self.n_mc} samples" if self.n_mc > 1 else "")


_AIRLINE = dataclasses.replace(A, feed_inputs=True, n_rows=200_000)
CASES = (
    Case(A),
    Case(A, 100),
    Case(B),
    Case(dataclasses.replace(B, name="B, 10,000 rows", batch=10_000, n_rows=20_000)),
    Case(C),
    Case(dataclasses.replace(_AIRLINE, name="airline, 10,000 rows", batch=10_000)),
    Case(dataclasses.replace(_AIRLINE, name="airline, 100,000 rows", batch=100_000)),
    Case(dataclasses.replace(_AIRLINE, name="airline, 10,000 rows", batch=10_000), 100),
)
QUICK = (Case(dataclasses.replace(A, name="tiny", batch=20, n_rf=10, n_rows=40)),)


def paths(*, interpret: bool) -> dict[str, AbstractBackend]:
    """The ways in which bochner's step computes its layers, by the name of the system; the first is the default."""
    chosen = functools.partial(PallasLayer, interpret=interpret, where_faster=True)
    return {
        "bochner": chosen(),
        "bochner-xla": XlaLayer(),
        "bochner-tf32": chosen(Precision.TF32),
        "bochner-xla-tf32": XlaLayer(Precision.TF32),
        "bochner-bfloat16": chosen(Precision.BFLOAT16),
    }


class Record(TypedDict):
    """One timing; times are medians over the repetitions."""

    case: str
    system: str
    us_per_step: float
    us_per_step_min: float
    rows_per_second: float
    share_of_floor: float
    floor_us: float
    compile_seconds: float
    launches_per_step: int | None


@dataclasses.dataclass
class Contestant:
    """A system that is compiled: `run(n)` takes n times `unit` steps and waits for the last."""

    system: str
    run: Callable[[int], None]
    unit: int
    compile_seconds: float
    launches: int | None = None


def measure_card(*, quick: bool = False) -> dict[str, float]:
    """Measure the rates of large products, and the bandwidth of a large copy, bytes read and written counted."""
    n, size = (128, 2**16) if quick else (8192, 2**28)
    keys = jax.random.split(jax.random.key(0), 3)
    a, b = (jax.random.normal(key, (n, n)) for key in keys[:2])
    rates = {}
    for name, precision, dtype in (
        ("float32", "float32", jnp.float32),
        ("tf32", "tensorfloat32", jnp.float32),
        ("bfloat16", "float32", jnp.bfloat16),
    ):
        product = jax.jit(functools.partial(jnp.matmul, precision=precision))
        seconds = _seconds(product, a.astype(dtype), b.astype(dtype))
        rates[f"{name}_operations_per_second"] = 2 * n**3 / seconds
    numbers = jax.random.normal(keys[2], (size,))
    copy = jax.jit(lambda x: x + 1)
    rates["bytes_per_second"] = 2 * numbers.nbytes / _seconds(copy, numbers)
    return rates


def measure(
    *,
    quick: bool = False,
    systems: Sequence[str] | None = None,
    cases: Sequence[str] | None = None,
    tell: Callable[[dict[str, Any]], None] = lambda _: None,
) -> dict[str, Any]:
    """Measure the card, then every system on every case; what fails or is not installed is said and left out.

    `tell` hears of the card, and of each record, as soon as it is measured.
    """
    rates = measure_card(quick=quick)
    tell({"device": jax.devices()[0].device_kind, "card": rates})
    card = Card(
        product_rate=rates["tf32_operations_per_second"],
        vector_rate=rates["float32_operations_per_second"],
        bandwidth=rates["bytes_per_second"],
    )
    records: list[Record] = []
    for case in QUICK if quick else CASES:
        if cases and not any(case.name.startswith(name) for name in cases):
            continue
        for contestant in _contestants(case, systems):
            try:
                record = _timed(case, contestant, card, repetitions=2 if quick else 5)
            except Exception as error:
                _say_left_out(case, contestant.system, error)
                continue
            records.append(record)
            tell(dict(record))
            _console.print(
                f"{case.name}: {contestant.system} {record['us_per_step']:.4g} us,"
                f" compiled in {record['compile_seconds']:.1f} s", style="dim",
            )  # fmt: skip
    return {"device": jax.devices()[0].device_kind, "card": rates, "records": records}


def _contestants(case: Case, systems: Sequence[str] | None) -> Iterator[Contestant]:
    makers: dict[str, Callable[[], Contestant]] = {
        name: functools.partial(_bochner, name, case, path)
        for name, path in paths(interpret=jax.default_backend() == "cpu").items()
    }
    makers["plain-jax"] = functools.partial(_plain_jax, case)
    makers |= _torch_makers(case)
    for name, make in makers.items():
        if systems and name not in systems:
            continue
        try:
            contestant = make()
        except Exception as error:
            _say_left_out(case, name, error)
            continue
        yield contestant


def _say_left_out(case: Case, name: str, error: Exception) -> None:
    """One system's failure must not cost the measurements of the others."""
    _console.print(f"{case.name}: {name} left out: {type(error).__name__}: {error}"[:600])


def _bochner(name: str, case: Case, path: AbstractBackend) -> Contestant:
    inputs, state = bochner_model.chunk(case.configuration, case.n_mc, DrawWeights(path))
    capacity = inputs.capacity
    started = time.perf_counter()
    compiled = run_chunk.lower(inputs, state).compile()  # pyright: ignore[reportFunctionMemberAccess]
    seconds = time.perf_counter() - started

    def run(n: int) -> None:
        nonlocal state
        for _ in range(n):
            state, bound = compiled(inputs, state)
        if not jnp.isfinite(bound.elbo):  # pyright: ignore[reportPossiblyUnboundVariable]
            raise FloatingPointError("the bound became non-finite, so the timing means nothing.")

    launches = launches_per_step(compiled.compiled.as_text(), capacity)
    return Contestant(name, run, capacity, seconds, launches)


def _plain_jax(case: Case) -> Contestant:
    n_steps = 32
    X, y = (jnp.asarray(array) for array in case.configuration.data())
    run_steps, state = plain_jax.make(case.configuration, X, y, case.n_mc, n_steps)
    key = jax.random.key(1)
    started = time.perf_counter()
    compiled = run_steps.lower(state, key).compile()
    seconds = time.perf_counter() - started

    def run(n: int) -> None:
        nonlocal state, key
        for _ in range(n):
            key, step_key = jax.random.split(key)
            state, _ = compiled(state, step_key)
        jax.block_until_ready(state)

    return Contestant(
        "plain-jax", run, n_steps, seconds, launches_per_step(compiled.as_text() or "", n_steps)
    )


def _torch_makers(case: Case) -> dict[str, Callable[[], Contestant]]:
    """What builds the PyTorch contestants, where PyTorch is installed and has a GPU."""
    if not importlib.util.find_spec("torch"):
        _console.print("PyTorch is not installed: its systems are left out.", style="dim")
        return {}
    import torch

    if not torch.cuda.is_available():
        _console.print("PyTorch has no GPU: its systems are left out.", style="dim")
        return {}
    from benchmarks import torch_gpu

    makers = {}
    if (
        case.configuration.n_layers <= 5
    ):  # beyond, its compiler unrolls the layers and takes minutes
        makers["torch-compiled"] = functools.partial(_torch, "torch-compiled", torch_gpu.make, case)
    if not importlib.util.find_spec("gpytorch"):
        _console.print("GPyTorch is not installed: it is left out.", style="dim")
    elif case.configuration.n_layers == 2 and not case.configuration.classification:
        makers["gpytorch"] = functools.partial(_torch, "gpytorch", torch_gpu.make_gpytorch, case)
    return makers


def _torch(name: str, make: Callable, case: Case) -> Contestant:
    started = time.perf_counter()
    run = make(case.configuration, case.n_mc)
    run(1)
    return Contestant(name, run, 1, time.perf_counter() - started)


def _timed(case: Case, contestant: Contestant, card: Card, *, repetitions: int) -> Record:
    contestant.run(1)
    started = time.perf_counter()
    contestant.run(1)
    n = max(1, round(_SECONDS_A_REPETITION / max(time.perf_counter() - started, 1e-6)))
    times = []
    for _ in range(repetitions):
        started = time.perf_counter()
        contestant.run(n)
        times.append(1e6 * (time.perf_counter() - started) / (n * contestant.unit))
    microseconds = statistics.median(times)
    floor = 1e6 * work(case.configuration, case.n_mc).seconds(card)
    return Record(
        case=case.name,
        system=contestant.system,
        us_per_step=microseconds,
        us_per_step_min=min(times),
        rows_per_second=1e6 * case.configuration.batch / microseconds,
        share_of_floor=floor / microseconds,
        floor_us=floor,
        compile_seconds=contestant.compile_seconds,
        launches_per_step=contestant.launches,
    )


def _seconds(function: Callable, *arguments: Any, repetitions: int = 10) -> float:
    """The median time of a function, several calls each time."""
    jax.block_until_ready(function(*arguments))
    times = []
    for _ in range(repetitions):
        started = time.perf_counter()
        for _ in range(5):
            result = function(*arguments)
        jax.block_until_ready(result)  # pyright: ignore[reportPossiblyUnboundVariable]
        times.append((time.perf_counter() - started) / 5)
    return statistics.median(times)


def print_tables(measured: dict[str, Any]) -> None:
    """Print the card's rates, then a line for each case and system."""
    console = Console()
    rates = ", ".join(f"{name} {rate:.3g}" for name, rate in measured["card"].items())
    console.print(f"{measured['device']}: {rates}")
    table = RichTable(title="A training step")
    for column in (
        "case",
        "system",
        "us",
        "rows a second",
        "of the floor",
        "launches",
        "compile s",
    ):
        table.add_column(column, justify="left" if column in ("case", "system") else "right")
    for record in measured["records"]:
        launches = record["launches_per_step"]
        table.add_row(
            record["case"],
            record["system"],
            f"{record['us_per_step']:.4g}",
            f"{record['rows_per_second']:.3g}",
            f"{100 * record['share_of_floor']:.0f} %",
            "-" if launches is None else str(launches),
            f"{record['compile_seconds']:.1f}",
        )
    console.print(table)
