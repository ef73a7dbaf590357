"""Milliseconds a training step, for each system on each configuration, interleaved in one run."""

import dataclasses
import functools
import importlib.util
import statistics
import time
from collections.abc import Callable, Sequence
from typing import TypedDict

import jax
import jax.numpy as jnp
from rich.console import Console

from benchmarks import bochner_model, plain_jax
from benchmarks.configurations import CONFIGURATIONS, Configuration
from benchmarks.threads import n_threads
from bochner.gp.reparameterization import DrawWeights, LocalReparameterization

SAMPLES = {"A": (1, 100), "B": (1, 10), "C": (1,)}
_SECONDS_A_REPETITION = 0.25


class Record(TypedDict):
    """One timing; `ms_per_step` is the median over the repetitions."""

    config: str
    n_mc: int
    system: str
    ms_per_step: float
    ms_per_step_min: float
    compile_seconds: float
    repetitions: int


@dataclasses.dataclass
class Contestant:
    """A system ready to be timed: `run(n)` takes n times `unit` steps."""

    system: str
    run: Callable[[int], None]
    unit: int
    compile_seconds: float = 0.0
    n_units: int = 1
    milliseconds: list[float] = dataclasses.field(default_factory=list)

    def warm_up(self) -> None:
        """Compile, then find how many units fill a repetition."""
        started = time.perf_counter()
        self.run(1)
        self.compile_seconds = time.perf_counter() - started
        self.run(1)
        started = time.perf_counter()
        self.run(1)
        self.n_units = max(1, round(_SECONDS_A_REPETITION / (time.perf_counter() - started)))

    def repeat(self) -> None:
        """Time one repetition."""
        started = time.perf_counter()
        self.run(self.n_units)
        seconds = time.perf_counter() - started
        self.milliseconds.append(1e3 * seconds / (self.n_units * self.unit))


def measure(
    *,
    quick: bool = False,
    systems: Sequence[str] | None = None,
    configurations: Sequence[str] | None = None,
) -> list[Record]:
    """Time all systems that are installed; their repetitions take turns, since machines are noisy."""
    names = systems or (["bochner", "plain-jax"] if quick else available_systems())
    console = Console(stderr=True)
    records: list[Record] = []
    for name in configurations or (["A"] if quick else CONFIGURATIONS):
        for n_mc in SAMPLES[name]:
            contestants = _contestants(CONFIGURATIONS[name], n_mc, names)
            for contestant in contestants:
                console.print(f"{name}, {n_mc} samples: {contestant.system} ...", style="dim")
                contestant.warm_up()
            repetitions = 5 if quick else 9
            for _ in range(repetitions):
                for contestant in contestants:
                    contestant.repeat()
            records.extend(_best_of_each_system(name, n_mc, contestants))
    return records


def available_systems() -> list[str]:
    """The systems whose packages are installed."""
    systems = ["bochner", "bochner-local", "plain-jax"]
    if importlib.util.find_spec("torch"):
        systems += ["torch-eager", "torch-compiled"]
    if importlib.util.find_spec("gpytorch"):
        systems += ["gpytorch"]
    return systems


def _contestants(
    configuration: Configuration, n_mc: int, systems: Sequence[str]
) -> list[Contestant]:
    return [one for system in systems for one in _make(system, configuration, n_mc)]


def _make(system: str, configuration: Configuration, n_mc: int) -> list[Contestant]:
    # PyTorch's threads wait for each other, which can cost small steps more than they gain: it gets both chances.
    torch_threads = sorted({1, n_threads()})
    match system:
        case "bochner":
            run, unit = bochner_model.make(configuration, n_mc, DrawWeights())
            return [Contestant(system, repeated(run), unit)]
        case "bochner-local":
            run, unit = bochner_model.make(configuration, n_mc, LocalReparameterization())
            return [Contestant(system, repeated(run), unit)]
        case "plain-jax":
            run, unit = _plain_jax(configuration, n_mc)
            return [Contestant(system, repeated(run), unit)]
        case "torch-eager" | "torch-compiled":
            from benchmarks import torch_model

            compiled = system == "torch-compiled"
            if compiled and configuration.n_layers > 5:
                return []  # the compiler unrolls the layers and takes minutes
            make = functools.partial(torch_model.make, configuration, n_mc, compiled=compiled)
            return [Contestant(system, make(n_threads=n), 1) for n in torch_threads]
        case "gpytorch":
            from benchmarks import gpytorch_model

            if configuration.name != "A":
                return []
            make = functools.partial(gpytorch_model.make, configuration, n_mc)
            return [Contestant(system, make(n_threads=n), 1) for n in torch_threads]
        case _:
            raise ValueError(
                f"unknown system {system!r}; the known ones are {available_systems()}."
            )


def _plain_jax(configuration: Configuration, n_mc: int) -> tuple[Callable[[], None], int]:
    X, y = (jnp.asarray(array) for array in configuration.data())
    n_steps = 50 if n_mc == 1 and configuration.name != "B" else 4
    run_steps, state = plain_jax.make(configuration, X, y, n_mc, n_steps)
    key = jax.random.key(1)

    def run() -> None:
        nonlocal state, key
        key, step_key = jax.random.split(key)
        state, _ = jax.block_until_ready(run_steps(state, step_key))

    return run, n_steps


def repeated(run: Callable[[], None]) -> Callable[[int], None]:
    """Turn a function of one repetition into one that takes their number."""

    def run_several(n: int) -> None:
        for _ in range(n):
            run()

    return run_several


def _best_of_each_system(name: str, n_mc: int, contestants: list[Contestant]) -> list[Record]:
    best: dict[str, Record] = {}
    for contestant in contestants:
        record = _record(name, n_mc, contestant)
        known = best.setdefault(record["system"], record)
        if record["ms_per_step"] < known["ms_per_step"]:
            best[record["system"]] = record
    return list(best.values())


def _record(name: str, n_mc: int, contestant: Contestant) -> Record:
    return Record(
        config=name,
        n_mc=n_mc,
        system=contestant.system,
        ms_per_step=statistics.median(contestant.milliseconds),
        ms_per_step_min=min(contestant.milliseconds),
        compile_seconds=contestant.compile_seconds,
        repetitions=len(contestant.milliseconds),
    )
