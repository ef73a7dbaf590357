"""One fit in a process of its own: what it predicts is scored there, and seconds and memory are measured."""

import base64
import functools
import resource
import time
import traceback
from collections.abc import Mapping
from typing import Any

import numpy as np

from benchmarks.suite import systems, tables
from benchmarks.suite.rows import parts_of
from experiments.provenance import provenance

Job = Mapping[str, Any]


def run(job: Job) -> dict[str, Any]:
    """Fit the system of a job to its split, and give the record: scores, or why there are none."""
    name, split = job["data"], job["split"]
    table = _loaded(name)
    parts = parts_of(table, tables.split(name, split, table), seed=split)
    system = systems.make(job["system"])
    place = systems.PLACES[job["system"]]
    clock = systems.Clock(place.seconds or tables.seconds_of(name))
    before = _megabytes()
    started = time.process_time()
    record = {**job, "law": system.law(table.classification)}
    try:
        predictor = system.fit(parts.training, clock)
        fitted = time.process_time()
        prediction = predictor(parts.inputs)
        scores, densities = prediction.scores(parts.y)
        record |= {"scores": _rounded(scores), **prediction.about}
        record["scores"]["log_likelihood_new"] = _mean(densities[~parts.repeated])
        record["densities"] = packed(densities)
        record["fit_cpu_seconds"] = round(fitted - started, 2)
        record["predict_cpu_seconds"] = round(time.process_time() - fitted, 2)
    except Exception as error:
        record["failed"] = f"{type(error).__name__}: {error}"[:300]
        record["traceback"] = traceback.format_exc(limit=-4)[-1500:]
    return {
        **record,
        "stopped": clock.stopped,
        "memory_mb": round(_megabytes() - before),
        **provenance(place.packages),
    }


def packed(densities: np.ndarray) -> str:
    """Write each row's log-likelihood in half precision as text.

    Example:
        >>> import numpy as np
        >>> from benchmarks.suite.work import packed, unpacked
        >>> unpacked(packed(np.array([-1.5, 2.25]))).tolist()
        [-1.5, 2.25]
    """
    half = np.clip(densities, -60_000, 60_000).astype("<f2")
    return base64.b64encode(half.tobytes()).decode("ascii")


def unpacked(text: str) -> np.ndarray:
    """Read what `packed` wrote."""
    return np.frombuffer(base64.b64decode(text), "<f2").astype(float)


@functools.lru_cache(maxsize=1)
def _loaded(name: str) -> tables.Table:
    return tables.load(name)


def _rounded(scores: Mapping[str, float]) -> dict[str, float]:
    return {name: float(f"{value:.6g}") for name, value in scores.items()}


def _mean(values: np.ndarray) -> float | None:
    return float(f"{np.mean(values):.6g}") if len(values) else None


def _megabytes() -> float:
    """The most memory that this process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
