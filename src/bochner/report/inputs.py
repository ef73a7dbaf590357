"""What the report shows of the inputs: what each column holds, and how much of the prediction it decides."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from bochner.explaining import Explanation, TableColumn, moment_in_words, table_columns

Summaries = list[dict[str, Any]]


N_EFFECTS = 6
"""Inputs along which the mean prediction is drawn, the most important ones."""

_POINTS = 24


def inputs_of(
    model: Any, X: np.ndarray, names: Sequence[str] | None, explanation: Explanation
) -> Summaries:
    """Summarize the columns of the table, in their order, by the rows of a matrix.

    Example:
        >>> import numpy as np
        >>> from bochner import DeepGPRegressor, Linear
        >>> from bochner.report.inputs import inputs_of
        >>> X = np.array([[0.0, 1], [1, 1], [2, 1], [4, 1]])
        >>> model = DeepGPRegressor(Linear(), random_state=0).fit(X, [0, 1, 2, 4])
        >>> summaries = inputs_of(model, X, ["a", "b"], model.explain())
        >>> [(found["name"], found["share"], found["max"]) for found in summaries]
        [('a', 1.0, 4.0), ('b', 0.0, 1.0)]
    """
    columns = table_columns(model.fitted_)
    if names is None:
        names = [column.name for column in columns]
    if len(names) != len(columns):
        raise ValueError(
            f"`columns` must name the {len(columns)} columns of X; got {len(names)} names."
        )
    return [
        {
            "name": str(name),
            "share": explanation.columns[column.name],
            **_summary(column, column.values(X)),
        }
        for name, column in zip(names, columns, strict=True)
    ]


def explanation_of(model: Any, X: np.ndarray) -> Explanation:
    """Explain a model by the rows that it has kept; models of former versions have kept none."""
    return model.explain(X if len(model.fitted_.background) < 2 else None)


def effects_of(model: Any, inputs: Summaries, explanation: Explanation) -> list[dict[str, Any]]:
    """Find what the most important inputs do; of several classes, to the one that they change most.

    Example:
        >>> import numpy as np
        >>> from bochner import DeepGPRegressor, Linear
        >>> from bochner.report.inputs import effects_of, inputs_of
        >>> X = np.array([[0.0, 1], [1, 1], [2, 1], [4, 1]])
        >>> model = DeepGPRegressor(Linear(), random_state=0).fit(X, [0, 1, 2, 4])
        >>> explanation = model.explain()
        >>> found = effects_of(model, inputs_of(model, X, None, explanation), explanation)
        >>> [effect["name"] for effect in found], round(found[0]["mean"][-1])
        (['column 0'], 4)
    """
    columns = [column.name for column in table_columns(model.fitted_)]
    ranked = sorted(zip(inputs, columns, strict=True), key=lambda pair: -pair[0]["share"])
    chosen = [pair for pair in ranked if pair[0]["share"] > 0][:N_EFFECTS]
    found = [(entry, explanation.effect(column, _POINTS)) for entry, column in chosen]
    names = list(explanation.outputs)
    output, of = 0, "predicted mean"
    if names and found:
        changes = sum(np.ptp(effect.mean.reshape(-1, len(names)), axis=0) for _, effect in found)
        # Of two classes both change alike.
        output = 1 if len(names) == 2 else int(np.argmax(changes))
        of = f"probability of {names[output]}"
    return [
        {
            "name": entry["name"],
            "share": entry["share"],
            "of": of,
            "is_category": effect.is_category,
            "values": [_plain(value) for value in effect.values],
            **{
                part: getattr(effect, part).reshape(len(effect.values), -1)[:, output]
                for part in ("mean", "low", "high")
            },
        }
        for entry, effect in found
    ]


def values_of_rows(model: Any, X: np.ndarray) -> list[list[Any]]:
    """Give the values of rows, as texts, numbers and truth values; None where they are missing."""
    columns = [map(_plain, column.values(X)) for column in table_columns(model.fitted_)]
    return [list(row) for row in zip(*columns, strict=True)]


def _summary(column: TableColumn, values: np.ndarray) -> dict[str, Any]:
    """Describe values; the most frequent one stands in the place of the median where they have no order."""
    missing = [
        value is None or value != value for value in values
    ]  # only NaN and NaT differ from themselves
    present = values[~np.array(missing, bool)]
    found: dict[str, Any] = dict.fromkeys(("min", "median", "mean", "max", "std"))
    found["missing"] = float(np.mean(missing))
    if not len(present):
        return found
    if column.is_category:
        return found | {"median": _plain(Counter(present.tolist()).most_common(1)[0][0])}
    ordered = np.sort(present)
    ends = {"min": _plain(ordered[0]), "max": _plain(ordered[-1])}
    if present.dtype.kind == "M":
        return found | ends | {"median": _plain(ordered[len(ordered) // 2])}
    moments = {"median": np.median(present), "mean": np.mean(present), "std": np.std(present)}
    return found | ends | {name: float(value) for name, value in moments.items()}


def _plain(value: Any) -> Any:
    """Give a value as JSON knows it."""
    if isinstance(value, np.datetime64):
        return moment_in_words(value)
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if value is None or isinstance(value, str):
        return value
    return float(value) if np.isfinite(value) else None
