"""What a fit says of the law that it has chosen."""

import numpy as np
import pytest

from bochner import DeepGPClassifier, DeepGPRegressor, Exact, Linear
from bochner.fitting.task import Regression
from bochner.members.chosen_law import law_in_words
from bochner.members.fitted import Fitted
from bochner.members.predictors import StackRegressor
from bochner.members.stack import Standing
from tests.members.tables import curve, sides


def test_each_shape_has_its_weight_and_its_best_log_likelihood():
    names = {
        "sum, as it is": (-2.0, 0.2),
        "all: sum, log": (-1.5, 0.1),
        "sum with varying noise, log": (-1.25, 0.0),
        "density": (-1.0, 0.6),
        "net": (-3.0, 0.1),
    }
    standings = tuple(Standing(name, score, w, 1.0) for name, (score, w) in names.items())
    fitted = Fitted(Regression(), StackRegressor((), np.zeros(0)), 1, 0, standings=standings)
    assert law_in_words(fitted) == (
        "numbers; weights by left-out rows: a density of free shape 0.60 (log-likelihood -1), equal noise 0.30 "
        "(log-likelihood -1.5), net 0.10 (log-likelihood -3), noise that varies with the row 0.00 "
        "(log-likelihood -1.25)"
    )


def test_several_targets_are_told_apart():
    X, y = curve(60)
    model = DeepGPRegressor(Linear()).fit(X, np.column_stack([np.rint(y), y]))
    first, second = model.law_.split("; target 1: ")
    assert first.startswith("target 0: whole numbers: all training targets are on the lattice ")
    assert second.startswith("numbers; weights by left-out rows: equal noise 1.00 (")


def test_classes_are_told():
    assert DeepGPClassifier(Linear()).fit(*sides(30)).law_ == "classes"


@pytest.mark.parametrize("likelihood", ["auto", None])
def test_auto_tries_densities_and_lattices_and_a_named_law_does_not(likelihood):
    rng = np.random.default_rng(0)
    x = rng.uniform(0.3, 1, 300)
    y = x * rng.choice([-3, 3], 300) + 0.1 * rng.normal(size=300)
    model = DeepGPRegressor(Exact(), likelihood=likelihood, random_state=0).fit(x[:, None], y)
    assert model.law_.startswith("numbers; weights by left-out rows: a density of free shape")
    named = DeepGPRegressor(Exact(), likelihood="heteroscedastic", random_state=0)
    assert "density" not in named.fit(x[:, None], y).law_
    without = DeepGPRegressor(Exact(density=False), likelihood=likelihood, random_state=0)
    assert "density" not in without.fit(x[:, None], y).law_
