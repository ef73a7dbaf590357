"""Models whose numbers are not finite, and rows that cannot be, give a page that says so."""

import json
import math

import numpy as np
import pytest

from bochner.estimators.files import from_parts
from bochner.fitting.sources import encoded_matrix
from bochner.report import report_data
from bochner.report.figures import learning_figure
from bochner.system.saving import parse_arrays
from tests.make_model_files import FOLDER, table
from tests.mutations import joined, parts_of

Y = 5.0 + np.sin(np.arange(60.0))
NAMES = {-math.inf: "-inf", math.inf: "inf", math.nan: "nan"}


def changed(name, change):
    """The model of a file after a change of its header."""
    arrays, text = parts_of((FOLDER / f"{name}.bochner").read_bytes())
    header = json.loads(text)
    change(header["fitted"])
    return from_parts(*parse_arrays(joined(arrays, json.dumps(header)), "changed"))


def with_left_out(value):
    def change(fitted):
        fitted["summary"].update(log_likelihood=value, constant=value, linear=-1.0)

    return change


def with_history(fitted):
    deep = fitted["predictor"]["deep"]
    deep["elbo"] = deep["history"][0]["elbo"] = {"$float": "-inf"}


def without_weight(fitted):
    deep = fitted["predictor"]["deep"]
    fitted["total_weight"] = deep["total_weight"] = deep["trained_weight"] = 0.0


def verdicts(model, y=Y):
    found = report_data(model, encoded_matrix(model.fitted_.reader, table()), y)
    json.dumps(found, allow_nan=False)
    return {note["topic"]: note for note in found["notes"]}, found


@pytest.mark.parametrize("value", NAMES)
def test_left_out_rows_of_infinite_log_likelihood_are_said_to_be_so(value):
    model = changed("landmarks-2", with_left_out({"$float": NAMES[value]}))
    notes, _ = verdicts(model)
    assert "is not finite: do not rely" in notes["Left-out rows"]["text"]


def test_rows_that_cannot_be_are_said_to_be_so():
    model = changed("table-2", lambda fitted: None)
    notes, _ = verdicts(model, Y * 1e90)
    assert "their log-likelihood is not finite" in notes["Usefulness"]["text"]


@pytest.mark.parametrize("change", [with_history, without_weight])
def test_a_training_without_finite_bounds_is_drawn_all_the_same(change):
    _, found = verdicts(changed("table-2", change))
    assert learning_figure(found["learning"]).startswith("<svg")
