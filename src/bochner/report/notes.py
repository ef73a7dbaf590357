"""The plain-language notes: what a number means for the reader, each rule with its thresholds."""

import math
from collections.abc import Sequence
from typing import Any

from bochner.report.fit_notes import convergence, left_out_rows, rows_of_the_fit
from bochner.report.note import STANDARD_ERRORS, WORTHWHILE, Note

STATED_COVERAGE = 0.9
"""Probability that the judged intervals claim to hold."""
CALIBRATION_MARGIN = 0.02
"""Deviations of coverage or confidence up to this size do not matter, however many rows show them."""
FEW_ROWS = 100
"""Below this many rows the metrics are rough."""
RELEVANT, IRRELEVANT = 0.5, 0.01
"""An input is named from this part of the largest share on; below the second share it hardly matters."""
MOSTLY_NOISE, MOSTLY_MODEL = 0.2, 0.5
"""Share of model uncertainty in the variance below which noise prevails, and from which the model does."""

_SHOWN_NAMES = 3


def interval_calibration(coverage: float, n_rows: int, *, counts: bool = False) -> Note:
    """Judge the coverage of 90% intervals against the binomial error of so many rows.

    Args:
        coverage: share of targets inside their interval.
        n_rows: rows that were judged.
        counts: targets are whole numbers, whose intervals hold more than they state by their nature.

    Example:
        >>> from bochner.report.notes import interval_calibration
        >>> interval_calibration(0.91, 1000).verdict, interval_calibration(0.7, 1000).verdict
        ('good', 'attention')
    """
    error = math.sqrt(STATED_COVERAGE * (1 - STATED_COVERAGE) / n_rows)
    allowed = max(STANDARD_ERRORS * error, CALIBRATION_MARGIN)
    found = f"The 90% intervals hold {coverage:.0%} of the {n_rows:,} targets"
    if coverage < STATED_COVERAGE - allowed:
        text = f"{found}: they are too narrow, and the model is surer than it should be."
        return Note("Calibration", "attention", text)
    if coverage <= STATED_COVERAGE + allowed:
        chance = f"chance alone moves this by about {100 * STANDARD_ERRORS * error:.0f} points"
        text = f"{found}, which is what they promise ({chance})."
        return Note("Calibration", "good", text)
    if counts:
        text = f"{found}. Intervals of counts end at whole numbers, so more than 90% is usual."
        return Note("Calibration", "good", text)
    text = f"{found}: they are wider than needed, and the model is more cautious than it has to be."
    return Note("Calibration", "attention", text)


def inner_calibration(stated: float, coverage: float, n_rows: int) -> Note | None:
    """Tell when narrower intervals than those of 90% miss what they state; say nothing where they hold it.

    Args:
        stated: probability that the intervals claim to hold.
        coverage: share of targets inside.
        n_rows: rows that were judged.

    Example:
        >>> from bochner.report.notes import inner_calibration
        >>> inner_calibration(0.5, 0.62, 1000).text
        'The 50% intervals hold 62% of the targets: in the middle, predictions are too cautious.'
    """
    error = math.sqrt(stated * (1 - stated) / n_rows)
    if abs(coverage - stated) <= max(STANDARD_ERRORS * error, CALIBRATION_MARGIN):
        return None
    tendency = "too cautious" if coverage > stated else "too sure"
    found = f"The {100 * stated:.0f}% intervals hold {coverage:.0%} of the targets"
    return Note("Calibration", "info", f"{found}: in the middle, predictions are {tendency}.")


def class_calibration(
    confidence: Sequence[float], accuracy: Sequence[float], count: Sequence[int]
) -> Note:
    """Judge the expected calibration error against what calibrated probabilities would show by chance.

    In a bin with n rows and confidence p, chance alone leaves a mean distance of `sqrt(2 p (1 - p) / (pi n))`.

    Args:
        confidence: mean top probability in each bin.
        accuracy: share of right predictions in each bin.
        count: rows in each bin.

    Example:
        >>> from bochner.report.notes import class_calibration
        >>> class_calibration([0.9], [0.89], [1000]).verdict, class_calibration([0.9], [0.6], [1000]).verdict
        ('good', 'attention')
    """
    bins = [entry for entry in zip(confidence, accuracy, count, strict=True) if entry[2] > 0]
    n_rows = sum(n for _, _, n in bins)
    error = sum(n * abs(p - a) for p, a, n in bins) / n_rows
    chance = sum(n * math.sqrt(2 * p * (1 - p) / (math.pi * n)) for p, _, n in bins) / n_rows
    found = f"Stated probabilities and the share of right predictions differ by {_points(error)} on average"
    if error <= max(STANDARD_ERRORS * chance, CALIBRATION_MARGIN):
        text = f"{found}, where chance alone gives about {_points(chance)}: they can be taken as they are."
        return Note("Calibration", "good", text)
    surplus = sum(n * (p - a) for p, a, n in bins) / n_rows
    tendency = "surer than it should be" if surplus > 0 else "less sure than it could be"
    text = f"{found}, more than chance gives (about {_points(chance)}): the model is {tendency}."
    return Note("Calibration", "attention", text)


def sample_size(n_rows: int) -> Note | None:
    """Warn of few rows; say nothing where there are enough.

    Example:
        >>> from bochner.report.notes import sample_size
        >>> sample_size(30).verdict, sample_size(100)
        ('attention', None)
    """
    if n_rows >= FEW_ROWS:
        return None
    rows = "1 row" if n_rows == 1 else f"{n_rows} rows"
    text = f"All of this was measured on {rows}: other rows may give rather different numbers."
    return Note("Few rows", "attention", text)


def important_inputs(names: Sequence[str], shares: Sequence[float]) -> Note:
    """Name the inputs that predictions vary with most, and those that hardly matter.

    Args:
        names: of the inputs.
        shares: of each input in what exchanged values change of the predicted mean.

    Example:
        >>> from bochner.report.notes import important_inputs
        >>> important_inputs(["age", "id", "city"], [0.8, 0.001, 0.199]).text
        'Predictions vary most with “age” (80%). They hardly vary with “id”.'
    """
    ranked = sorted(zip(shares, names, strict=True), key=lambda pair: -pair[0])
    largest = ranked[0][0]
    if largest == 0:
        return Note("Inputs", "info", "Predictions do not vary with any input.")
    most = [(name, share) for share, name in ranked if share >= RELEVANT * largest]
    least = [name for share, name in reversed(ranked) if share < IRRELEVANT]
    if len(most) == len(names) > 1:
        return Note("Inputs", "info", "All inputs matter to a similar degree.")
    text = f"Predictions vary most with {_listed([f'“{name}” ({share:.0%})' for name, share in most])}."
    if least:
        text += f" They hardly vary with {_listed([f'“{name}”' for name in least])}."
    return Note("Inputs", "info", text)


def kinds_of_uncertainty(epistemic_share: float) -> Note:
    """Say what prevails in the predictive variance: noise, or doubt about the function.

    Args:
        epistemic_share: share of the variance over functions in the whole.

    Example:
        >>> from bochner.report.notes import kinds_of_uncertainty
        >>> kinds_of_uncertainty(0.05).text.split(":")[0]
        'Model uncertainty makes up 5% of the predictive variance'
    """
    found = f"Model uncertainty makes up {epistemic_share:.0%} of the predictive variance"
    if epistemic_share < MOSTLY_NOISE:
        advice = "most of it is noise, which further inputs may explain, but further rows will not."
    elif epistemic_share < MOSTLY_MODEL:
        advice = "noise prevails, but further rows would make predictions somewhat surer."
    else:
        advice = "further rows, where predictions are unsure, would help most."
    return Note("Uncertainty", "info", f"{found}: {advice}")


def gain_over_constant(
    mnll: float | None,
    constant_mnll: float | None,
    error: float,
    constant_error: float,
    *,
    classes: bool,
) -> Note:
    """Compare with predicting the same for every row: the mean and deviation of y, or the share of each class.

    Args:
        mnll: of the model; None where it is not finite.
        constant_mnll: of the constant prediction; None where it has none, as y is constant.
        error: RMSE or error rate of the model.
        constant_error: the same of the constant prediction.
        classes: whether errors are error rates.

    Example:
        >>> from bochner.report.notes import gain_over_constant
        >>> gain_over_constant(3.0, 4.0, 5.0, 10.0, classes=False).text.split('. ')[0]
        'The model explains 75% of the variance'
    """
    topic = "Usefulness"
    if constant_mnll is None:
        return Note(topic, "info", "All targets are equal, so there is nothing to compare with.")
    if mnll is None:
        text = (
            "Some rows cannot be, as the model sees it: their log-likelihood is not finite. Check whether they are of "
            "the same kind, and in the same units, as those it was fitted to."
        )
        return Note(topic, "attention", text)
    gain = constant_mnll - mnll
    if gain < WORTHWHILE:
        text = (
            "In log-likelihood the model is no better than predicting the same for every row: the inputs say "
            "little about the target, or the model has learned what holds for its training rows alone."
        )
        return Note(topic, "attention", text)
    if classes:
        guess = f"always guessing the most frequent class in {constant_error:.1%}"
        found = f"The model is wrong in {error:.1%} of the rows, {guess}"
    else:
        explained = max(1 - (error / constant_error) ** 2, 0.0)
        found = f"The model explains {explained:.0%} of the variance"
    likelihood = f"The observed values are {_likelier(gain)} under it as under a constant."
    return Note(topic, "good", f"{found}. {likelihood}")


def _likelier(gain: float) -> str:
    """Say a gain in log-likelihood as a factor.

    Example:
        >>> from bochner.report.notes import _likelier
        >>> _likelier(0.03), _likelier(1.0), _likelier(9.0)
        ('1.03 times as likely', '2.7 times as likely', 'more than 100 times as likely')
    """
    if gain >= math.log(100):
        return "more than 100 times as likely"
    return f"{math.exp(gain):.{3 if gain < math.log(2) else 2}g} times as likely"


def all_notes(data: dict[str, Any]) -> list[Note]:
    """Apply every rule to what `report_data` has collected."""
    metrics = {entry["name"]: entry for entry in data["metrics"]}
    n_rows, classes = data["data"]["n_rows"], data["task"] == "classification"
    error = metrics["error_rate" if classes else "rmse"]
    mnll, calibration = metrics["mnll"], data["calibration"]
    useful = _is_useful(mnll["value"], mnll["constant"])
    notes = [
        gain_over_constant(
            mnll["value"], mnll["constant"], error["value"], error["constant"], classes=classes
        ),
        *(
            [class_calibration(**calibration)]
            if classes
            else _interval_notes(
                calibration, metrics["coverage_90"]["value"], n_rows, data["target"]["counts"]
            )
        ),
        rows_of_the_fit(data["data"]["share_seen"]),
        _calibrated_note(data["calibrated"]),
        left_out_rows(data["left_out"], data["judging"]),
        _convergence_note(data["learning"], useful=useful),
        sample_size(n_rows),
        important_inputs(
            [entry["name"] for entry in data["inputs"]],
            [entry["share"] for entry in data["inputs"]],
        ),
        None if classes else kinds_of_uncertainty(data["epistemic_share"]),
        *(Note("Warning", "attention", text) for text in data["warnings"]),
    ]
    return [note for note in notes if note is not None]


def _calibrated_note(calibrated: str | None) -> Note | None:
    if calibrated is None:
        return None
    text = f"Intervals and sets were calibrated {calibrated}: on rows like those they hold what they say."
    return Note("Calibration", "info", text)


def _is_useful(mnll: float | None, constant: float | None) -> bool:
    """Tell whether a model is better than a constant; a loss that is not finite is None."""
    return constant is None or (mnll is not None and constant - mnll >= WORTHWHILE)


def _convergence_note(learning: dict[str, Any] | None, *, useful: bool) -> Note | None:
    if learning is None:
        return None
    bound, judged = (
        [value for value in learning[name] if value is not None]
        for name in ("bound", "held_out_mnll")
    )
    return convergence(bound, judged, useful=useful)


def _interval_notes(
    calibration: dict[str, Any], coverage: float, n_rows: int, counts: bool
) -> list[Note | None]:
    outer = interval_calibration(coverage, n_rows, counts=counts)
    if counts:
        return [outer]
    half = calibration["found"][calibration["stated"].index(0.5)]
    return [outer, inner_calibration(0.5, half, calibration["n_rows"])]


def _listed(names: Sequence[str]) -> str:
    shown = list(names[:_SHOWN_NAMES])
    more = len(names) - len(shown)
    if more:
        shown.append(f"{more:,} more")
    if len(shown) == 1:
        return shown[0]
    return f"{', '.join(shown[:-1])} and {shown[-1]}"


def _points(share: float) -> str:
    return f"{100 * share:.1f} points"
