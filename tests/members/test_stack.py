"""Members are judged by rows that they have not seen, and weighed by that."""

import dataclasses

import numpy as np
import pytest

from bochner import Constant, Deep, DeepGPClassifier, DeepGPRegressor, Exact, Landmarks, Linear
from bochner.fitting.splits import ByGroups
from bochner.members.deep import deep_candidates
from bochner.members.in_rows import rows_candidates
from bochner.members.stack import fit_stack
from tests.members.tables import SIMPLE, TINY, curve, sides, training


def lines(n=80, seed=0):
    """A linear function of the first of two columns."""
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n, 2))
    return X, 5.0 + 2.0 * X[:, 0] + 0.1 * generator.normal(size=n)


def families(model):
    """The weight of each kind of member."""
    found = {}
    for one in model.members_:
        kind = one["name"].split(",")[0].split()[0]
        found[kind] = found.get(kind, 0.0) + one["weight"]
    return found


def test_the_better_members_have_the_weight(mixture):
    weights = families(mixture)
    assert set(weights) == {"constant", "linear", "sum", "deep"}
    assert sum(weights.values()) == pytest.approx(1.0)
    assert weights["sum"] > 0.8


def test_lines_are_for_the_linear_member():
    X, y = lines()
    model = DeepGPRegressor([*SIMPLE, ("deep", Deep(**TINY))], random_state=0).fit(X, y)
    assert families(model)["linear"] > 0.9
    assert model.evaluate(*lines(seed=1))["rmse"] < 0.15


def test_the_summary_is_of_the_left_out_rows(mixture):
    X, y = curve()
    summary, members = mixture.summary_, mixture.members_
    assert set(summary) == {"log_likelihood", "n_rows", "constant", "linear"}
    assert summary["n_rows"] == len(y)
    best = max(one["log_likelihood"] for one in members)
    # The prior of the weights keeps a little for each member.
    assert best - 0.05 < summary["log_likelihood"] < best + 0.3
    assert summary["constant"] < summary["linear"] + 0.5 < summary["log_likelihood"]
    # Rows that it has seen are more probable, and new ones about as much.
    assert mixture.log_prob(X, y).mean() > summary["log_likelihood"]
    new = mixture.log_prob(*curve(400, seed=1)).mean()
    assert summary["log_likelihood"] == pytest.approx(new, abs=0.35)


def test_classes_are_judged_by_the_logarithm_of_the_probability(class_mixture):
    _, y = sides()
    counts = np.unique(y, return_counts=True)[1]
    frequencies = np.sum(counts * np.log(counts / len(y))) / len(y)
    assert class_mixture.summary_["constant"] == pytest.approx(frequencies, abs=0.05)
    assert class_mixture.summary_["log_likelihood"] > class_mixture.summary_["constant"] + 0.2


def test_a_constant_member_is_judged_without_the_row():
    y = np.append(0.1 * np.random.default_rng(0).normal(size=29), 10.0)
    X = np.arange(30.0)[:, None]
    plain = next(
        one
        for one in rows_candidates([Constant()], training(X, y))
        if one.name == "constant, as it is"
    )
    seen = plain.part.law(X).log_density(y)
    assert plain.left_out[-1] < seen[-1] - 0.1
    assert plain.left_out[-1] < plain.left_out[:-1].min() - 3


def twins(n_groups=15, size=4, seed=0):
    """Rows of a group are almost equal, and a new group says nothing that is known."""
    generator = np.random.default_rng(seed)
    groups = np.repeat(np.arange(n_groups), size)
    centers, levels = generator.normal(size=(n_groups, 2)), generator.normal(size=n_groups)
    X = centers[groups] + 0.01 * generator.normal(size=(len(groups), 2))
    return X, levels[groups] + 0.01 * generator.normal(size=len(groups)), groups


@pytest.mark.parametrize("member", [Exact(), Landmarks(n_landmarks=60)])
def test_groups_are_left_out_together(member):
    X, y, groups = twins()
    order = np.random.default_rng(1).permutation(len(y))
    X, y, groups = X[order], y[order], groups[order]
    members = [*SIMPLE, ("mine", member)]
    apart = DeepGPRegressor(members, random_state=0).fit(X, y)
    names = np.array([f"group {number}" for number in groups])
    together = DeepGPRegressor(members, random_state=0).fit(X, y, groups=names)
    assert apart.summary_["log_likelihood"] > apart.summary_["constant"] + 1.5
    assert together.summary_["log_likelihood"] < together.summary_["constant"] + 0.3


def test_progress_is_shown_where_it_is_asked_for(capfd):
    X, y = curve(40)
    members = [*SIMPLE, ("exact", Exact(varying_noise=False))]
    DeepGPRegressor(members, random_state=0, verbose=True).fit(X, y)
    told = capfd.readouterr().err
    assert "DeepGPRegressor: fitting constant, linear, exact to 40 rows." in told
    assert "left-out log-likelihood" in told
    DeepGPRegressor(members, random_state=0).fit(X, y)
    assert capfd.readouterr().err == ""


def test_a_column_of_a_table_may_name_the_groups():
    import pandas as pd

    X, y, groups = twins()
    table = pd.DataFrame(X, columns=["a", "b"]).assign(y=y, person=groups)
    model = DeepGPRegressor([*SIMPLE, ("exact", Exact())], random_state=0)
    model.fit(table, "y", groups="person")
    assert model.fitted_.column_names == ["a", "b"]
    assert model.summary_["log_likelihood"] < model.summary_["constant"] + 0.3


def test_a_replicate_of_a_deep_model_is_judged_by_the_fold_that_it_has_left_out():
    X, y, groups = twins()
    apart = training(X, y)
    together = training(X, y, split=ByGroups(groups))
    assert all(len(np.unique(together.folds[groups == one])) == 1 for one in range(15))
    assert np.bincount(together.folds).tolist() == [12] * 5
    deep = Deep(**TINY | {"max_steps": 300, "n_random_features": 30, "lengthscale_factor": 0.3})
    (first,), (second,) = (deep_candidates("deep", deep, one) for one in (apart, together))
    assert first.left_out.mean() > second.left_out.mean() + 0.5
    assert len(first.left_out) == len(y)
    assert first.part.fit.config.n_members == 5


def test_rows_given_for_validation_judge():
    X, y = curve(90)
    members = [*SIMPLE, ("exact", Exact()), ("deep", Deep(**TINY))]
    model = DeepGPRegressor(members, random_state=0)
    model.fit(X[:60], y[:60], validation=(X[60:], y[60:]))
    assert model.summary_["n_rows"] == 30
    density = model.log_prob(X[60:], y[60:]).mean()
    assert model.summary_["log_likelihood"] == pytest.approx(density, abs=1e-6)


def test_validation_rows_judge_classes_too():
    X, y = sides(90)
    model = DeepGPClassifier([*SIMPLE, ("exact", Exact())], random_state=0)
    model.fit(X[:60], y[:60], validation=(X[60:], y[60:]))
    density = model.log_prob(X[60:], y[60:]).mean()
    assert model.summary_["log_likelihood"] == pytest.approx(density, abs=1e-6)


def test_several_members_of_a_kind_are_fitted_each():
    members = [
        ("few", Landmarks(n_landmarks=5)),
        ("many", Landmarks(n_landmarks=40)),
        ("all", Exact()),
        *SIMPLE,
    ]
    model = DeepGPRegressor(members, random_state=0).fit(*curve())
    found = {
        one["name"].split(": ")[0]: one["log_likelihood"]
        for one in model.members_
        if ": " in one["name"]
    }
    assert set(found) == {"few", "many", "all"}
    assert found["few"] < found["many"] - 0.1
    assert {"constant", "linear"} <= set(model.summary_)


@pytest.mark.parametrize("n", [2, 3, 5])
@pytest.mark.parametrize("members", ["auto", Exact(), Landmarks(), Linear(), Constant()])
def test_the_smallest_tables_have_a_fit(n, members):
    X, y = curve(n)
    model = DeepGPRegressor(members, random_state=0).fit(X, y)
    assert np.isfinite(model.predict(X, return_std=True)).all()
    labels = np.arange(n) % 2
    probabilities = DeepGPClassifier(members, random_state=0).fit(X, labels).predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)


@pytest.mark.parametrize("members", ["auto", Exact(), Landmarks()])
def test_columns_that_say_nothing_leave_a_constant(members):
    X, y = np.full((20, 2), 3.0), np.arange(20.0)
    model = DeepGPRegressor(members, random_state=0).fit(X, y)
    assert model.predict(X) == pytest.approx(y.mean(), abs=0.3)
    assert set(families(model)) == {"constant"}


def test_in_no_time_simple_members_are_fitted():
    for members in ("auto", Exact(), Landmarks()):
        model = DeepGPRegressor(members, max_seconds=1e-9, random_state=0).fit(*curve())
        assert set(families(model)) == {"constant", "linear"}
    model = DeepGPRegressor(max_seconds=1e-9, random_state=0)
    X, y = curve(40)
    model.fit(X, np.stack([y, -y], axis=1))
    assert model.predict(X).shape == (40, 2)


def test_a_deep_model_has_the_time_that_is_left(monkeypatch):
    asked = []
    monkeypatch.setattr(
        "bochner.members.deep.fit_deep", lambda asked_now, *rest, **named: asked.append(asked_now)
    )
    one = training(*curve(), max_seconds=100.0, given=training(*curve(10)).rows)
    later = one.asked.session.started - 60.0
    object.__setattr__(one.asked.session, "started", later)
    with pytest.raises(AttributeError):
        deep_candidates("deep", Deep(), one)
    assert 35.0 < asked[0].session.max_seconds <= 40.0
    assert asked[0].session.until == pytest.approx(one.asked.session.until)


def test_impossible_rows_count_as_very_improbable():
    X, y = lines(60)
    one = training(X, np.exp(y))
    stacked = fit_stack((("linear", Linear()),), one)
    assert np.isfinite(stacked.judged.log_density).all()
    assert all(np.isfinite(standing.log_likelihood) for standing in stacked.standings)


def test_the_same_seed_gives_the_same_mixture(mixture):
    X, y = curve()
    again = DeepGPRegressor(mixture.get_params()["members"], random_state=0).fit(X, y)
    np.testing.assert_array_equal(again.predict(X), mixture.predict(X))
    weights = [[one["weight"] for one in model.members_] for model in (again, mixture)]
    assert weights[0] == weights[1]


def test_a_mixture_tells_what_it_has_and_what_not():
    model = DeepGPRegressor(SIMPLE, random_state=0).fit(*curve(20))
    assert model.total_weight_ == 20
    assert not hasattr(model, "config_")
    with pytest.raises(AttributeError, match="this fit has no deep model"):
        model.config_  # noqa: B018
    with pytest.raises(AttributeError, match="this fit has no deep model"):
        model.depth_scores_  # noqa: B018


def test_classes_of_repeated_inputs_are_as_certain_as_new_rows_of_these_inputs():
    generator = np.random.default_rng(0)
    x = np.repeat(np.arange(10.0), 20)
    p = np.where(x % 2, 0.85, 0.15)  # rough: other inputs say nothing of these
    model = DeepGPClassifier([*SIMPLE, ("exact", Exact())], random_state=0)
    model.fit(x[:, None], generator.random(200) < p)
    cells = np.arange(10)
    found = model.predict_proba(cells[:, None].astype(float))[:, 1]
    np.testing.assert_allclose(found, np.where(cells % 2, 0.85, 0.15), atol=0.25)
    entropy = -np.mean(p * np.log(p) + (1 - p) * np.log(1 - p))
    assert model.summary_["log_likelihood"] == pytest.approx(-entropy, abs=0.1)


def test_few_groups_say_little_however_many_rows_they_have():
    X, y = lines(60)
    groups = np.repeat(np.arange(6), 10)
    table = training(X, y)
    apart = fit_stack(SIMPLE, dataclasses.replace(table, split=ByGroups(groups)))
    assert apart.standings[0].weight > 0.02
    rows = fit_stack(SIMPLE, dataclasses.replace(table, split=ByGroups(np.arange(60))))
    assert apart.standings[0].weight > 3 * rows.standings[0].weight
