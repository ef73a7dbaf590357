"""Presets: what fills the parameters that a user leaves open."""

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from bochner.fitting.declared import declared
from bochner.inference.objectives import OBJECTIVES, AbstractObjective, Elbo, Evidence
from bochner.likelihoods import GAUSSIAN_NOISE

_SMALL, _SMALL_FOR_CLASSES_OF_MANY = 4_000, 10_000
_FEW_TO_SPARE = 2_000
_HELD_OUT, _ENOUGH_HELD_OUT = 0.1, 2_000
_MANY_INPUTS, _VERY_MANY_INPUTS = 32, 256
_MOST_FEATURES_TO_INTEGRATE = 500
_LEAST_ROWS_FOR_MORE_FEATURES = 250
_LEAST_ROWS_A_LENGTHSCALE = 20
_ENOUGH_TO_TRY_MANY = 1_000
_SECONDS_A_MEMBER = 30  # of a large table
_MANY_LAYERS = 10


@dataclasses.dataclass(frozen=True)
class Situation:
    """What a recipe may look at.

    Attributes:
        n_rows: rows of the training data.
        d_in: inputs.
        classification: whether the task is classification.
        pixels: whether the inputs look like the pixels of an image.
        all_at_once: whether these are all rows that there will be, and one process has them all.
        alone: whether the fit is one by itself, which may hold rows out and try settings on them.
        free_frequencies: whether held-out rows prefer free frequencies.
        asked: what the user has set.
    """

    n_rows: int
    d_in: int
    classification: bool
    pixels: bool = False
    all_at_once: bool = True
    alone: bool = True
    free_frequencies: bool = False
    asked: Mapping[str, Any] = dataclasses.field(default_factory=dict)


def paper(situation: Situation) -> dict[str, Any]:
    """Section 4.1 of the paper and nothing added, as it is declared; where it is silent, the authors' code."""
    values = {name: field.metadata["paper"] for name, field in declared().items()}
    del values["preset"]
    return {**values, "likelihood": "softmax" if situation.classification else "gaussian"}


def paper_mnist(situation: Situation) -> dict[str, Any]:
    """The larger configuration of section 4.1 for images; pixels are divided by the largest value only."""
    return {
        **paper(situation),
        "width": 50,
        "n_random_features": 500,
        "batch_size": 1000,
        "learning_rate": 0.001,
        "preprocessing": "unit",
    }


def auto(situation: Situation) -> dict[str, Any]:
    """Settings that work on raw tables, by size; `docs/recipes.md` says why and what was measured."""
    objective = _asked_objective(situation, Elbo)
    recipe = {
        **paper(situation),
        # Free ones overfit most tables, so they need held-out rows: to be chosen, and to be stopped.
        "omega": "var-fixed" if situation.free_frequencies else "prior-fixed",
        "width": 10,
        "frequencies": "orthogonal",
        "feed_inputs": True,
        "likelihood": "softmax" if situation.classification else "heteroscedastic",
        "local_reparameterization": not objective.needs_all_rows,
        "batch_size": 500,
        # Steps in so many frequencies of one feature add up.
        "learning_rate": 0.01 if situation.d_in >= _VERY_MANY_INPUTS else 0.03,
        "schedule": "cosine",
        "n_mc_train": objective.usual_n_mc,
        "preprocessing": _preprocessing(situation),
        "theta_from": 0.0,
        "omega_from": 0.0,
        "initial_log_var": -6.0,
    }
    if _largest(situation.asked.get("n_layers", 0)) >= _MANY_LAYERS:
        # Through so many layers exact ones explode.
        recipe["gradients"] = "clipped"
    many_inputs = situation.d_in >= _MANY_INPUTS
    classes_of_many = _classes_of_many(situation)
    if situation.n_rows >= (_SMALL_FOR_CLASSES_OF_MANY if classes_of_many else _SMALL):
        recipe |= {"n_random_features": 200, "validation_fraction": _share_to_hold_out(situation)}
        if situation.classification:
            # Classes repay members rather than steps, once each row was seen some fifty times.
            steps = min(max(situation.n_rows // 10, 8_000), 24_000)
            members = _members_in_time(situation, 4, _SECONDS_A_MEMBER)
            return {**recipe, "n_members": members, "lengthscale_factor": 0.25, "max_steps": steps}
        members = _members_in_time(situation, 2, _SECONDS_A_MEMBER)
        return {**recipe, "n_members": members, "lengthscale_factor": 0.5, "max_steps": 15_000}
    if (
        situation.n_rows < _LEAST_ROWS_A_LENGTHSCALE * situation.d_in
        and not situation.classification
    ):
        # A lengthscale for each of so many inputs would fit noise.
        recipe["ard"] = False
    if _last_layer_can_be_integrated(situation):
        seconds = 1 + situation.n_rows / 300
        # Twice as many features pay, where there is time for them in all members.
        time_for_more = _members_in_time(situation, 4, 2 * seconds) == 4
        more = time_for_more and situation.n_rows >= _LEAST_ROWS_FOR_MORE_FEATURES
        return {
            **recipe,
            "objective": "evidence",
            "calibration": "left-out",
            "n_members": _members_in_time(situation, 4, seconds),
            "n_random_features": 200 if more else 100,
            "local_reparameterization": False,
            "batch_size": situation.n_rows,
            # All rows in each step leave little noise to average out.
            "learning_rate": 0.1,
            "max_steps": 800,
            "n_mc_predict": 200,
        }
    recipe["n_random_features"] = _few_features(situation)
    if not many_inputs:
        return {**recipe, "max_steps": 10_000}
    recipe["validation_fraction"] = _HELD_OUT
    if not classes_of_many:
        return {**recipe, "max_steps": 5_000}
    # Few columns decide at a time. Each member soon is too sure of itself, and the mixture is not.
    recipe |= {"frequencies": "sparse", "n_members": 8}
    lasting = {"max_steps", "max_seconds"} & set(situation.asked)
    if situation.n_rows < _FEW_TO_SPARE or lasting or situation.free_frequencies:
        return {**recipe, "max_steps": 1_500}
    return {**recipe, "validation_fraction": 0.0, "max_steps": 1_000}


def frequencies_are_open(situation: Situation) -> bool:
    """Whether held or free frequencies are to be chosen on held-out rows: nobody has said, and there are enough rows.

    Example:
        >>> from bochner.fitting.recipes import Situation, frequencies_are_open
        >>> [frequencies_are_open(Situation(n_rows, 5, classification=False)) for n_rows in (900, 9000)]
        [False, True]
    """
    many_inputs = situation.d_in >= _MANY_INPUTS and not _last_layer_can_be_integrated(situation)
    return (
        situation.n_rows >= (_ENOUGH_TO_TRY_MANY if many_inputs else _SMALL)
        and "omega" not in situation.asked
        and situation.alone
        and situation.all_at_once
    )


def _classes_of_many(situation: Situation) -> bool:
    """Whether these are classes that depend on many columns, such as counts of words."""
    many = situation.d_in >= _MANY_INPUTS
    return many and situation.classification and not situation.pixels


def _share_to_hold_out(situation: Situation) -> float:
    """Share of a large table's rows that say when to stop, and how good the model is; none where training goes on."""
    if not (situation.alone and situation.all_at_once):
        return 0.0
    return min(_HELD_OUT, _ENOUGH_HELD_OUT / situation.n_rows)


def _preprocessing(situation: Situation) -> str:
    if situation.pixels:
        return "unit"
    return "compressed" if situation.classification else "robust"


def _members_in_time(situation: Situation, most: int, seconds_each: float) -> int:
    """As many members as there is time for: one that has seen its rows is worth more than several that have not."""
    seconds = situation.asked.get("max_seconds")
    if not isinstance(seconds, int | float | np.number) or not float(seconds) < most * seconds_each:
        return most
    return max(int(float(seconds) // seconds_each), 1)


def _few_features(situation: Situation) -> int:
    """As many features as a small table can pay for: each weight costs KL."""
    return max(50, min(100, situation.n_rows // 5))


def _last_layer_can_be_integrated(situation: Situation) -> bool:
    """Whether nothing speaks against the evidence as the objective: the task, rows elsewhere, or what the user set."""
    asked = situation.asked
    return (
        not situation.classification
        and situation.all_at_once
        and _asked_objective(situation, Evidence) is Evidence
        and asked.get("likelihood", "gaussian") in GAUSSIAN_NOISE
        and asked.get("omega") != "var-resampled"
        and asked.get("local_reparameterization") is not True
        and _largest(asked.get("batch_size", situation.n_rows)) >= situation.n_rows
        and _largest(asked.get("n_random_features", 0)) <= _MOST_FEATURES_TO_INTEGRATE
    )


def _asked_objective(
    situation: Situation, otherwise: type[AbstractObjective]
) -> type[AbstractObjective]:
    """Give the objective that the user has set; a wrong name, an error to come, counts as the bound."""
    name = situation.asked.get("objective")
    if name is None:
        return otherwise
    return OBJECTIVES.get(name, Elbo) if isinstance(name, str) else Elbo


def _largest(value: Any) -> float:
    """The largest of one or several numbers; what is no number, an error to come, counts as endless."""
    values = value if isinstance(value, list | tuple) else [value]
    numbers = [float(one) for one in values if isinstance(one, int | float | np.number)]
    return max(numbers, default=math.inf) if len(numbers) == len(values) else math.inf


PRESETS: dict[str, Callable[[Situation], dict[str, Any]]] = {
    "auto": auto,
    "paper": paper,
    "paper-mnist": paper_mnist,
}
"""Recipes by name."""


def fill(parameters: dict[str, Any], preset: str, situation: Situation) -> dict[str, Any]:
    """Replace each parameter that is None by the preset's value.

    A limit on steps from the preset gives way where the user sets one in seconds.

    Example:
        >>> from bochner.fitting.recipes import Situation, fill
        >>> situation = Situation(n_rows=500, d_in=3, classification=False)
        >>> fill({"n_layers": None, "width": 7}, "paper", situation)["n_layers"]
        2
    """
    filled = {name: value for name, value in parameters.items() if value is not None}
    recipe = PRESETS[preset](dataclasses.replace(situation, asked=filled))
    if "max_seconds" in filled:
        recipe["max_steps"] = None
    if filled.get("omega") == "var-resampled":
        recipe["frequencies"] = "independent"
    return {"max_seconds": None, **recipe, **filled}
