"""The tables of the report as plain cells: members, confusions, worst-predicted rows, data, settings."""

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

from bochner.report.texts import number, percent

N_INPUTS = 20
"""Inputs listed at most, the most important ones."""
N_CLASSES = 20
"""Classes up to which all confusions are shown; of more, the most frequent confusions."""

_N_CONFUSIONS = 20
_N_WORST_INPUTS = 3
_STATISTICS = ("min", "median", "mean", "max", "std")
_LIGHTEST, _DARKEST = 10, 45


@dataclasses.dataclass(frozen=True)
class Table:
    """A table for the page.

    Attributes:
        label: what it shows, for those who cannot see it.
        head: titles of the columns.
        rows: cells as texts; the first one of each row is its header.
        caption: a line to show above it.
        text_columns: columns of text; the others hold numbers and are aligned to the right.
        kind: its class, for the style.
    """

    label: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""
    text_columns: Iterable[int] = (0,)
    kind: str = ""


def members_table(members: Sequence[dict[str, Any]], law: str) -> Table | None:
    """List the members with their weights; nothing where one deep model was not compared with any."""
    if len(members) < 2:
        return None
    rows = [
        [
            member["name"],
            percent(member["weight"]) if member["weight"] else "none",
            number(member["log_likelihood"]),
            number(member["seconds"], 2),
        ]
        for member in members
    ]
    caption = (
        "Predictions are the mixture of the members by these weights. The mean log-likelihood is that of rows that "
        f"each member had left out. The law: {law}."
    )
    head = ["member", "weight", "left-out log-likelihood", "seconds"]
    return Table("Which members predict", head, rows, caption)


def kinds_table(kinds: Sequence[dict[str, Any]], *, classes: bool) -> Table | None:
    """Put each kind of member that has weight beside the whole, on the rows of the report."""
    n_with_the_whole = len(kinds)
    if n_with_the_whole < 3:
        return None
    write = percent if classes else number
    rows = [
        [kind["name"], percent(kind["weight"]), write(kind["error"]), number(kind["mnll"])]
        for kind in kinds
    ]
    head = ["on these rows", "weight", "error rate" if classes else "RMSE", "MNLL"]
    caption = "What each kind of member would reach alone on the rows of this report, beside all together."
    return Table("Kinds of members", head, rows, caption)


def worst_table(data: dict[str, Any]) -> Table:
    """List the rows with the lowest predictive density, with the values of the most important inputs."""
    ranked = sorted(enumerate(data["inputs"]), key=lambda pair: -pair[1]["share"])
    shown = ranked[:_N_WORST_INPUTS]
    caption = (
        "The rows that surprised the model most, counted from 0, with their most important inputs."
    )
    if data["task"] == "classification":
        caption += " In brackets: the probability of the class."
        head, texts, cells = ["row", "observed", "predicted"], (0, 1, 2), _class_cells
    else:
        head = ["row", "observed", "predicted", "90% interval", "log density"]
        texts, cells = (0,), _number_cells
    rows = [
        [
            str(row["row"]),
            *cells(row),
            *(number(row["inputs"][place]) for place, _ in shown),
        ]
        for row in data["worst"]
    ]
    head += [entry["name"] for _, entry in shown]
    return Table("Worst-predicted rows", head, rows, caption, texts, "worst")


def inputs_table(data: dict[str, Any]) -> Table:
    """Summarize the target and the inputs of the rows."""
    inputs = sorted(data["inputs"], key=lambda entry: -entry["share"])
    rows = [
        [
            entry["name"],
            percent(entry["share"]),
            percent(entry["missing"]) if entry["missing"] else "—",
            *_statistics(entry),
        ]
        for entry in inputs[:N_INPUTS]
    ]
    target = data["target"]
    if data["task"] != "classification":
        name = "target" if target["name"] == "target" else f"{target['name']} (target)"
        rows.insert(0, [name, "", "—", *_statistics(target)])
    return Table(
        "Columns",
        ["column", "share", "missing", "smallest", "median", "mean", "largest", "deviation"],
        rows,
        "The most important inputs first; the median of a category is its most frequent value.",
        kind="inputs",
    )


def class_counts(target: dict[str, Any]) -> str:
    """Say which classes there are, and how frequent the most frequent ones."""
    classes, counts = target["classes"], target["counts"]
    ranked = sorted(zip(counts, classes, strict=True), key=lambda pair: -pair[0])
    shown = ", ".join(f"{name} ({percent(n / sum(counts))})" for n, name in ranked[:N_CLASSES])
    more = f", and {len(ranked) - N_CLASSES:,} more" if len(ranked) > N_CLASSES else ""
    return f"{len(classes):,} classes of “{target['name']}”: {shown}{more}."


def confusion_matrix(classes: Sequence[Any], confusions: list[list[int]]) -> list[dict[str, Any]]:
    """Give all confusions, each with how dark it is."""
    return [
        {
            "observed": classes[place],
            "right": percent(counts[place] / max(sum(counts), 1)),
            "cells": [
                _confusion(count, max(sum(counts), 1), right=place == other)
                for other, count in enumerate(counts)
            ],
        }
        for place, counts in enumerate(confusions)
    ]


def frequent_confusions(classes: Sequence[Any], confusions: list[list[int]]) -> Table:
    """List the most frequent confusions of many classes."""
    found = [
        (count, sum(counts), observed, predicted)
        for observed, counts in enumerate(confusions)
        for predicted, count in enumerate(counts)
        if count and observed != predicted
    ]
    found.sort(key=lambda entry: -entry[0])
    rows = [
        [str(classes[observed]), str(classes[predicted]), f"{count:,}", percent(count / total)]
        for count, total, observed, predicted in found[:_N_CONFUSIONS]
    ]
    head = ["observed", "predicted", "rows", "of the observed class"]
    caption = f"The most frequent confusions among {len(classes):,} classes."
    return Table("Confusions", head, rows, caption, (0, 1))


def setting(value: Any) -> str:
    """Write the value of a setting."""
    if value is None:
        return "none"
    if isinstance(value, float):
        return f"{value:g}"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _confusion(count: int, total: int, *, right: bool) -> dict[str, Any]:
    if count == 0:
        return {"count": 0, "kind": "none", "shade": None}
    # A single row must be seen among thousands.
    shade = _LIGHTEST + (_DARKEST - _LIGHTEST) * count / total
    return {"count": count, "kind": "right" if right else "wrong", "shade": round(shade)}


def _number_cells(row: dict[str, Any]) -> list[str]:
    interval = f"{number(row['low'])} to {number(row['high'])}"
    return [number(row["observed"]), number(row["mean"]), interval, number(row["log_prob"], 3)]


def _class_cells(row: dict[str, Any]) -> list[str]:
    return [
        f"{row[which]} ({percent(row[f'{which}_probability'])})"
        for which in ("observed", "predicted")
    ]


def _statistics(summary: dict[str, Any]) -> list[str]:
    return [number(summary[name]) for name in _STATISTICS]
