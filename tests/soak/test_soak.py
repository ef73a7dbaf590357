"""The soak repeats a case by its number, and notices what is wrong."""

import random
import sys

import numpy as np
import pandas as pd
import pytest

from tests.soak import __main__ as soak
from tests.soak import in_python
from tests.soak.outcomes import RefusedError, WrongError, check_error, check_finished
from tests.soak.settings import random_settings
from tests.soak.tables import TARGET, random_table


@pytest.mark.parametrize("number", range(20))
def test_tables_and_settings_are_functions_of_the_seed(number):
    one, other = (random_table(random.Random(number)) for _ in range(2))
    pd.testing.assert_frame_equal(one.frame, other.frame)
    assert TARGET in one.frame
    flags = [random_settings(random.Random(number), one.task).flags() for _ in range(2)]
    assert flags[0] == flags[1]


class Model:
    """Predicts what it is told."""

    def __init__(self, **changes):
        good = {"mean": [1.0, 2.0], "std": [1.0, 1.0], "quantiles": [[0.0, 1.0, 2.0]] * 2}
        self.found = {name: np.array(values) for name, values in (good | changes).items()}

    def predict_summary(self, X, levels):
        return self.found


@pytest.mark.parametrize(
    "changes",
    [{"mean": [1.0, np.nan]}, {"std": [0.0, 1.0]}, {"quantiles": [[1.0, 0.0, 2.0]] * 2}, {"mean": [1.0]}],
)  # fmt: skip
def test_predictions_that_cannot_be_are_noticed(changes):
    table = type("Table", (), {"is_plain": True})
    in_python._check_numbers(Model(), [0, 1], table)
    with pytest.raises(WrongError):
        in_python._check_numbers(Model(**changes), [0, 1], table)


def test_an_error_of_another_library_is_wrong_and_one_in_words_a_refusal():
    with pytest.raises(ZeroDivisionError):
        check_error(_error_of(lambda: 1 / 0))
    from bochner import DeepGPRegressor

    with pytest.raises(RefusedError, match="X is empty"):
        check_error(_error_of(lambda: DeepGPRegressor().fit([], [])))


def _error_of(call):
    try:
        call()
    except Exception as error:
        return error
    raise AssertionError("no error")


@pytest.mark.parametrize(
    ("code", "errors"), [(1, "Traceback (most recent"), (-11, ""), (1, ""), (0, "overflow encountered in x")]
)  # fmt: skip
def test_commands_that_end_badly_are_noticed(code, errors):
    assert check_finished(0, "done", "") == "done"
    with pytest.raises(RefusedError, match="no such"):
        check_finished(1, "", "Error: no such file")
    with pytest.raises(WrongError):
        check_finished(code, "", errors)


@pytest.mark.parametrize("end", ["fine", "wrong"])
def test_the_exit_code_says_whether_anything_was_wrong(monkeypatch, capsys, end):
    told = {"number": 7, "kind": "python", "end": end, "why": "", "kills": 0, "seconds": 0.1}
    monkeypatch.setattr(soak, "_run", lambda seed, number: told)
    monkeypatch.setattr(sys, "argv", ["soak", "--seed", "5", "--case", "7"])
    assert soak.main() == (end == "wrong")
    printed = capsys.readouterr().out
    assert ("--seed 5 --case 7" in printed) == (end == "wrong")
    assert ("wrong: nothing" in printed) == (end == "fine")
