"""Deep models as members: fitted so that each judged row is left out."""

import dataclasses
import time

import numpy as np
from jaxtyping import Float

from bochner.fitting.deep_fit import DeepFit
from bochner.fitting.held_out import HeldOutRows
from bochner.fitting.resolving import Asked
from bochner.fitting.rows import Rows
from bochner.fitting.settings import Deep
from bochner.fitting.training import fit_deep
from bochner.fitting.validation import OwnRows
from bochner.members.parts import DeepPart
from bochner.members.training import FOLDS_BELOW, Candidate, Training


def deep_candidates(name: str, deep: Deep, training: Training) -> list[Candidate]:
    """Fit a deep model: to few rows with a fold left out by each replicate, to many with rows held out."""
    begun = time.monotonic()
    by_folds = training.given is None and len(training.rows) < FOLDS_BELOW
    if by_folds:
        fit, left_out = _by_folds(deep, training)
    else:
        held_out = HeldOutRows(
            training.given, None if training.given is not None else training.judged
        )
        asked = _asked(deep, training)
        fit = fit_deep(asked, training.rows, training.task, held_out=held_out, named=training.named)
        left_out = left_out_density(fit, training.judged_rows, training)
    return [Candidate(name, DeepPart(fit), left_out, time.monotonic() - begun)]


def _asked(deep: Deep, training: Training) -> Asked:
    """Ask for a deep model in the time that the members before it have left."""
    session = training.asked.session.with_time_left()
    return dataclasses.replace(training.asked, deep=deep, session=session)


def _by_folds(deep: Deep, training: Training) -> tuple[DeepFit, Float[np.ndarray, " n"]]:
    """Train a replicate for each fold, all in one program; a row is judged by the one that has left it out."""
    folds = training.folds
    own_rows = OwnRows.in_folds(folds)
    n_folds = len(own_rows.left_out)
    settings = {**deep.get_params(), "n_members": n_folds, "validation_fraction": 0.0}
    asked = _asked(Deep(**settings), training)
    fit = fit_deep(asked, training.rows, training.task, own_rows=own_rows, named=training.named)
    left_out = np.empty(len(training.rows))
    replicates = fit.model.each()
    n_draws = len(replicates) // n_folds
    for fold in range(n_folds):
        alone = type(fit.model).of(replicates[fold * n_draws : (fold + 1) * n_draws])  # pyright: ignore[reportAttributeAccessIssue]
        own = dataclasses.replace(fit, model=alone)
        left_out[folds == fold] = left_out_density(own, training.rows[folds == fold], training)
    return fit, left_out[training.judged]


def left_out_density(fit: DeepFit, rows: Rows, training: Training) -> Float[np.ndarray, " n"]:
    """Compute the log density of rows that a model has not seen; on a lattice by masses."""
    if training.lattice is None:
        return fit.log_density(rows)
    return training.lattice.log_density(DeepPart(fit).law(rows.X), rows.Y[:, 0])
