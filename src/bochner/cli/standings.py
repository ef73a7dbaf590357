"""Which members predict, and how each did on rows that it had left out: for people and for machines."""

import dataclasses
from typing import Any

from rich.table import Table as RichTable

from bochner.cli.common import in_words
from bochner.system.terminal import PlainConsole, harmless


def standings(fitted: Any) -> dict[str, Any]:
    """Give members and left-out rows of a fit for JSON.

    Example:
        >>> from bochner import DeepGPRegressor, Linear
        >>> from bochner.cli.standings import standings
        >>> model = DeepGPRegressor(Linear(), random_state=0).fit([[1.0], [2.0], [3.0]], [1.0, 2.1, 3.0])
        >>> found = standings(model.fitted_)
        >>> found["left_out"]["n_rows"], sorted(found["members"][0])
        (3, ['log_likelihood', 'name', 'seconds', 'weight'])
    """
    from bochner.members.chosen_law import law_in_words

    members = [dataclasses.asdict(one) for one in _ranked(fitted)]
    counts = {name: int(value) for name, value in fitted.summary.items() if name == "n_rows"}
    judging = fitted.judging or "rows left out at random"
    left_out = {**fitted.summary, **counts}
    told = {"members": members, "left_out": left_out, "judged_by": judging}
    return told | {"law": law_in_words(fitted)}


def in_a_line(fitted: Any) -> dict[str, str]:
    """Say which law was chosen, and how the whole did on rows left out, beside simple models, where there were any."""
    from bochner.members.chosen_law import law_in_words

    law, found = law_in_words(fitted), dict(fitted.summary)
    if not found:
        return {"law": law}
    beside = [f"{name} {found[name]:.4g}" for name in ("linear", "constant") if name in found]
    rows = f"{found['n_rows']:,.0f} rows"
    about = ", ".join([*beside, rows, *([fitted.judging] if fitted.judging else [])])
    left_out = f"{found['log_likelihood']:.4g} ({about})"
    return {"law": law, "left-out log-likelihood": left_out}


def show_members(fitted: Any) -> None:
    """Print a table of the members with weight; nothing where there is but one."""
    members = [one for one in _ranked(fitted) if one.weight > 0]
    if len(members) < 2:
        return
    table = RichTable("member", title="Members that predict together", title_justify="left")
    for head in ("weight", "left-out log-likelihood"):
        table.add_column(head, justify="right")
    for one in members:
        weight = f"{one.weight:.2f}" if one.weight >= 0.005 else "<0.01"
        table.add_row(harmless(one.name), weight, in_words(one.log_likelihood))
    PlainConsole().print(table)


def _ranked(fitted: Any) -> list[Any]:
    return sorted(fitted.standings, key=lambda one: -one.weight)
