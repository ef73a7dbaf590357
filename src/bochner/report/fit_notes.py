"""The notes about the fit: whether training had settled, and what rows say that it has left out or seen."""

import math
from collections.abc import Mapping, Sequence

from bochner.report.note import STANDARD_ERRORS, WORTHWHILE, Note

FEW_RECORDS = 10
"""Below this many records nothing is said about convergence."""
SETTLED = 0.01
"""Change of the log-likelihood of a row, in nats, that is too small to train longer for."""
SEEN = 0.05
"""Share of the rows from which on it is said that the fit has seen them."""

_OVERFITTING = Note(
    "Convergence",
    "info",
    "Held-out rows were predicted worse towards the end of the training, a sign of overfitting; the parameters of the "
    "best moment were kept.",
)


def convergence(bound: Sequence[float], held_out: Sequence[float], *, useful: bool = True) -> Note:
    """Judge whether the loss still fell in the last fifth of the training, from one half of it to the other.

    Held-out rows are judged where there are enough of their records, the bound otherwise. A change counts when it
    is beyond its standard error and large enough to matter. Longer training is advised only where nothing says that
    the model overfits.

    Args:
        bound: negative bound a row, one entry a record.
        held_out: MNLL of held-out rows, where it was computed.
        useful: whether the model is better than a constant on the rows of the report.

    Example:
        >>> from bochner.report.fit_notes import convergence
        >>> convergence([1.0] * 50, []).verdict, convergence([-i / 10 for i in range(50)], []).verdict
        ('good', 'attention')
    """
    judged, what = (
        (held_out, "log-likelihood of held-out rows")
        if len(held_out) >= FEW_RECORDS
        else (bound, "bound")
    )
    if len(judged) < FEW_RECORDS:
        text = f"Training left {len(judged)} records, too few to tell whether it had settled."
        return Note("Convergence", "info", text)
    last = judged[-max(len(judged) // 5, 4) :]
    early, late = last[: len(last) // 2], last[len(last) // 2 :]
    change = _mean(early) - _mean(late)
    allowed = max(STANDARD_ERRORS * math.hypot(_mean_error(early), _mean_error(late)), SETTLED)
    if judged is bound and held_out and held_out[-1] > min(held_out) + SETTLED:
        return _OVERFITTING
    if change > allowed and not useful:
        text = (
            f"The {what} still rose in the last fifth of the training, but the rows of this report are predicted no "
            "better than by a constant: longer training would not help."
        )
        return Note("Convergence", "info", text)
    if change > allowed:
        text = (
            f"The {what} still rose in the last fifth of the training, by {change:.2g} a row. Longer training "
            "(`max_steps`, `max_seconds`) is likely to give a better model."
        )
        return Note("Convergence", "attention", text)
    if change >= -allowed:
        text = (
            f"Training had settled: over its last fifth the {what} changed by no more than noise."
        )
        return Note("Convergence", "good", text)
    if judged is held_out:
        return _OVERFITTING
    text = "The bound fell towards the end of the training: lower the `learning_rate`."
    return Note("Convergence", "attention", text)


def rows_of_the_fit(share: float | None) -> Note | None:
    """Warn of rows that the fit has seen; say nothing where hardly any are.

    Args:
        share: of the rows that are equal, inputs and target, to rows of the fit; None where not known.

    Example:
        >>> from bochner.report.fit_notes import rows_of_the_fit
        >>> rows_of_the_fit(1.0).text.split(":")[0], rows_of_the_fit(0.01)
        ('All of these rows are equal, inputs and target, to rows that the model was fitted to', None)
    """
    if share is None or share < SEEN:
        return None
    of_them = "All" if share == 1 else f"About {share:.0%}"
    text = (
        f"{of_them} of these rows are equal, inputs and target, to rows that the model was fitted to: the numbers here "
        "look better than those of new rows would. Write the report with rows that were kept apart."
    )
    return Note("Rows of the fit", "attention", text)


def left_out_rows(found: Mapping[str, float | None], judging: str = "") -> Note | None:
    """Compare with simple models on rows that the fit has left out; say nothing where it has left out none.

    Args:
        found: mean log-likelihood of these rows under the fit, a constant and a linear model, and their number; None
            where one is not finite.
        judging: how they were chosen; at random where empty.

    Example:
        >>> from bochner.report.fit_notes import left_out_rows
        >>> left_out_rows({"log_likelihood": -1.0, "linear": -1.5, "constant": -2.0, "n_rows": 90}).verdict
        'good'
    """
    named = ((name, found.get(name)) for name in ("constant", "linear"))
    simple = {name: value for name, value in named if value is not None}
    if "log_likelihood" not in found or not simple:
        return None
    own, best = found["log_likelihood"], max(simple.values())
    if own is None:
        text = "Of rows that were left out of the fit, the log-likelihood is not finite: do not rely on this model."
        return Note("Left-out rows", "attention", text)
    beside = " and ".join(f"{value:.4g} under a {name} one" for name, value in simple.items())
    text = (
        f"On {found['n_rows']:,.0f} rows that were left out of the fit{f' ({judging})' if judging else ''}, the mean "
        f"log-likelihood is {own:.4g}, beside {beside}."
    )
    if own > best + WORTHWHILE:
        return Note("Left-out rows", "good", text)
    if own >= best - WORTHWHILE:
        return Note("Left-out rows", "info", f"{text} A simple model does as well.")
    return Note(
        "Left-out rows", "attention", f"{text} Do not rely on a model that a simple one beats."
    )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _mean_error(values: Sequence[float]) -> float:
    """Standard error of the mean."""
    center, n = _mean(values), len(values)
    return math.sqrt(sum((value - center) ** 2 for value in values) / (n - 1) / n)
