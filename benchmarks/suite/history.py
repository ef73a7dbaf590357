"""What each full run of our default came to, by date and commit, with a picture."""

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.suite import standing, tables
from benchmarks.suite.records import Key, Record


def entry(records: Mapping[Key, Record]) -> dict[str, Any] | None:
    """Sum up a run of our default over all tables, if all splits are there and of one commit."""
    of_all = [
        records.get((standing.OURS, name, split))
        for name in tables.NAMES
        for split in tables.splits_of(name)
    ]
    found = [record for record in of_all if record is not None and "scores" in record]
    commits = {record["commit"] for record in found}
    if len(found) < len(of_all) or len(commits) != 1:
        return None
    counts = {
        rival: standing.verdicts(records, rival) for rival in ("linear", "LightGBM", "CatBoost")
    }
    means = {
        name: float(
            np.mean(
                [
                    record["scores"]["log_likelihood"]
                    for record in standing.by_split(records, standing.OURS, name).values()
                ]
            )
        )
        for name in tables.NAMES
    }
    return {
        "date": max(record["date"] for record in found),
        "commit": commits.pop(),
        "log_likelihood": means,
        "verdicts": {rival: dict(Counter(count)) for rival, count in counts.items()},
        "failing": len(standing.shames(records)),
        "cpu_hours": round(sum(record["fit_cpu_seconds"] for record in found) / 3600, 2),
    }


def keep(records: Mapping[Key, Record], out: Path) -> None:
    """Add a full run to `history.jsonl`, once, and draw all of them."""
    path = out / "history.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    entries = [json.loads(line) for line in lines]
    new = entry(records)
    if new is None or new["commit"] in {one["commit"] for one in entries}:
        return
    entries.append(new)
    path.write_text("".join(f"{json.dumps(one)}\n" for one in entries), encoding="utf-8")
    draw(entries, out / "history.png")


def draw(entries: list[dict[str, Any]], path: Path) -> None:
    """Draw the gain over the first run, in the mean over tables, and how many failings each run has."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    first = entries[0]["log_likelihood"]
    names = [name for name in first if all(name in one["log_likelihood"] for one in entries)]
    gains = [
        np.median([one["log_likelihood"][name] - first[name] for name in names]) for one in entries
    ]
    labels = [f"{one['date']}\n{one['commit'][:7]}" for one in entries]
    figure, (above, below) = plt.subplots(2, 1, sharex=True, figsize=(7, 4.5), layout="constrained")
    above.plot(labels, gains, marker="o")
    above.set_ylabel("median gain in\nlog-likelihood (nats)")
    below.plot(labels, [one["failing"] for one in entries], marker="o", color="C3")
    below.set_ylabel("failings")
    below.set_ylim(bottom=0)
    figure.savefig(path, dpi=130)
    plt.close(figure)
