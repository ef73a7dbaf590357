"""Models in the space of rows as members: exact ones, landmarks, and linear and constant ones."""

import dataclasses
import time
from typing import Any

import numpy as np

from bochner.exact.classes import class_parts
from bochner.exact.densities import density_parts
from bochner.exact.kernels import AbstractKernel, parse
from bochner.exact.landmark_classes import landmark_class_parts
from bochner.exact.landmark_regression import landmark_parts
from bochner.exact.regression import regression_parts
from bochner.exact.sizes import Sizes
from bochner.fitting.kinds import Constant, Exact, Landmarks, Linear
from bochner.members.auto import MOST_EXACT
from bochner.members.parts import RowsPart
from bochner.members.training import Candidate, Training
from bochner.system.threads import blas_on_one_thread

_KINDS = {
    Constant: ("constant",),
    Linear: ("linear",),
    Exact: ("smooth", "sum", "density"),
    Landmarks: ("smooth", "sum", "density"),
}
_WITHOUT_VARYING_NOISE = "gaussian"


def rows_candidates(members: list[Any], training: Training) -> list[Candidate]:
    """Fit the models of some members, which share what is learned of the table."""
    kinds = tuple(kind for member in members for kind in _KINDS[type(member)])
    begun = time.monotonic()
    with blas_on_one_thread():
        parts = _parts(members, kinds, training)
    found = [part for part in parts if part.kind in kinds]
    seconds = (time.monotonic() - begun) / max(len(found), 1)
    return [_judged(part, training, seconds) for part in found]


def _parts(members: list[Any], kinds: tuple[str, ...], training: Training) -> list[Any]:
    rows, asked = training.rows, training.asked
    kernel = next((one.kernel for one in members if hasattr(one, "kernel")), None)
    common: dict[str, Any] = {
        "kernel": None if kernel is None else _resolved(kernel, training),
        "weights": rows.weights / np.mean(rows.weights),
        "groups": training.group_numbers,
        "judged": training.judged,
        "seed": asked.seed,
        "until": asked.session.until if {"smooth", "sum"} & set(kinds) else -np.inf,
    }
    landmarks = next((one for one in members if isinstance(one, Landmarks)), None)
    is_exact = any(isinstance(one, Exact) for one in members)
    if landmarks is None and not is_exact and len(rows) > MOST_EXACT:
        landmarks = Landmarks()  # a plane of many rows needs no matrix of all pairs
    noise: dict[str, Any] = {
        "varying_noise": asked.likelihood != _WITHOUT_VARYING_NOISE
        and all(getattr(one, "varying_noise", True) for one in members)
    }
    if training.task.classification:
        labels, n_classes = rows.Y[:, 0], training.task.n_outputs
        if landmarks is None:
            return class_parts(training.encoded, labels, n_classes, **common)
        sizes = _sizes(landmarks)
        return landmark_class_parts(training.encoded, labels, n_classes, sizes=sizes, **common)
    y = rows.Y[:, 0]
    if landmarks is None:
        parts = regression_parts(training.encoded, y, **common, **noise)
    else:
        parts = landmark_parts(training.encoded, y, sizes=_sizes(landmarks), **common, **noise)
    if asked.likelihood is None and all(getattr(one, "density", True) for one in members):
        del common["kernel"]
        parts += density_parts(training.encoded, y, parts, lattice=training.lattice, **common)
    return parts


def _resolved(kernel: Any, training: Training) -> AbstractKernel:
    """Read the covariance that a member asks for, and find the columns that it names."""
    found = parse(kernel) if isinstance(kernel, str) else kernel
    if not isinstance(found, AbstractKernel):
        raise ValueError(
            "`kernel` must be one of `bochner.exact.kernels`, or a text such as 'rbf(lat, lon) + laplace'; "
            f"got {kernel!r}."
        )
    return found.resolved(training.inputs, training.columns.columns)


def _sizes(landmarks: Landmarks) -> Sizes:
    default = Sizes()
    return dataclasses.replace(
        default,
        learned_from=int(landmarks.n_learned_from),
        landmarks=int(landmarks.n_landmarks),
        landmarks_of_classes=min(int(landmarks.n_landmarks), default.landmarks_of_classes),
    )


def _judged(part: Any, training: Training, seconds: float) -> Candidate:
    """Judge a model by what it said of each judged row when that was left out, or by given rows."""
    targets = training.rows.Y
    member = RowsPart(training.columns, part, (float(targets.min()), float(targets.max())))
    if training.task.classification:
        own = training.judged_rows.Y[:, 0]
        p = part.left_out if training.given is None else member.probabilities(training.given.X)
        left_out = np.log(p[np.arange(len(own)), own])
    elif training.given is None:
        left_out = training.judge(part.unseen)
    else:
        left_out = training.judge(member.law(training.given.X))
    return Candidate(part.name, member, np.asarray(left_out), seconds)
