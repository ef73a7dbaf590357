"""Bad input is refused before any work, by the name of the parameter or column and with a remedy."""

import numpy as np
import pandas as pd
import pytest

from bochner import Constant, DeepGPClassifier, DeepGPRegressor
from tests.deep_alone import deep_classifier, deep_regressor
from tests.estimators import problems
from tests.estimators.problems import SMALL

X, Y = problems.numbers(20)
LABELS = np.arange(20) % 3


@pytest.fixture
def no_work(monkeypatch):
    """Fail where a member is fitted."""

    def refuse(*arguments, **options):
        raise AssertionError("work began before the input was refused")

    monkeypatch.setattr("bochner.gp.model.DeepGP.start", refuse)
    monkeypatch.setattr("bochner.members.stack.rows_candidates", refuse)


def spoiled(array, row, value):
    array = array.copy()
    array[row] = value
    return array


FITS = {
    "infinity": (
        lambda: DeepGPClassifier().fit(spoiled(X, ([3, 9], 2), -np.inf), LABELS),
        r"X contains infinity.*column 2 has 2, the first in row 3",
    ),
    "nan in y": (
        lambda: DeepGPRegressor().fit(X, spoiled(Y, 4, np.nan)),
        r"y contains NaN.*the first in row 4.*Drop these rows",
    ),
    "nan in one of several targets": (
        lambda: DeepGPRegressor().fit(X, spoiled(np.stack([Y, Y], 1), (4, 1), np.inf)),
        r"y contains infinity.*target 1 of y",
    ),
    "missing label": (
        lambda: DeepGPClassifier().fit(X, np.array(["a", "b", None, *"ab" * 8, "a"], object)),
        r"y contains a missing label \(None, the first in row 2\)",
    ),
    "missing label of pandas": (
        lambda: DeepGPClassifier().fit(X, np.array(["a", "b", pd.NA, *"ab" * 8, "a"], object)),
        r"y contains a missing label \(<NA>, the first in row 2\)",
    ),
    "times as targets": (
        lambda: DeepGPRegressor().fit(X, np.arange(20).astype("datetime64[D]")),
        r"y must hold numbers, but holds times.*days since",
    ),
    "weights that are text": (
        lambda: DeepGPRegressor().fit(X, Y, sample_weight=["heavy"] * 20),
        r"`sample_weight` must hold numbers .*'heavy'",
    ),
    "masked targets": (
        lambda: DeepGPRegressor().fit(X, np.ma.masked_array(Y, np.arange(20) == 4)),
        r"y contains NaN.*the first in row 4",
    ),
    "masked labels": (
        lambda: DeepGPClassifier().fit(X, np.ma.masked_array(LABELS, np.arange(20) == 4)),
        r"y contains a missing label \(None, the first in row 4\)",
    ),
    "text as target": (
        lambda: DeepGPRegressor().fit(X[:2], ["one", "two"]),
        r"y must hold numbers, but holds text \('one' in row 0\). Use DeepGPClassifier",
    ),
    "numbers as classes": (
        lambda: DeepGPClassifier().fit(X, Y),
        r"y must name classes, .* Use DeepGPRegressor .*Unknown label type: continuous",
    ),
    "labels of two types": (
        lambda: DeepGPClassifier().fit(X, np.array([0, "a"] * 10, dtype=object)),
        r"labels of one type, text or numbers; got int and str. Give all of them as text",
    ),
    "tiny inputs": (
        lambda: DeepGPRegressor().fit(X * [1, 1e-300, 1], Y),
        r"column 1 holds nothing above .*e-\d+; .* reach 1e-100. Give it in a smaller unit",
    ),
    "huge inputs": (
        lambda: DeepGPRegressor().fit(pd.DataFrame(X * [1, 1, 1e200], columns=list("abc")), Y),
        r"column 'c' holds .*e\+20\d; .* within 1e\+100. Give it in a larger unit",
    ),
    "huge inputs of a table": (
        lambda: DeepGPRegressor().fit(pd.DataFrame({"a": 1e200 * Y, "b": Y}), "b"),
        r"a holds .*e\+20\d; .* within 1e\+100",
    ),
    "tiny targets": (
        lambda: DeepGPRegressor().fit(X, 1e-300 * Y),
        r"y holds nothing above .*e-29\d; some number must reach 1e-100",
    ),
    "tiny targets of a table": (
        lambda: DeepGPRegressor().fit(pd.DataFrame({"a": Y, "b": 1e-300 * Y}), "b"),
        r"b holds nothing above .*; some number must reach 1e-100",
    ),
    "huge targets": (
        lambda: DeepGPRegressor().fit(X, np.stack([Y, 1e200 * Y], 1)),
        r"target 1 of y holds .*e\+20\d; .* within 1e\+100",
    ),
    "a huge weight": (
        lambda: DeepGPRegressor().fit(X, Y, sample_weight=spoiled(np.ones(20), 5, 1e300)),
        r"largest weight of a row must lie between 1e-12 and 1e\+12; got 1e\+300",
    ),
    "tiny weights": (
        lambda: DeepGPRegressor().fit(X, Y, sample_weight=np.full(20, 1e-300)),
        r"largest weight of a row must lie between 1e-12 and 1e\+12; got 1e-300",
    ),
    "a huge weight of a class": (
        lambda: DeepGPClassifier(class_weight={0: 1e300, 1: 1, 2: 1}).fit(X, LABELS),
        r"largest weight of a row must lie between .*; got 1e\+300",
    ),
    "no rows": (
        lambda: DeepGPRegressor().fit(X[:0], Y[:0]),
        r"X is empty: it has no rows \(shape \(0, 3\)\). Check how the data was read",
    ),
    "an empty list": (lambda: DeepGPClassifier().fit([], []), "X is empty"),
    "no columns": (lambda: DeepGPRegressor().fit(X[:, :0], Y), r"0 feature\(s\)"),
    "one row": (lambda: DeepGPRegressor().fit(X[:1], Y[:1]), r"1 sample\(s\).*minimum of 2"),
    "a vector": (lambda: DeepGPRegressor().fit(X[:, 0], Y), r"Expected 2D array.*[Rr]eshape"),
    "one class": (
        lambda: DeepGPClassifier().fit(X, ["yes"] * 20),
        r"y must hold at least two classes; got one class only, 'yes'.*right column",
    ),
    "y shorter than X": (
        lambda: DeepGPRegressor().fit(X, Y[:-1]),
        r"X and y must have the same number of rows; got 20 in X and 19 in y",
    ),
    "labels longer than X": (
        lambda: DeepGPClassifier().fit(X[:-2], LABELS),
        r"same number of rows; got 18 in X and 20 in y",
    ),
    "no y": (lambda: DeepGPRegressor().fit(X, None), "y is None"),
    "weights shorter than X": (
        lambda: DeepGPRegressor().fit(X, Y, sample_weight=np.ones(3)),
        r"sample_weight.shape == \(3,\), expected \(20,\)",
    ),
    "a negative weight": (
        lambda: DeepGPRegressor().fit(X, Y, sample_weight=spoiled(np.ones(20), 5, -1.0)),
        r"`sample_weight` must not be negative; got -1 in row 5",
    ),
    "zero weights": (
        lambda: DeepGPRegressor().fit(X, Y, sample_weight=np.zeros(20)),
        r"`sample_weight` must not be zero for all rows",
    ),
    "fractions as counts": (
        lambda: DeepGPRegressor(likelihood="poisson").fit(X, spoiled(np.ones(20), 6, 1.5)),
        r"`y` must hold whole numbers.*got 1.5 in row 6. Use likelihood='gaussian'",
    ),
    "negative counts": (
        lambda: DeepGPRegressor(likelihood="poisson").fit(X, spoiled(np.ones(20), 6, -2)),
        r"`y` must hold whole numbers of at least 0.*got -2 in row 6",
    ),
    "another name for a constant law": (
        lambda: DeepGPRegressor(Constant(), likelihood="gausian").fit(X, Y),
        r"`likelihood` must be one of .*Did you mean 'gaussian'",
    ),
    "counts in a mixture": (
        lambda: DeepGPRegressor(Constant(), likelihood="poisson").fit(X, np.ones(20)),
        r"likelihood='poisson' is for a deep model alone",
    ),
    "groups of some rows": (
        lambda: DeepGPRegressor().fit(X, Y, groups=[0, 1]),
        r"`groups` must have one entry for each of the 20 rows; got shape \(2,\)",
    ),
    "one group": (
        lambda: DeepGPRegressor().fit(X, Y, groups=["a"] * 20),
        "`groups` must hold two groups or more",
    ),
    "validation without targets": (
        lambda: DeepGPRegressor().fit(X, Y, validation=X),
        r"`validation` must be a pair, inputs and targets",
    ),
    "three classes for bernoulli": (
        lambda: DeepGPClassifier(likelihood="bernoulli").fit(X, LABELS),
        r"likelihood='bernoulli' is for 2 classes; y has 3. Use likelihood='softmax'",
    ),
}


@pytest.mark.parametrize("name", FITS)
def test_data_that_cannot_be_used_are_refused(name, no_work):
    fit, message = FITS[name]
    with pytest.raises(ValueError, match=f"(?s){message}"):
        fit()


def test_rows_to_predict_are_checked_like_those_to_fit(regressor, classifier):
    x = problems.numbers()[0][:5]
    with pytest.raises(ValueError, match="X has 2 features, but DeepGPRegressor is expecting 3"):
        regressor.predict(x[:, :2])
    with pytest.raises(ValueError, match=r"column 0 has 1, the first in row 2"):
        regressor.sample_y(spoiled(x, (2, 0), np.inf))
    with pytest.raises(ValueError, match="X is empty"):
        regressor.predict_interval(x[:0])
    with pytest.raises(ValueError, match="same number of rows; got 5 in X and 4 in y"):
        regressor.log_prob(x, np.zeros(4))
    with pytest.raises(ValueError, match="y must have 1 columns, as at the first fit; got 2"):
        regressor.evaluate(x, np.zeros((5, 2)))
    with pytest.raises(ValueError, match="the class 'pink' in row 1, which was not there"):
        classifier.log_prob(x[:2, :2], ["red", "pink"])


def test_rows_to_predict_in_another_unit_are_refused(regressor):
    x = problems.numbers()[0][:5]
    with pytest.raises(ValueError, match=r"column 0 holds 1e\+200; .* Give it in a larger unit"):
        regressor.predict(spoiled(x, (2, 0), 1e200))


@pytest.mark.parametrize("kind", [int, bool, float])
def test_labels_may_come_as_objects(kind):
    labels = (LABELS > 0).astype(kind)
    model = DeepGPClassifier(Constant()).fit(X, labels.astype(object))
    assert model.classes_.dtype == labels.dtype
    assert model.predict(X).dtype == labels.dtype
    assert set(model.predict(X)) <= set(labels)
    assert np.all(np.isfinite(model.log_prob(X, labels.astype(object))))


def test_a_summary_needs_no_quantiles(regressor):
    x = problems.numbers()[0][:5]
    assert regressor.predict_summary(x).keys() == {"mean", "std"}
    with pytest.raises(ValueError, match="`quantiles` must lie strictly between 0 and 1; got 'a'"):
        regressor.predict_summary(x, "a")


@pytest.mark.parametrize("level", [0.0, 1.0, -0.5, 90])
def test_levels_outside_zero_and_one_are_refused(regressor, level):
    x = problems.numbers()[0][:5]
    with pytest.raises(ValueError, match="`quantiles` must lie strictly between 0 and 1"):
        regressor.predict_quantiles(x, [0.5, level])
    with pytest.raises(ValueError, match="`coverage` must lie strictly between 0 and 1"):
        regressor.predict_interval(x, level)


@pytest.mark.filterwarnings("ignore:.*far outside")
def test_two_rows_and_a_batch_larger_than_the_data_work():
    model = deep_regressor(**SMALL | {"batch_size": 1000, "max_steps": 5}).fit(X[:2], Y[:2])
    assert np.all(np.isfinite(model.predict(X)))
    model = deep_classifier(**SMALL | {"max_steps": 5}).fit(X[:2], ["a", "b"])
    assert set(model.predict(X)) <= {"a", "b"}


def test_a_constant_target_works_with_a_warning():
    with pytest.warns(UserWarning, match="y is constant.*nothing to learn"):
        model = deep_regressor(**SMALL).fit(X, np.full(20, 42.0))
    np.testing.assert_allclose(model.predict(X), 42.0, atol=0.5)
