"""`bochner explain`: which columns matter to a model, and what they contribute to one row."""

import io
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bochner.cli.common import AsJson, ModelPath, Quiet, command, in_words, load_model, show
from bochner.cli.output import Output

if TYPE_CHECKING:
    import numpy as np

_FORMATS = (".png", ".pdf", ".svg")
_MOST_ROWS = 100_000


@command
def explain(
    model: ModelPath,
    table: Annotated[
        str | None,
        typer.Argument(
            metavar="[TABLE]",
            help="Rows to vary; by default training rows that the model has kept.",
        ),
    ] = None,
    row: Annotated[
        int | None,
        typer.Option(min=0, metavar="N", help="Explain row N of TABLE, counted from 0."),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Draw effects of the most important columns: .png, .pdf or .svg."
        ),
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Show the share of each column in what makes predictions differ, or what columns contribute to one row.

    Of a table with more than 200 rows, 200 are drawn from its first 100,000. A row is compared with training rows that
    the model has kept, or where there are none, with those of TABLE.
    """
    place = None if plot is None else _place(plot, {"MODEL": model, "TABLE": table})
    if row is not None and (table is None or plot is not None):
        raise ValueError("--row needs TABLE, which holds the row, and goes without --plot.")
    fitted = load_model(model)
    if table is None and len(fitted.fitted_.background) < 2:
        raise ValueError("the model has kept no training rows: give TABLE.")
    if row is not None:
        found = _of_row(fitted, _rows(fitted, table, max(row + 1, _MOST_ROWS)), row, as_json)
    else:
        explanation = fitted.explain(None if table is None else _rows(fitted, table, _MOST_ROWS))
        found = _of_columns(explanation, as_json)
        if place is not None:
            place.write(_drawn(fitted, explanation, place.path.suffix[1:]))
            found["plot"] = str(plot)
    if place is None or not place.is_standard_output:
        show(found, as_json=as_json, title=str(model))


def _place(plot: Path, inputs: dict[str, Any]) -> Output:
    place = Output("--plot", plot, inputs)
    if place.path.suffix not in _FORMATS:
        raise ValueError(f"--plot must end in .png, .pdf or .svg; got {str(plot)!r}.")
    return place


def _rows(fitted: Any, table: str | None, most: int) -> "np.ndarray":
    """Read the first rows, encoded."""
    import numpy as np

    from bochner.fitting.sources import Encoded, encoded_batches

    found: list[np.ndarray] = [np.zeros((0, fitted.fitted_.d_in)).view(Encoded)]
    n_rows = 0
    for X, _ in encoded_batches(fitted.fitted_.reader, table):
        found.append(X)
        n_rows += len(X)
        if n_rows >= most:
            break
    return np.concatenate(found)[:most]


def _of_columns(explanation: Any, as_json: bool) -> dict[str, Any]:
    members = {name: vars(one) for name, one in explanation.members.items()}
    found: dict[str, Any] = {
        "rows": len(explanation.rows),
        "columns": explanation.columns,
        "parts": explanation.parts,
        "members": members,
    }
    if as_json:
        return found | {"outputs": explanation.outputs}
    return {
        "rows": found["rows"],
        "columns": _percent(explanation.columns),
        "kinds of functions": _percent(explanation.parts),
        "members": _percent({name: one["share"] for name, one in members.items()}),
    }


def _percent(shares: dict[str, float]) -> dict[str, str]:
    return {name: f"{share:.1%}" for name, share in shares.items()}


def _of_row(fitted: Any, X: "np.ndarray", row: int, as_json: bool) -> dict[str, Any]:
    """Tell what columns contribute to the mean of a row, or to the probability of its most probable class."""
    import numpy as np

    from bochner.explaining import moment_in_words, output_names

    if getattr(fitted, "n_targets_", 1) > 1:
        raise ValueError("the model has several targets; explain its rows in Python.")
    if row >= len(X):
        raise ValueError(f"TABLE has {len(X):,} rows, so --row must be less; got {row}.")
    background = None if len(fitted.fitted_.background) > 1 else X
    found = fitted.explain_row(X[[row]], background)
    values = [moment_in_words(v) if isinstance(v, np.datetime64) else v for v in found.values]
    names = output_names(fitted.fitted_)
    if as_json:

        def by_output(values: "np.ndarray") -> Any:
            return dict(zip(names, values.tolist(), strict=True)) if names else float(values)

        return {
            "row": row,
            "mean": by_output(found.mean),
            "average": by_output(found.average),
            "values": dict(zip(found.columns, values, strict=True)),
            "contributions": {
                name: by_output(own)
                for name, own in zip(found.columns, found.contributions, strict=True)
            },
        }
    chosen = int(np.argmax(found.mean)) if names else 0
    own = found.contributions.reshape(len(values), -1)[:, chosen]
    told = {
        f"{found.columns[i]} = {in_words(values[i])}": f"{own[i]:+.4g}"
        for i in np.argsort(-np.abs(own), kind="stable")
    }
    of = f" of {names[chosen]}" if names else ""
    return {
        "row": row,
        f"mean{of}": float(found.mean.reshape(-1)[chosen]),
        f"average{of}": float(found.average.reshape(-1)[chosen]),
        "contributions": told,
    }


def _drawn(fitted: Any, explanation: Any, kind: str) -> bytes:
    figure, file = fitted.plot_effects(explanation=explanation)[0].figure, io.BytesIO()
    figure.savefig(file, format=kind, dpi=150)
    import matplotlib.pyplot as plt

    plt.close(figure)
    return file.getvalue()
