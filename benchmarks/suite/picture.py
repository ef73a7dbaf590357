"""The lead of our default over the best rival in log-likelihood, table by table, sorted."""

from collections.abc import Mapping
from pathlib import Path

from benchmarks.suite import standing, systems, tables
from benchmarks.suite.records import Key, Record

_LINEAR = 0.1  # nats up to which the axis is linear


def draw(records: Mapping[Key, Record], path: Path) -> bool:
    """Draw the picture, if there are records to draw; tells whether there are."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    leads = {}
    for name in tables.NAMES:
        found = standing.best_rival(records, name)
        if found is not None:
            leads[name] = found
    if not leads:
        return False
    order = sorted(leads, key=lambda name: leads[name][1].value)
    rivals = [name for name in systems.NAMES if any(leads[one][0] == name for one in order)]
    colors = {
        rival: plt.colormaps["tab20"](2 * place % 20 + place // 10)
        for place, rival in enumerate(rivals)
    }
    figure, axes = plt.subplots(figsize=(7.5, 0.19 * len(order) + 1.4), layout="constrained")
    for rival in rivals:
        places = [place for place, name in enumerate(order) if leads[name][0] == rival]
        found = [leads[order[place]][1] for place in places]
        axes.barh(
            places,
            [one.value for one in found],
            xerr=[2 * one.error for one in found],
            color=colors[rival],
            ecolor="0.35",
            label=rival,
            height=0.75,
            error_kw={"linewidth": 0.8},
        )
    axes.set_xscale("symlog", linthresh=_LINEAR)
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set_yticks(range(len(order)), order, fontsize=7)
    axes.set_ylim(-0.7, len(order) - 0.3)
    axes.grid(axis="x", linewidth=0.3)
    axes.set_xlabel(
        "log-likelihood of bochner, no option set, less that of the best rival (nats a row, ± 2 errors)"
    )
    axes.legend(title="best rival", fontsize=7, title_fontsize=7, loc="lower right")
    figure.savefig(path, dpi=130)
    plt.close(figure)
    return True
