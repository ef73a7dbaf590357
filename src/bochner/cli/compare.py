"""`bochner compare`: two models on the same rows, with errors of the differences."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bochner.cli.common import AsJson, Quiet, TablePath, command, in_words, load_model, show
from bochner.cli.evaluate import Target, target_name
from bochner.system.terminal import PlainConsole, harmless

if TYPE_CHECKING:
    import numpy as np

    from bochner.prediction.paired import Difference

_First = Annotated[Path, typer.Argument(metavar="FIRST", help="Model file, made by `fit`.")]
_Second = Annotated[Path, typer.Argument(metavar="SECOND", help="Model file of another fit.")]


@command
def compare(
    first: _First,
    second: _Second,
    table: TablePath,
    target: Target = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Compare two models on the rows of TABLE, row by row: what each loses, the difference, and its standard error.

    A difference of more than two standard errors is hardly chance, if the rows are independent and neither model has
    seen them. All losses are better where they are lower.
    """
    if table == "-" or Path(table).is_fifo():
        raise ValueError("`compare` reads TABLE once for each model: give a file.")
    models = [load_model(first), load_model(second)]
    classes = [hasattr(model, "classes_") for model in models]
    if classes[0] != classes[1]:
        raise ValueError(
            "one model predicts numbers and the other classes: compare like with like."
        )
    names = {target_name(model, target) for model in models}
    if len(names) > 1:
        raise ValueError(
            f"the models predict different columns ({', '.join(sorted(map(repr, names)))}): compare like with like, "
            "or give --target."
        )
    losses = [_losses(model, table, names.copy().pop()) for model in models]
    found = _differences(*losses)
    n_rows = len(losses[0]["mnll"])
    if as_json:
        told = {name: _plain(one) for name, one in found.items()}
        show({"rows": n_rows, "first": first, "second": second, "metrics": told}, as_json=True)
    else:
        _print(found, (str(first), str(second)), n_rows)


def _losses(model: Any, table: str, target: str) -> dict[str, "np.ndarray"]:
    """Give what the model loses at each row, by metric."""
    import numpy as np

    from bochner.fitting.sources import encoded_batches
    from bochner.tables.targets import target_values

    classes = hasattr(model, "classes_")
    parts: list[dict[str, np.ndarray]] = []
    n_rows = 0
    for X, batch in encoded_batches(model.fitted_.reader, table, target):
        y = target_values(batch, target, classification=classes, row=n_rows)
        n_rows += len(X)
        part = {"mnll": -model.log_prob(X, y)}
        if classes:
            p = model.predict_proba(X)
            right = model.classes_[None, :] == y[:, None]
            part["error_rate"] = 1.0 - right[np.arange(len(y)), p.argmax(axis=1)]
            part["brier"] = np.sum((p - right) ** 2, axis=1)
        else:
            part["rmse"] = (y - model.predict(X)) ** 2
        parts.append(part)
    if not n_rows:
        raise ValueError(f"{table} has no rows.")
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _differences(
    first: dict[str, "np.ndarray"], second: dict[str, "np.ndarray"]
) -> dict[str, "Difference"]:
    from bochner.prediction.paired import Difference

    return {
        name: (Difference.of_roots if name == "rmse" else Difference.of_means)(own, second[name])
        for name, own in first.items()
    }


def _plain(one: "Difference") -> dict[str, Any]:
    return {
        "first": one.first,
        "second": one.second,
        "difference": one.difference,
        "standard_error": one.standard_error,
    }


def _print(found: dict[str, "Difference"], models: tuple[str, str], n_rows: int) -> None:
    from rich.table import Table as RichTable

    heads = [harmless(model) for model in models] if len(set(models)) > 1 else ["first", "second"]
    shown = RichTable("metric", title=f"On {n_rows:,} rows; lower is better", title_justify="left")
    for head in (*heads, "difference", "standard error"):
        shown.add_column(head, justify="right")
    shown.add_column("better")
    for name, one in found.items():
        numbers = (one.first, one.second, one.difference, one.standard_error)
        better = "no clear difference" if one.better is None else heads[one.better]
        shown.add_row(name.replace("_", " "), *map(in_words, numbers), better)
    PlainConsole().print(shown)
