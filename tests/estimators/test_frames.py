"""Rows beside targets as scikit-learn's tools give them: frames and arrays with text, dates, categories, and gaps."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.special import logsumexp
from sklearn.inspection import permutation_importance
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.utils import get_tags

from bochner import Constant, DeepGPClassifier, DeepGPRegressor, Linear, load

N = 60
LINEAR = {"members": Linear(), "random_state": 0}


def frame():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "size": rng.normal(size=N),
            "color": rng.choice(["red", "green", "blue"], N),
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, N), unit="D"),
            "kind": pd.Categorical(rng.choice(["u", "v"], N)),
            "rooms": pd.array(rng.integers(0, 9, N), dtype="Int64"),
            "sold": rng.random(N) > 0.5,
            "price": [f"${1000 + 7 * i:,}.00" for i in range(N)],
        }
    )


def with_gaps():
    rows = frame()
    rows.loc[3, "rooms"] = pd.NA
    rows.loc[4:6, "color"] = None
    rows.loc[7, "day"] = pd.NaT
    return rows


def targets():
    rows = frame()
    noise = np.random.default_rng(1).normal(size=N)
    return (2 * rows["size"] + 3 * (rows["color"] == "red") + 0.1 * noise).to_numpy()


@pytest.fixture(scope="module")
def fitted():
    return DeepGPRegressor(**LINEAR).fit(frame(), targets())


@pytest.mark.parametrize(
    "as_given", [lambda rows: rows, pl.from_pandas, lambda rows: rows.to_numpy(dtype=object)]
)
def test_columns_of_any_type_are_learned_from(as_given):
    X = as_given(with_gaps())
    model = DeepGPRegressor(**LINEAR).fit(X, targets())
    assert model.score(X, targets()) > 0.9
    assert model.n_features_in_ == 7
    by_name = DeepGPRegressor(**LINEAR).fit(with_gaps().assign(y=targets()), "y")
    np.testing.assert_allclose(model.predict(X), by_name.predict(with_gaps()), rtol=1e-6)
    assert by_name.n_features_in_ == 7
    assert by_name.feature_names_in_.tolist() == [*frame().columns]


def test_an_array_of_the_same_values_is_predicted_alike(fitted):
    assert fitted.feature_names_in_.tolist() == [*frame().columns]
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        found = fitted.predict(frame().to_numpy(dtype=object))
    np.testing.assert_array_equal(found, fitted.predict(frame()))
    with pytest.raises(ValueError, match="X has 2 features, but DeepGPRegressor is expecting 7"):
        fitted.predict([["red", 1.0]])


def test_columns_may_come_in_another_order(fitted):
    moved = frame()[[*frame().columns[::-1]]]
    np.testing.assert_array_equal(fitted.predict(moved), fitted.predict(frame()))


def test_a_saved_model_takes_frames_and_arrays_as_before(fitted, tmp_path):
    fitted.save(tmp_path / "model.bochner")
    again = load(tmp_path / "model.bochner")
    assert again.n_features_in_ == 7
    assert again.feature_names_in_.tolist() == fitted.feature_names_in_.tolist()
    np.testing.assert_array_equal(again.predict(frame()), fitted.predict(frame()))
    frame().to_csv(tmp_path / "new.csv", index=False)
    np.testing.assert_allclose(again.predict(tmp_path / "new.csv"), fitted.predict(frame()))


def test_lists_with_text_keep_their_numbers():
    rows = [[i, "red" if i % 3 else "blue"] for i in range(30)]
    model = DeepGPRegressor(**LINEAR).fit(rows, [2.0 * i for i, _ in rows])
    assert model.fitted_.column_names == ["x0", "x1=blue", "x1=red"]
    np.testing.assert_allclose(model.predict([[10, "red"]]), 20, atol=0.5)


def test_missing_numbers_of_arrays_are_told_from_medians():
    X = np.random.default_rng(2).normal(size=(N, 2))
    holes = np.arange(N) % 5 == 0
    y = X[:, 0] + 5.0 * holes
    gaps = np.where(holes[:, None] & [False, True], np.nan, X)
    model = DeepGPRegressor(**LINEAR).fit(gaps, y)
    assert (model.n_features_in_, model.fitted_.d_in) == (2, 3)
    assert model.score(gaps, y) > 0.99
    masked = np.ma.masked_array(X, np.isnan(gaps))
    np.testing.assert_array_equal(
        DeepGPRegressor(**LINEAR).fit(masked, y).predict(gaps), model.predict(gaps)
    )
    np.testing.assert_array_equal(model.predict(masked), model.predict(gaps))


def test_scikit_learn_is_told():
    for model in (DeepGPRegressor(), DeepGPClassifier()):
        tags = get_tags(model).input_tags
        assert tags.allow_nan
        assert tags.string
        assert tags.categorical


def test_tools_of_scikit_learn_take_raw_frames():
    X, y = with_gaps(), targets()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of gaps in the rows of some folds alone
        assert cross_val_score(DeepGPRegressor(**LINEAR), X, y, cv=3).min() > 0.7
        grid = {"members": [Constant(), Linear()]}
        found = GridSearchCV(DeepGPRegressor(random_state=0), grid, cv=2).fit(X, y)
        assert isinstance(found.best_params_["members"], Linear)
        tried = permutation_importance(found.best_estimator_, X, y, n_repeats=2, random_state=0)
    shares = tried["importances_mean"]
    assert shares.argmax() == 0
    assert shares.shape == (7,)


# Values that no row of the fit lacked.


@pytest.fixture(scope="module")
def numbers():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(N, 2))
    y = 3 * X[:, 0] + X[:, 1] + 0.3 * rng.normal(size=N)
    return X, y


@pytest.fixture(scope="module")
def of_numbers(numbers):
    return DeepGPRegressor(**LINEAR).fit(*numbers)


def filled(model, row):
    """Put the values of the rows that are averaged over into the gaps of a row."""
    known = model.fitted_.background
    chosen = known[np.unique(np.linspace(0, len(known) - 1, 40).astype(int))]
    return np.where(np.isnan(row), chosen, row)


@pytest.mark.filterwarnings("ignore:.*no row of the fit lacked")
def test_a_gap_is_averaged_over_training_rows(of_numbers):
    row = np.array([np.nan, 0.5])
    copies = filled(of_numbers, row)
    parts = of_numbers.predict_summary(copies, np.linspace(0.0005, 0.9995, 1000))
    X = np.array([[0.1, 0.2], row])
    found = of_numbers.predict_summary(X, [0.01, 0.3, 0.5, 0.95])
    np.testing.assert_allclose(found["mean"][1], parts["mean"].mean())
    variance = np.mean(parts["std"] ** 2) + np.var(parts["mean"])
    np.testing.assert_allclose(found["std"][1], np.sqrt(variance))
    assert found["std"][1] > 5 * found["std"][0]
    expected = np.quantile(parts["quantiles"], [0.01, 0.3, 0.5, 0.95])
    np.testing.assert_allclose(found["quantiles"][1], expected, atol=0.03 * found["std"][1])
    epistemic, aleatoric = of_numbers.predict_variance(X)
    np.testing.assert_allclose(epistemic[1] + aleatoric[1], variance)
    # A row without gaps is predicted as alone.
    alone = of_numbers.predict_summary(X[:1], [0.3])
    np.testing.assert_allclose(
        [found["mean"][0], found["quantiles"][0, 1]], [alone["mean"][0], alone["quantiles"][0, 0]]
    )
    density = of_numbers.log_prob(X, [0.5, 0.5])
    each = of_numbers.log_prob(copies, np.full(40, 0.5))
    np.testing.assert_allclose(density[1], logsumexp(each) - np.log(40))
    np.testing.assert_allclose(density[0], of_numbers.log_prob(X[:1], [0.5])[0])
    drawn = of_numbers.sample_y(X, 4000, random_state=0)
    np.testing.assert_allclose(drawn[1].std(), np.sqrt(variance), rtol=0.06)
    np.testing.assert_allclose(drawn[1].mean(), found["mean"][1], atol=0.06 * np.sqrt(variance) * 2)


def test_a_gap_of_a_class_is_averaged_over_training_rows(numbers):
    X, y = numbers
    model = DeepGPClassifier(**LINEAR).fit(X, np.where(y > 0, "high", "low"))
    row = np.array([np.nan, 0.5])
    with pytest.warns(
        UserWarning, match=r"1 of 2 rows, the first being row 2, lack values .*'column 0'"
    ):
        found = model.predict_proba([[0.1, 0.2], row])
    np.testing.assert_allclose(found[1], model.predict_proba(filled(model, row)).mean(axis=0))
    np.testing.assert_allclose(found[0], model.predict_proba([[0.1, 0.2]])[0])
    with pytest.warns(UserWarning, match="lack values"):
        assert set(model.sample_y([row], 50, random_state=0)[0]) == {"high", "low"}


def test_gaps_in_columns_of_a_frame_are_named_and_empty_rows_said(fitted):
    rows = frame().head(4).astype({"sold": object})
    rows.loc[0, "color"] = None
    rows.loc[2] = None
    with pytest.warns(UserWarning) as told:  # noqa: PT030
        mean, std = fitted.predict(rows, return_std=True)
    messages = " ".join(str(one.message) for one in told)
    assert (
        "1 of 4 rows hold no value in any column that the model knows, the first being row 3"
        in messages
    )
    assert (
        "2 of 4 rows, the first being row 1, lack values that no row of the fit lacked ('size', 'color'"
        in messages
    )
    assert std[0] > 5 * std[1]
    np.testing.assert_allclose(mean[2], targets().mean(), atol=2)
    np.testing.assert_allclose(std[2], targets().std(), rtol=0.4)
