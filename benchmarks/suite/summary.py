"""The result in words and numbers: `suite.md`, written from the records."""

import textwrap
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from rich.console import Console

from benchmarks.suite import history, picture, readme, records, run, standing, systems, tables
from benchmarks.suite.records import Key, Record
from experiments.provenance import origin

_COMMITTED = readme.README.parent / "benchmarks" / "results" / "suite.md"

_WIDTH = 120
SMALL = 3_000
"""Rows below which all systems run."""

_HEAD = """# The suite

Predictions on {n_tables} real tables, the same splits for every system; [how to read this, and how to add to
it](../README.md). Written by `python -m benchmarks suite --report` from the records in `suite/`.
"""


def write(folder: Path, out: Path) -> Path:
    """Write `suite.md` and its picture into a folder, from the records in another; gives its path."""
    found = records.read(folder, systems.NAMES)
    out.mkdir(parents=True, exist_ok=True)
    drawn = picture.draw(found, out / "suite.png")
    text = "\n".join([_HEAD.format(n_tables=len(tables.NAMES)), *_sections(found, drawn=drawn)])
    path = out / "suite.md"
    path.write_text(text.rstrip() + "\n", encoding="utf-8")
    history.keep(found, out)
    if path.resolve() == _COMMITTED:
        readme.write(in_short(found))
    Console(stderr=True).print(f"wrote {path}", markup=False, soft_wrap=True)
    return path


def headline(found: Mapping[Key, Record]) -> list[str]:
    """Give the lines of the ranking, and of wins and losses, as Markdown."""
    lines, before = _unfinished(found), None
    for title, names in ((f" below {SMALL:,} rows", _small()), ("", tables.NAMES)):
        ranking = standing.ranking(found, names)
        if not ranking.tables or ranking == before:
            continue
        before = ranking
        lines += [
            f"Mean rank over {len(ranking.tables)} of the {len(names)} tables{title}, on the {ranking.n_splits} splits "
            "that all of these have:",
            "",
        ]
        lines += _table(
            ["", *(score.title for score in standing.SCORES)],
            [
                [_bold(name), *(f"{rank:.2f}" for rank in ranking.ranks[name])]
                for name in ranking.names
            ],
        )
        if ranking.left_out:
            missing = "; ".join(f"{name} {n}" for name, n in ranking.left_out.items())
            lines += _paragraph(f"Not ranked, as they have few of these tables so far: {missing}.")
    rows = []
    for rival in systems.NAMES:
        counts = standing.verdicts(found, rival) if rival != standing.OURS else Counter()
        if counts:
            rows.append([rival, *(str(counts[word]) for word in ("win", "tie", "loss"))])
    if not rows:
        return [*lines, "There is no table yet that our default and another system have.\n"]
    lines += [
        "Our default against each on the splits that both have, by log-likelihood beyond two paired standard errors:",
        "",
    ]
    return [*lines, *_table(["", "wins", "ties", "losses"], rows)]


def in_short(found: Mapping[Key, Record]) -> list[str]:
    """Give the lines of one small table as Markdown: ranks by log-likelihood, and wins and losses against each."""
    # The tables on which most systems can be ranked; rivals must not drop out because they are slow.
    rankings = [standing.ranking(found, names) for names in (tables.NAMES, _small())]
    ranking = max(rankings, key=lambda one: (len(one.names), len(one.tables)))
    if not ranking.tables:
        return ["There is no table yet that our default and another system have.\n"]
    n_tables, n_splits = len(ranking.tables), ranking.n_splits
    lines = [
        f"Mean rank by log-likelihood on the {n_tables} of {len(tables.NAMES)} tables ({n_splits} splits) that all "
        "ranked systems have so far; wins, ties and losses of our default beyond two paired standard errors, on tables "
        "that both have:",
        "",
    ]
    rows = []
    for name in (*ranking.names, *ranking.left_out):
        counts = standing.verdicts(found, name) if name != standing.OURS else Counter()
        rank = f"{ranking.ranks[name][0]:.2f}" if name in ranking.ranks else "too few tables yet"
        each = [str(counts[word]) for word in ("win", "tie", "loss")] if counts else [""] * 3
        rows.append([_bold(name), rank, *each])
    return [*lines, *_table(["", "mean rank", "wins", "ties", "losses"], rows)]


def _small() -> list[str]:
    return [name for name in tables.NAMES if tables.n_rows(name) < SMALL]


def _unfinished(found: Mapping[Key, Record]) -> list[str]:
    """Say how many fits each system has that has not all."""
    told = []
    for system in systems.NAMES:
        n_there = sum(key[0] == system for key in found)
        n_all = len(run.jobs([system], tables.NAMES))
        if 0 < n_there < n_all:
            told.append(f"{system} {n_there} of {n_all}")
    return _paragraph(f"Fits so far: {'; '.join(told)}.") if told else []


def _sections(found: Mapping[Key, Record], *, drawn: bool) -> list[str]:
    if not found:
        return ["There is no record yet."]
    return [
        _origin(found),
        "## Where the systems stand\n",
        *headline(found),
        *(["![Lead over the best rival, table by table](suite.png)\n"] if drawn else []),
        "## Where our default fails\n",
        *_shames(found),
        *_failures_of_others(found),
        "## Every table\n",
        _explained(found),
        *_scores(found, "Log-likelihood", _score("log_likelihood"), best=max),
        *_scores(
            found, "Log-likelihood of rows not in the training part", _score("log_likelihood_new"), best=max
        ),
        *_scores(found, "CRPS, or Brier score", _score("crps", "brier"), best=min),
        *_scores(found, "RMSE, or error rate", _score("rmse", "error_rate"), best=min),
        *_scores(found, "Coverage of 90 % intervals, or calibration error", _score("coverage_90", "ece")),
        *_scores(found, "Coverage of 50 % intervals", _score("coverage_50")),
        *_scores(found, "Coverage of 99 % intervals", _score("coverage_99")),
        *_scores(found, "Processor seconds of a fit", lambda one: one["fit_cpu_seconds"]),
        *_scores(found, "Memory of a fit, MB", lambda one: one["memory_mb"]),
        *_all_splits(found),
    ]  # fmt: skip


def _origin(found: Mapping[Key, Record]) -> str:
    lines = []
    for system in systems.NAMES:
        of_system = [record for key, record in found.items() if key[0] == system]
        if not of_system:
            continue
        told = origin(of_system).partition(": ")[2].rstrip(".")
        days = sorted({record.get("date", "") for record in of_system})
        failed = sum("failed" in record for record in of_system)
        stopped = sum(bool(record.get("stopped")) for record in of_system)
        lines.append(
            [
                system,
                f"{len(of_system)} of {len(run.jobs([system], tables.NAMES))}",
                str(failed),
                str(stopped),
                f"{days[0]} to {days[-1]}",
                told,
            ]
        )
    machines = {
        f"{record['cores']} cores of {record['processor']}"
        for record in found.values()
        if "processor" in record
    }
    head = ["", "fits", "failed", "stopped", "when", "commits"]
    return "\n".join(
        [f"Each fit ran on one core of: {'; '.join(sorted(machines))}.\n", *_table(head, lines)]
    )


def _shames(found: Mapping[Key, Record]) -> list[str]:
    ours = {name for system, name, _ in found if system == standing.OURS}
    if not ours:
        return ["There is no record of it yet.\n"]
    shames = standing.shames(found)
    head = (
        f"Of {len(ours)} tables: more than 0.03 nats and two standard errors below a constant or a linear model, "
        "intervals that miss what they say by more than 3 binomial errors and 1.5 points, a calibration error more "
        "than 0.01 above what chance gives, or a failure.\n"
    )
    return [head, *(f"- {line}" for line in shames or ["none"]), ""]


def _failures_of_others(found: Mapping[Key, Record]) -> list[str]:
    failed = [
        f"- {system} on {name}, split {split}: {record['failed']}"
        for (system, name, split), record in found.items()
        if "failed" in record and system != standing.OURS
    ]
    return ["Fits of other systems that failed:\n", *failed, ""] if failed else []


def _explained(found: Mapping[Key, Record]) -> str:
    laws = {}
    for record in found.values():
        laws.setdefault(record["system"], set()).add(record.get("law", ""))
    told = "; ".join(
        f"{name}: {' / '.join(sorted(laws[name] - {''}))}" for name in systems.NAMES if name in laws
    )
    return (
        "Means over splits, their number in brackets where a system has fewer than others; the best in bold where it "
        "has all. *stopped*: the time limit ended a fit, and it is not ranked. What each predicts for a row: "
        f"{told}.\n"
    )


def _score(*names: str) -> Callable[[Record], float]:
    def of(record: Record) -> float:
        for name in names:
            if record["scores"].get(name) is not None:
                return record["scores"][name]
        return np.nan

    return of


def _scores(
    found: Mapping[Key, Record],
    title: str,
    of: Callable[[Record], float],
    best: Callable | None = None,
) -> list[str]:
    there = [name for name in systems.NAMES if any(key[0] == name for key in found)]
    rows = []
    for name in tables.NAMES:
        cells, means = [], {}
        counts = {system: len(standing.by_split(found, system, name)) for system in there}
        most = max(counts.values(), default=0)
        for system in there:
            whole = standing.by_split(found, system, name)
            values = [of(record) for record in whole.values()]
            if values and not np.all(np.isnan(values)):
                mean = float(np.nanmean(values))
                cells.append(_number(mean) + (f" ({len(values)})" if len(values) < most else ""))
                if len(values) == most:
                    means[system] = mean
            else:
                cells.append(_why_none(found, system, name))
        if best is not None and means:
            first = best(means.values())
            cells = [
                f"**{cell}**" if means.get(system) == first else cell
                for system, cell in zip(there, cells, strict=True)
            ]
        if any(cells):
            rows.append([f"{name} ({tables.n_rows(name):,})", *cells])
    if not rows:
        return []
    return [f"### {title}\n", *_table(["", *there], rows)]


def _why_none(found: Mapping[Key, Record], system: str, name: str) -> str:
    some = [found.get((system, name, split)) for split in tables.splits_of(name)]
    if any(record and "failed" in record for record in some):
        return "*failed*"
    return "*stopped*" if any(record and record.get("stopped") for record in some) else ""


def _all_splits(found: Mapping[Key, Record]) -> list[str]:
    rows = []
    for name, splits in tables.ALL_STANDARD.items():
        scores = [
            record["scores"]
            for split in splits
            if (record := found.get((standing.OURS, name, split))) and "scores" in record
        ]
        if len(scores) == len(splits):
            cells = []
            for score in ("log_likelihood", "crps", "rmse", "coverage_90"):
                values = [one[score] for one in scores]
                mean, deviation = float(np.mean(values)), float(np.std(values, ddof=1))
                cells.append(f"{_number(mean)} ± {_number(deviation)}")
            rows.append([name, *cells])
    if not rows:
        return []
    title = "### Our default on all twenty standard splits (mean ± deviation over splits)\n"
    return [title, *_table(["", "log-likelihood", "CRPS", "RMSE", "90 % intervals cover"], rows)]


def _paragraph(text: str) -> list[str]:
    return [*textwrap.wrap(text, _WIDTH), ""]


def _number(value: float) -> str:
    return f"{value:.3f}" if abs(value) < 100 else f"{value:,.0f}"


def _bold(name: str) -> str:
    return f"**{name}**" if name == standing.OURS else name


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
    return [*lines, *(f"| {' | '.join(row)} |" for row in rows), ""]
