"""The tables of the report: confusions, worst-predicted rows, data, configuration."""

from typing import Any

from bochner.report.markup import escaped, number, percent, section, table

N_INPUTS = 20
"""Inputs listed at most, the most important ones."""
N_CLASSES = 20
"""Classes up to which all confusions are shown; of more, the most frequent confusions."""

_N_CONFUSIONS = 20
_N_WORST_INPUTS = 3
_STATISTICS = ("min", "median", "mean", "max", "std")
_LIGHTEST, _DARKEST = 10, 45


def confusion_section(data: dict[str, Any]) -> str:
    """Show which classes are taken for which: all of them, or the most frequent confusions of many."""
    classes, confusions = data["target"]["classes"], data["confusions"]
    show = _confusion_table if len(classes) <= N_CLASSES else _frequent_confusions
    return section("confusions", "Predicted against observed classes", show(classes, confusions))


def worst_section(data: dict[str, Any]) -> str:
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
        [str(row["row"]), *cells(row), *(_value(row["inputs"][place]) for place, _ in shown)]
        for row in data["worst"]
    ]
    head += [escaped(entry["name"]) for _, entry in shown]
    title = "Worst-predicted rows"
    content = table(head, rows, label=title, caption=caption, text_columns=texts, kind="worst")
    return section("worst", title, content)


def data_section(data: dict[str, Any]) -> str:
    """Summarize the target and the inputs of the rows."""
    inputs = sorted(data["inputs"], key=lambda entry: -entry["share"])
    rows = [
        [
            escaped(entry["name"]),
            percent(entry["share"]),
            percent(entry["missing"]) if entry["missing"] else "—",
            *_statistics(entry),
        ]
        for entry in inputs[:N_INPUTS]
    ]
    target, classes = data["target"], ""
    if data["task"] == "classification":
        classes = _class_counts(target["classes"], target["counts"], target["name"])
    else:
        name = "target" if target["name"] == "target" else f"{target['name']} (target)"
        rows.insert(0, [escaped(name), "", "—", *_statistics(target)])
    listed = table(
        ["column", "share", "missing", "smallest", "median", "mean", "largest", "deviation"],
        rows,
        label="Columns",
        caption="The most important inputs first; the median of a category is its most frequent value.",
        kind="inputs",
    )
    more = len(inputs) - N_INPUTS
    rest = f'<p class="remark">{more:,} less important inputs are not listed.</p>'
    title = f"Data: {data['data']['n_rows']:,} rows"
    return section("data", title, classes + listed + (rest if more > 0 else ""))


def members_section(data: dict[str, Any]) -> str:
    """List the members with their weights; nothing where one deep model was not compared with any."""
    members = data["members"]
    if len(members) < 2:
        return ""
    rows = [
        [
            escaped(member["name"]),
            percent(member["weight"]) if member["weight"] else "none",
            number(member["log_likelihood"]),
            number(member["seconds"], 2),
        ]
        for member in members
    ]
    title = "Which members predict"
    caption = (
        "Predictions are the mixture of the members by these weights. The mean log-likelihood is that of rows that "
        f"each member had left out. The law: {escaped(data['fit']['law'])}."
    )
    head = ["member", "weight", "left-out log-likelihood", "seconds"]
    return section("members", title, table(head, rows, label=title, caption=caption))


def configuration_section(data: dict[str, Any]) -> str:
    """List every setting of the fit."""
    entries = "".join(
        f"<div><dt>{escaped(name)}</dt><dd>{escaped(_setting(value))}</dd></div>"
        for name, value in data["configuration"].items()
    )
    of_a_member = data["learning"] is not None and data["fit"]["n_layers"] is None
    title = "Configuration of the deep member" if of_a_member else "Configuration"
    return section("configuration", title, f'<dl class="settings">{entries}</dl>')


def _number_cells(row: dict[str, Any]) -> list[str]:
    interval = f"{number(row['low'])} to {number(row['high'])}"
    return [number(row["observed"]), number(row["mean"]), interval, number(row["log_prob"], 3)]


def _class_cells(row: dict[str, Any]) -> list[str]:
    return [
        f"{escaped(row[which])} ({percent(row[f'{which}_probability'])})"
        for which in ("observed", "predicted")
    ]


def _statistics(summary: dict[str, Any]) -> list[str]:
    return [_value(summary[name]) for name in _STATISTICS]


def _value(value: Any) -> str:
    return escaped(number(value))


def _confusion_table(classes: list[Any], confusions: list[list[int]]) -> str:
    rows = []
    for place, counts in enumerate(confusions):
        total = max(sum(counts), 1)
        cells = [
            _confusion_cell(count, total, right=place == other)
            for other, count in enumerate(counts)
        ]
        rows.append([escaped(classes[place]), *cells, percent(counts[place] / total)])
    return table(
        ["observed", *(escaped(name) for name in classes), "right"],
        rows,
        label="Confusions",
        caption="Rows by their observed class (down) and their predicted class (across).",
        kind="confusions",
    )


def _confusion_cell(count: int, total: int, *, right: bool) -> str:
    if count == 0:
        return '<span class="none">0</span>'
    # A single row must be seen among thousands.
    shade = _LIGHTEST + (_DARKEST - _LIGHTEST) * count / total
    kind = "right" if right else "wrong"
    return f'<span class="{kind}" style="--share:{shade:.0f}">{count:,}</span>'


def _frequent_confusions(classes: list[Any], confusions: list[list[int]]) -> str:
    found = [
        (count, sum(counts), observed, predicted)
        for observed, counts in enumerate(confusions)
        for predicted, count in enumerate(counts)
        if count and observed != predicted
    ]
    found.sort(key=lambda entry: -entry[0])
    rows = [
        [
            escaped(classes[observed]),
            escaped(classes[predicted]),
            f"{count:,}",
            percent(count / total),
        ]
        for count, total, observed, predicted in found[:_N_CONFUSIONS]
    ]
    return table(
        ["observed", "predicted", "rows", "of the observed class"],
        rows,
        label="Confusions",
        caption=f"The most frequent confusions among {len(classes):,} classes.",
        text_columns=(0, 1),
    )


def _class_counts(classes: list[Any], counts: list[int], target: str) -> str:
    ranked = sorted(zip(counts, classes, strict=True), key=lambda pair: -pair[0])
    shown = ", ".join(
        f"{escaped(name)} ({percent(count / sum(counts))})" for count, name in ranked[:N_CLASSES]
    )
    more = f", and {len(ranked) - N_CLASSES:,} more" if len(ranked) > N_CLASSES else ""
    return f"<p>{len(classes):,} classes of “{escaped(target)}”: {shown}{more}.</p>"


def _setting(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, float):
        return f"{value:g}"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
