"""A case through the command line: fit a file, and do with the model what users do."""

import json
import os
import random
import subprocess
import sys

import numpy as np
import pandas as pd

from tests.soak.outcomes import check_finished, demand
from tests.soak.settings import random_settings
from tests.soak.tables import TARGET, RandomTable


def start(folder, words) -> subprocess.Popen:
    """Start a command in a folder."""
    return subprocess.Popen(
        [sys.executable, "-m", "bochner", *map(str, words)],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ),
    )  # fmt: skip


def finished(folder, *words) -> str:
    """Run a command; give what it printed, or raise what it refused or did wrong."""
    process = start(folder, words)
    output, errors = process.communicate()
    return check_finished(process.returncode, output, errors)


def written(r: random.Random, table: RandomTable, folder) -> str:
    """Write a table in a form that the command line reads."""
    ending = r.choice(["csv", "csv", "csv.gz", "parquet"])
    name = f"a table.{ending}"
    if ending == "parquet":
        table.frame.to_parquet(folder / name)
    else:
        table.frame.to_csv(folder / name, index=False)
    return name


def run(r: random.Random, table: RandomTable, folder):
    """Fit a model, predict, and run some more commands with it."""
    name = written(r, table, folder)
    settings = random_settings(r, table.task)
    words = ["--target", TARGET, "--model", "m.bochner", "--task", table.task, "--json"]
    said = json.loads(finished(folder, "fit", name, *words, *settings.flags()))
    demand(said["rows"] == len(table.frame), f"{said['rows']} rows of {len(table.frame)}")
    ending = r.choice(["csv", "parquet"])
    finished(folder, "predict", "m.bochner", name, "-o", f"p.{ending}")
    read = pd.read_csv if ending == "csv" else pd.read_parquet
    _check_predictions(read(folder / f"p.{ending}"), table)
    more = {
        "info": ["info", "m.bochner", "--json"],
        "evaluate": ["evaluate", "m.bochner", name, "--json"],
        "report": ["report", "m.bochner", name, "-o", "page.html"],
        "explain": ["explain", "m.bochner", "--json"],
        "sample": ["sample", "m.bochner", name, "-o", "s.csv", "--json"],
    }
    for chosen in r.sample(sorted(more), 2):
        printed = finished(folder, *more[chosen])
        if "--json" in more[chosen]:
            json.loads(printed)
    left = {path.name for path in folder.iterdir()}
    known = {name, "m.bochner", f"p.{ending}", "page.html", "s.csv"}
    demand(left <= known, f"files left behind: {left - known}")


def _check_predictions(found, table):
    demand(len(found) == len(table.frame), f"{len(found)} rows of predictions")
    numbers = found.select_dtypes("float").to_numpy()
    demand(np.all(np.isfinite(numbers)), "a prediction is not finite")
    if table.task == "regression":
        demand(np.all(found["lower"] <= found["upper"]), "an interval upside down")
