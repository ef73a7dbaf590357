"""`bochner demo`: the ground between surveyed points, predicted with its uncertainty, on one page."""

import base64
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table as RichTable

from bochner.cli.common import AsJson, Quiet, Seed, command, show
from bochner.cli.output import check_folder
from bochner.system.terminal import PlainConsole

_HEADINGS = {
    "rmse": "RMSE",
    "interval_score_90": "interval score",
    "coverage_90": "coverage of 90 % intervals",
    "width_90": "their width",
}
_PAGE = "demo.html"
Scores = dict[str, float]


@command
def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for the page and its pictures.")
    ] = Path("bochner-demo"),
    seed: Seed = 0,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Predict the ground between surveyed points; print scores beside baselines; write one page with pictures."""
    console = PlainConsole(quiet=as_json)
    started = time.monotonic()
    check_folder("--output", output, {})
    output.mkdir(parents=True, exist_ok=True)
    for package in ("matplotlib", "jinja2"):
        if find_spec(package) is None:
            raise ImportError(
                f"the demo needs {package}: install it with `pip install bochner[plots]`."
            )
    from bochner import DeepGPRegressor
    from bochner.cli import landscape, landscape_pictures

    land = landscape.Landscape.surveyed(seed)
    title = (
        f"The ground between {len(land.y)} surveyed points, judged at {len(land.y_test):,} others"
    )
    console.print(title, style="bold")
    model = DeepGPRegressor(random_state=seed, verbose=0 if quiet else 1).fit(land.table, "height")
    scores = landscape.all_scores(model, land)
    console.print(_as_table(scores))
    landscape_pictures.draw(model, land, output)
    seconds = time.monotonic() - started
    _write_page(title, scores, seconds, output)
    console.print(f"Done in {seconds:.0f} s. Open {output / _PAGE}", soft_wrap=True)
    if as_json:
        pictures = list(landscape_pictures.PICTURES)
        show(
            {"folder": output, "page": _PAGE, "pictures": pictures, "scores": scores}, as_json=True
        )


def _as_table(scores: dict[str, Scores]) -> RichTable:
    table = RichTable("meters", *_HEADINGS.values())
    for model, found in scores.items():
        table.add_row(model, *(_written(name, found[name]) for name in _HEADINGS))
    return table


def _written(name: str, value: float) -> str:
    return f"{value:.1%}" if name == "coverage_90" else f"{value:.1f}"


def _write_page(title: str, scores: dict[str, Scores], seconds: float, output: Path) -> None:
    from bochner.cli.landscape_pictures import PICTURES
    from bochner.report import write_report
    from bochner.report.rendering import rendered

    pictures = [
        (caption, base64.b64encode((output / name).read_bytes()).decode())
        for name, caption in PICTURES.items()
    ]
    rows = {
        model: [_written(name, found[name]) for name in _HEADINGS]
        for model, found in scores.items()
    }
    page = rendered(
        "demo.html",
        title=title,
        headings=list(_HEADINGS.values()),
        rows=rows,
        pictures=pictures,
        seconds=seconds,
    )
    write_report(output / _PAGE, page)
