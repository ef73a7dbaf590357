"""How a deep model alone is judged: by rows that it has not seen, beside simple models, and by tried settings."""

import logging

import numpy as np
import pytest

from bochner import Deep, DeepGPRegressor, Linear
from bochner.fitting.validation import WorseThanSimplerModelWarning
from tests.deep_alone import deep_classifier, deep_regressor

WORSE = r"is worse than a simple one \(linear"
ignored = pytest.mark.filterwarnings(
    "ignore::bochner.fitting.validation.WorseThanSimplerModelWarning"
)


def lines(n=120, seed=0):
    """A linear function of two of three columns, of unlike units."""
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n, 3)) * [1.0, 100.0, 1e-3]
    return X, 5.0 + 2.0 * X[:, 0] - 0.03 * X[:, 1] + 0.1 * generator.normal(size=n)


def by_kind(model, what):
    """The weights, or the log-likelihoods, of the members of each kind; there is one a transform of the target."""
    found = {}
    for one in model.members_:
        found.setdefault(one["name"].split(",")[0], []).append(one[what])
    return found


# A simple model that is better.


def test_a_deep_model_that_is_worse_than_a_linear_one_says_so(caplog):
    settings = {"n_layers": 2, "max_steps": 3, "validation_fraction": 0.25, "random_state": 0}
    with (
        caplog.at_level(logging.ERROR, "bochner"),
        pytest.warns(WorseThanSimplerModelWarning, match=f"{WORSE}.*Do not rely on this model"),
    ):
        model = deep_regressor(**settings).fit(*lines(400))
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    assert (model.config_["n_layers"], model.trained_weight_) == (2, 300)
    weights = {kind: sum(found) for kind, found in by_kind(model, "weight").items()}
    assert weights == {"deep": 1.0, "constant": 0.0, "linear": 0.0}
    judged = {kind: max(found) for kind, found in by_kind(model, "log_likelihood").items()}
    assert model.summary_ == {
        "n_rows": 100,
        "log_likelihood": judged["deep"],
        "constant": judged["constant"],
        "linear": judged["linear"],
    }
    assert judged["linear"] > judged["deep"] + 1


def test_a_simple_model_is_judged_as_it_would_predict():
    X, y = lines(400)
    with pytest.warns(WorseThanSimplerModelWarning, match=WORSE):
        model = deep_regressor(max_steps=3, random_state=0).fit(
            X[:300], y[:300], validation=(X[300:], y[300:])
        )
    alone = DeepGPRegressor(Linear(), random_state=0).fit(X[:300], y[:300])
    expected = alone.log_prob(X[300:], y[300:]).mean()
    assert model.summary_["n_rows"] == 100
    assert model.summary_["linear"] == pytest.approx(expected, abs=0.02)


def test_classes_are_judged_too():
    X, y = lines(400)
    labels = np.where(y > np.median(y), "high", "low")
    settings = {"max_steps": 3, "validation_fraction": 0.25, "random_state": 0}
    with pytest.warns(WorseThanSimplerModelWarning, match=WORSE):
        model = deep_classifier(**settings).fit(X, labels)
    assert model.summary_["linear"] > model.summary_["log_likelihood"]
    assert model.summary_["constant"] == pytest.approx(-np.log(2), abs=0.05)


def test_a_mixture_gives_its_weight_to_the_better_and_says_nothing(recwarn):
    members = [("linear", Linear()), ("deep", Deep(objective="elbo", max_steps=3))]
    model = DeepGPRegressor(members, random_state=0).fit(*lines())
    weights = by_kind(model, "weight")
    assert sum(weights["linear"]) > 0.95 > sum(weights["deep"]) + 0.9
    assert model.evaluate(*lines(seed=1))["rmse"] < 0.15
    assert next(reversed(model.explain().columns)) == "column 2"
    assert not [w for w in recwarn if issubclass(w.category, WorseThanSimplerModelWarning)]


def test_a_good_fit_says_nothing(recwarn):
    generator = np.random.default_rng(0)
    X = generator.uniform(-2, 2, size=(300, 1))
    model = deep_regressor(max_steps=1_500, validation_fraction=0.2, random_state=0)
    model.fit(X, np.sin(3 * X[:, 0]) + 0.1 * generator.normal(size=300))
    assert model.summary_["log_likelihood"] > model.summary_["linear"] + 0.5
    assert not [w for w in recwarn if issubclass(w.category, WorseThanSimplerModelWarning)]


@pytest.mark.parametrize("n", [120, 400])
def test_nothing_is_judged_where_nothing_is_held_out(n, recwarn):
    settings = {"max_steps": 3, "validation_fraction": 0.0, "random_state": 0}
    model = deep_regressor(**settings).fit(*lines(n))
    assert model.trained_weight_ == n
    assert model.summary_ == {}
    (standing,) = model.members_
    assert standing["name"] == "deep"
    assert np.isnan(standing["log_likelihood"])
    assert not [w for w in recwarn if issubclass(w.category, WorseThanSimplerModelWarning)]


@ignored
def test_groups_are_held_out_as_a_whole():
    X, y = lines(400)
    groups = np.repeat(np.arange(8), 50)
    settings = {"max_steps": 3, "validation_fraction": 0.2, "random_state": 0}
    model = deep_regressor(**settings).fit(X, y, groups=groups)
    assert (model.trained_weight_, model.summary_["n_rows"]) == (300, 100)


@ignored
@pytest.mark.parametrize("likelihood", ["student-t", "poisson"])
def test_laws_that_simple_models_have_not_are_judged_where_they_can_be_compared(likelihood):
    X, y = lines(300)
    y = np.round(np.abs(y)) if likelihood == "poisson" else y
    settings = {"max_steps": 3, "validation_fraction": 0.2, "random_state": 0}
    model = deep_regressor(**settings, likelihood=likelihood).fit(X, y)
    assert ("linear" in model.summary_) == (likelihood == "student-t")


# Frequencies.


def large(free, n=4_000):
    generator = np.random.default_rng(0)
    X = generator.normal(size=(n, 5))
    # Few frequencies drawn at random miss the only direction that matters.
    f = np.sin(4 * X @ np.ones(5) / np.sqrt(5)) if free else 0.0
    return X, f + 0.05 * generator.normal(size=n)


@ignored
@pytest.mark.parametrize(("free", "omega"), [(True, "var-fixed"), (False, "prior-fixed")])
def test_frequencies_are_free_where_held_out_rows_prefer_that(free, omega):
    small = {"n_random_features": 8, "width": 2, "n_members": 1, "n_mc_predict": 10}
    model = deep_regressor(max_steps=2_400, **small, random_state=0).fit(*large(free))
    assert model.config_["omega"] == omega
    scores = model.frequency_scores_
    assert (scores["var-fixed"] < scores["prior-fixed"] - 0.1) == free
    assert model.config_["validation_fraction"] == 0.1


@pytest.mark.parametrize(
    "settings", [{"omega": "var-fixed"}, {"preset": "paper"}, {"warm_start": True}]
)
@pytest.mark.filterwarnings("ignore:training ended after")
@ignored
def test_no_frequencies_are_tried_where_they_are_decided(settings):
    small = {"n_random_features": 5, "width": 2, "n_members": 1, "n_mc_predict": 5}
    model = deep_regressor(max_steps=3, **small, **settings, random_state=0).fit(*large(False))
    assert not hasattr(model, "frequency_scores_")
    with pytest.raises(AttributeError, match="tried nothing of that kind"):
        model.frequency_scores_  # noqa: B018
    assert (model.config_["omega"] == "prior-fixed") == ("warm_start" in settings)
