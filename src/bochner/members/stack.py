"""From members to a stack: each fitted, judged by rows that it has left out, and weighed."""

import dataclasses
import logging
import time
import warnings
from typing import Any

import numpy as np

from bochner.exact.stacking import mixed, stack
from bochner.fitting.kinds import Constant, Exact, Landmarks, Linear
from bochner.fitting.resolving import Asked
from bochner.fitting.validation import Judged, WorseThanSimplerModelWarning
from bochner.members.auto import Named, auto_members, simple_members
from bochner.members.in_rows import rows_candidates
from bochner.members.kinds import kind_of
from bochner.members.predictors import (
    AbstractPredictor,
    DeepClassifier,
    DeepRegressor,
    StackClassifier,
    StackRegressor,
)
from bochner.members.training import Candidate, Training

_LOGGER = logging.getLogger("bochner")
# Where nobody listens, the warning of the same words is enough.
_LOGGER.addHandler(logging.NullHandler())

_NEVER = -1e6  # the log density of what a member thinks impossible


@dataclasses.dataclass(frozen=True)
class Standing:
    """How a member did on rows that it has left out.

    Attributes:
        name: of the member.
        log_likelihood: mean over left-out rows, in the units of the target.
        weight: in the stack; zero where the member was dropped.
        seconds: that it took.
    """

    name: str
    log_likelihood: float
    weight: float
    seconds: float


@dataclasses.dataclass(frozen=True, eq=False)
class Stacked:
    """A weighed stack.

    Attributes:
        predictor: the members with weight.
        standings: of all members.
        judged: left-out log density of each judged row under the stack.
        weights: of the judged rows.
    """

    predictor: AbstractPredictor
    standings: tuple[Standing, ...]
    judged: Judged


def fit_stack(members: Named | None, training: Training) -> Stacked:
    """Fit members, those of the table's size where None, and weigh them by the density of what they left out."""
    training = training.on_its_lattice()
    named = auto_members(training) if members is None else members
    found: list[Candidate] = []
    for prefix, together in _learned_together(named):
        _tell_of([type(one).__name__.lower() for one in together], training)
        candidates = rows_candidates(together, training)
        found += [dataclasses.replace(one, name=f"{prefix}{one.name}") for one in candidates]
        _tell_result(candidates, training)
    for name, member in named:
        kind = kind_of(member)
        if kind is not None and (not found or _has_time(training)):
            _tell_of([name], training)
            candidates = kind.candidates(name, member, training)
            found += candidates
            _tell_result(candidates, training)
    # Of two rows, say, there is no covariance to learn.
    found = found or rows_candidates([one for _, one in simple_members()], training)
    return _weighed(found, training)


def _tell_of(names: list[str], training: Training) -> None:
    session, n_rows = training.asked.session, len(training.rows)
    session.tell(f"{session.label}: fitting {', '.join(names)} to {n_rows:,} rows.")


def _tell_result(found: list[Candidate], training: Training) -> None:
    """Say how well the best of some models foresees rows that it has left out."""
    if not found:
        return
    weights, session = training.judged_rows.weights, training.asked.session
    score, best = max((float(np.average(one.left_out, weights=weights)), one.name) for one in found)
    seconds = sum(one.seconds for one in found)
    session.tell(f"{session.label}: left-out log-likelihood {score:.4g} ({best}), {seconds:.1f} s.")


def _learned_together(named: Named) -> list[tuple[str, list[Any]]]:
    """Give the models in the space of rows that share what is learned of the table: simple ones go with the first.

    The names of several others tell their parts apart.
    """
    simple = [one for _, one in named if isinstance(one, Constant | Linear)]
    others = [(name, one) for name, one in named if isinstance(one, Exact | Landmarks)]
    if len(others) > 1:
        apart = [(f"{name}: ", [one]) for name, one in others]
        return [("", simple), *apart] if simple else apart
    together = [*simple, *(one for _, one in others)]
    return [("", together)] if together else []


def _has_time(training: Training) -> bool:
    """Whether there is time for a dearer member."""
    session = training.asked.session
    left = session.until - time.monotonic()
    return left > 0.3 * (session.max_seconds or np.inf) if np.isfinite(left) else True


def _weighed(found: list[Candidate], training: Training) -> Stacked:
    rows = training.judged_rows
    left_out = np.stack([_finite(one.left_out) for one in found], axis=1)
    weights = stack(left_out, training.judged_weights)
    kept = np.flatnonzero(weights)
    parts: Any = tuple(found[i].part for i in kept)
    if training.task.classification:
        predictor: AbstractPredictor = StackClassifier(parts, weights[kept])
    else:
        predictor = StackRegressor(parts, weights[kept], training.lattice)
    shares = rows.weights / rows.weights.sum()
    standings = tuple(
        Standing(one.name, float(shares @ left_out[:, i]), float(weights[i]), one.seconds)
        for i, one in enumerate(found)
    )
    return Stacked(predictor, standings, Judged(mixed(left_out, weights), rows.weights))


def fit_alone(asked: Asked, fit: Any, training: Training | None) -> Stacked:
    """Let one deep model predict alone; where there are rows that it has not seen, say so if a simple one is better."""
    classes = fit.task.classification
    predictor = DeepClassifier(fit) if classes else DeepRegressor(fit)
    seconds = fit.history[-1]["seconds"] if fit.history else 0.0
    if training is None or training.given is None or len(training.given) == 0:
        standing = Standing("deep", float("nan"), 1.0, seconds)
        return Stacked(predictor, (standing,), Judged(np.zeros(0), np.zeros(0)))
    own = Judged(_finite(fit.log_density(training.given)), training.given.weights)
    simple = rows_candidates([one for _, one in simple_members()], training)
    judged = {one.name: Judged(_finite(one.left_out), own.weights) for one in simple}
    best = max(judged, key=lambda name: judged[name].mean)
    if judged[best].clearly_better_than(own):
        _say_that_it_is_worse(own, best, judged[best])
    standings = (
        Standing("deep", own.mean, 1.0, seconds),
        *(Standing(one.name, judged[one.name].mean, 0.0, one.seconds) for one in simple),
    )
    return Stacked(predictor, standings, own)


def _say_that_it_is_worse(own: Judged, name: str, other: Judged) -> None:
    message = (
        f"the fitted model is worse than a simple one ({name}): the mean log-likelihood of {len(own.weights)} rows "
        f"that it has not seen is {own.mean:.4g}, and {other.mean:.4g}. Do not rely on this model; with "
        '`members="auto"` the better ones predict. Look for columns that say nothing and for wrong values, and '
        "consider more rows."
    )
    _LOGGER.error(message)
    warnings.warn(message, WorseThanSimplerModelWarning, stacklevel=6)


def _finite(left_out: np.ndarray) -> np.ndarray:
    return np.nan_to_num(np.maximum(left_out, _NEVER), nan=_NEVER)
