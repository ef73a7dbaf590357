"""Models in the space of rows given further rows, with hyper-parameters, noise and tails as they are.

The result is that of all rows at once, but for rounding. With forgetting, earlier rows keep a share of their weight,
so their noise grows.
"""

import dataclasses
import functools
from typing import Any

import numpy as np
from jaxtyping import Float, Shaped

from bochner.exact.classes import ClassPart, ClassProcesses
from bochner.exact.dirichlet import dirichlet_targets
from bochner.exact.landmark_classes import LandmarkClassProcesses
from bochner.exact.landmarks import LandmarkProcess, Landmarks, Seen, choose_landmarks
from bochner.exact.linear_algebra import factorize, half_solve, solve
from bochner.exact.parts import Part
from bochner.exact.process import Process
from bochner.exact.rows import Rows
from bochner.exact.sizes import Sizes
from bochner.exact.transforms import AbstractTransform, Log, Standardized, YeoJohnson

MOST_EXACT = 4_000
"""Rows that an exact process may come to; of more it sees all from landmarks among the first of them."""

_LEAST_INFORMATION = 1e-3
_FARTHEST = 1e6


@dataclasses.dataclass(frozen=True, eq=False)
class Further:
    """Rows to learn from beside those seen.

    Attributes:
        rows: encoded.
        targets: numbers in their own units, or numbers of classes.
        weights: of the rows.
        shares: of these that are left once all rows are there.
        kept: the share of their weight that the rows seen before keep.
        weight_before: of the rows seen before, as it was then.
    """

    rows: Rows
    targets: Shaped[np.ndarray, " n"]
    weights: Float[np.ndarray, " n"]
    shares: Float[np.ndarray, " n"]
    kept: float
    weight_before: float

    @functools.cached_property
    def _features(self) -> dict[int, Any]:
        return {}

    def features(self, landmarks: Landmarks) -> tuple[np.ndarray, np.ndarray]:
        """Compute features of the rows, once for all processes that share landmarks."""
        if id(landmarks) not in self._features:
            self._features[id(landmarks)] = landmarks, *landmarks.features(self.rows)
        return self._features[id(landmarks)][1:]


def updated_part(part: Part, further: Further) -> Part:
    """Condition a model of numbers on further rows, too."""
    _check_within_reach(part, further.targets)
    if part.process is None:
        transform = moved(part.transform, further)
        return dataclasses.replace(part, transform=transform)
    relative = 1.0 if part.noise_model is None else part.noise_model(further.rows)
    t = part.transform(further.targets)
    process = updated_process(part.process, further, t, part.noise * relative / further.weights)
    return dataclasses.replace(part, process=process)


def _check_within_reach(part: Part, targets: Float[np.ndarray, " n"]) -> None:
    far = ~(np.abs(part.transform(targets)) <= _FARTHEST)
    if np.any(far):
        bound = (
            "the logarithm of targets, which are above 0"
            if isinstance(part.transform, Log)
            else f"targets of other sizes, from which it is more than {_FARTHEST:g} deviations away"
        )
        raise ValueError(
            f"the target {targets[far][0]:g} cannot be learned by the member {part.name!r}, fitted to {bound}: "
            "correct it, or fit anew to all rows."
        )


def updated_class_part(part: ClassPart, further: Further) -> ClassPart:
    """Condition a model of classes on further rows, too."""
    n_classes = len(part.frequencies)
    labels, functions = further.targets.astype(np.int64), part.functions
    if functions is None:
        before = further.weight_before + 0.5 * n_classes  # half a row more in each class
        counts = further.kept * (part.frequencies * before - 0.5) + 0.5
        counts += np.bincount(labels, further.weights * further.shares, minlength=n_classes)
        return dataclasses.replace(part, frequencies=counts / np.sum(counts))
    assert isinstance(functions, ClassProcesses | LandmarkClassProcesses)
    if part.strength is None:
        raise ValueError(
            "this model of classes comes from a file that does not say how its targets were made, so it cannot learn "
            "further: fit it again."
        )
    targets, noise = dirichlet_targets(labels, n_classes, part.strength)
    targets, noise = targets - functions.offsets, noise / further.weights[:, None]
    processes = tuple(
        updated_process(process, further, t, own)
        for process, t, own in zip(functions.processes, targets.T, noise.T, strict=True)
    )
    on_landmarks = isinstance(processes[0], LandmarkProcess)
    kind = LandmarkClassProcesses if on_landmarks else ClassProcesses
    return dataclasses.replace(part, functions=kind(processes, functions.offsets))  # pyright: ignore[reportArgumentType]


def updated_process(
    process: Any, further: Further, targets: Float[np.ndarray, " n"], noise: Float[np.ndarray, " n"]
) -> Process | LandmarkProcess:
    """Condition a process on further targets with noise of given variances, too."""
    if isinstance(process, Process) and len(process.rows) + len(targets) > MOST_EXACT:
        process = seen_from_landmarks(process)
    if isinstance(process, Process):
        return _with_rows(process, further, targets, noise)
    return _with_statistics(process, further, targets, noise)


def seen_from_landmarks(process: Process) -> LandmarkProcess:
    """See the rows of an exact process from some of them, so that further rows need no more room."""
    chosen = choose_landmarks(process.rows, Sizes().landmarks, seed=0)
    landmarks = Landmarks.of(process.kernel, process.v, process.rows[chosen])
    return LandmarkProcess.condition(
        Seen.of(landmarks, process.rows), process.targets, process.noise
    )


def _with_rows(process: Process, further: Further, targets, noise) -> Process:
    """Add rows to the factor; where earlier rows count for less it is made anew, without those that say nothing."""
    kernel, v, rows = process.kernel, process.v, process.rows
    if further.kept < 1:
        noise = np.concatenate([process.noise / further.kept, noise / further.shares])
        rows, targets = joined(rows, further.rows), np.concatenate([process.targets, targets])
        kept = np.flatnonzero(_LEAST_INFORMATION * noise <= kernel.diagonal(v, rows))
        return Process.condition(kernel, v, rows[kept], targets[kept], noise[kept])
    n, m = len(rows), len(targets)
    own = kernel.covariance(v, further.rows, further.rows)
    own[np.diag_indices_from(own)] += noise
    factor = np.zeros((n + m, n + m), order="F")
    factor[:n, :n] = process.factor
    across = half_solve(process.factor, kernel.covariance(v, rows, further.rows)).T
    factor[n:, :n] = across
    factor[n:, n:] = factorize(own - across @ across.T)
    added = Process(
        kernel,
        v,
        joined(rows, further.rows),
        np.concatenate([process.targets, targets]),
        np.concatenate([process.noise, noise]),
    )
    added.__dict__["factor"] = factor
    return added


def _with_statistics(process: LandmarkProcess, further: Further, targets, noise) -> LandmarkProcess:
    """Add features of rows to `A = I + sum_i f_i f_i' / d_i`.

    The new weights are `w + A'^-1 (sum_i f_i (t_i - f_i' w) / d_i - (1 - kept) w)`, in which the rounding of the old
    factor in files comes but with residuals.
    """
    features, missing = further.features(process.landmarks)
    precisions = further.shares / (noise + missing)
    A, w, kept = process.__dict__.get("A"), process.weights, further.kept
    if A is None:
        A = process.factor @ process.factor.T
    scaled = features * np.sqrt(precisions)[:, None]
    A = kept * A + scaled.T @ scaled
    A[np.diag_indices_from(A)] += 1 - kept  # the prior is not forgotten
    factor = factorize(A)
    w = w + solve(factor, features.T @ (precisions * (targets - features @ w)) - (1 - kept) * w)
    found = LandmarkProcess(process.landmarks, factor.astype(np.float32).astype(np.float64), w)
    found.__dict__["A"] = A  # not rounded, for the next update
    return found


def joined(first: Rows, second: Rows) -> Rows:
    """Put rows of one layout together."""
    return Rows(
        np.concatenate([first.numbers, second.numbers]),
        np.concatenate([first.ranks, second.ranks]),
        np.concatenate([first.codes, second.codes]),
        first.layout,
    )


def moved(transform: AbstractTransform, further: Further) -> AbstractTransform:
    """Give a transform whose last center and scale are those of all rows; a power stays."""
    if isinstance(transform, Log):
        return Log(_moved(transform.after, np.log(further.targets), further))
    if isinstance(transform, YeoJohnson):
        after = transform.after
        bent = after.inverse(transform(further.targets))
        return dataclasses.replace(transform, after=_moved(after, bent, further))
    assert isinstance(transform, Standardized)
    return _moved(transform, further.targets, further)


def _moved(last: Standardized, values: np.ndarray, further: Further) -> Standardized:
    weights = further.weights * further.shares
    before, now = further.kept * further.weight_before, np.sum(weights)
    center = (before * last.center + weights @ values) / (before + now)
    squares = before * (last.scale**2 + (last.center - center) ** 2)
    squares += weights @ (values - center) ** 2
    return Standardized(float(center), float(np.sqrt(squares / (before + now))))
