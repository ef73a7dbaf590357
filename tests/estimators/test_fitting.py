import numpy as np
import pytest

from bochner import Deep, DeepGPRegressor
from bochner.fitting.held_out import HeldOutRows
from bochner.fitting.rows import Rows
from bochner.fitting.validation import mnll_of
from bochner.members import updating
from tests.clocks import steady_clock
from tests.deep_alone import deep_classifier, deep_regressor
from tests.estimators import problems
from tests.estimators.problems import SMALL

X, Y = problems.numbers()
SHORT = SMALL | {"max_steps": 40}


def test_the_same_seed_gives_the_same_model_bit_for_bit():
    first, second = (deep_regressor(**SHORT).fit(X, Y) for _ in range(2))
    np.testing.assert_array_equal(first.predict(X), second.predict(X))
    np.testing.assert_array_equal(first.log_prob(X, Y), second.log_prob(X, Y))
    np.testing.assert_array_equal(first.sample_y(X, 3), second.sample_y(X, 3))
    assert first.elbo_ == second.elbo_


def test_other_seeds_give_other_models():
    first = deep_regressor(**SHORT).fit(X, Y)
    second = deep_regressor(**SHORT | {"random_state": 1}).fit(X, Y)
    assert np.all(first.predict(X) != second.predict(X))
    third = deep_regressor(**SHORT | {"random_state": np.random.RandomState(0)}).fit(X, Y)
    np.testing.assert_array_equal(third.predict(X), first.predict(X))


def test_warm_start_goes_on_where_the_last_fit_ended():
    model = deep_regressor(**SHORT, warm_start=True).fit(X, Y)
    n_records, ended = len(model.history_), model.history_[-1]["elbo"]
    scaling, seed = model.fitted_.deep.target_scaling, model.config_["seed"]
    model.fit(X, Y)
    assert model.n_steps_ == 80
    assert len(model.history_) == 2 * n_records
    assert model.history_[n_records]["step"] > 40
    assert model.history_[n_records]["elbo"] > ended - 0.5 * abs(ended)
    assert model.fitted_.deep.target_scaling is scaling
    assert model.config_["seed"] == seed
    fresh = deep_regressor(**SHORT).fit(X, Y)
    fresh.fit(X, Y)
    assert fresh.n_steps_ == 40


def test_warm_start_refuses_another_kind_of_model():
    model = deep_regressor(**SHORT, warm_start=True).fit(X, Y)
    before, weight = model.predict(X), model.total_weight_
    for name, value in [("n_layers", 3), ("width", 5), ("kernel", "matern32")]:
        with pytest.raises(ValueError, match=f"`warm_start` goes on.*{name}=.*got {value!r}"):
            model.set_params(**{f"members__{name}": value}).fit(X[:50], Y[:50])
        model.set_params(**{f"members__{name}": SHORT.get(name)})
    with pytest.raises(ValueError, match="X has 2 features, but DeepGPRegressor is expecting 3"):
        model.fit(X[:, :2], Y)
    with pytest.raises(ValueError, match="y must have 1 columns"):
        model.fit(X, np.stack([Y, Y], axis=1))
    assert model.total_weight_ == weight
    np.testing.assert_array_equal(model.predict(X), before)


def test_warm_start_leaves_open_what_the_preset_would_choose_otherwise_for_more_rows():
    # The automatic settings of the model may depend on the number of rows.
    model = DeepGPRegressor(Deep(max_steps=2, n_mc_predict=2), warm_start=True, random_state=0)
    few = np.linspace(0, 1, 50)[:, None]
    n_rf = model.fit(few, few[:, 0]).config_["n_random_features"]
    many = np.linspace(0, 1, 5000)[:, None]
    assert model.fit(many, many[:, 0]).config_["n_random_features"] == n_rf


def test_partial_fit_keeps_the_first_scaling_and_counts_all_weight(monkeypatch):
    model = deep_regressor(**SHORT).partial_fit(X[:50], Y[:50])
    before = model.fitted_
    inputs, targets = before.deep.input_scaling, before.deep.target_scaling
    model.partial_fit(X[50:100] * 2, Y[50:100] + 100, sample_weight=np.full(50, 2.0))
    assert model.total_weight_ == 150.0
    assert model.fitted_.deep.input_scaling is inputs
    assert model.fitted_.deep.target_scaling is targets
    assert (model.n_steps_, before.deep.n_steps) == (80, 40)
    monkeypatch.setattr(updating, "_LEAST_STEPS", 30)
    model.update(X[:1], Y[:1])
    assert model.total_weight_ == model.fitted_.deep.total_weight == 151.0
    assert (model.n_steps_, model.config_["max_steps"]) == (110, 40)


def test_partial_fit_takes_classes_that_have_not_come_yet():
    x, y = problems.classes()
    model = deep_classifier(**SHORT)
    early = y != "red"
    model.partial_fit(x[early], y[early], classes=["red", "green", "blue"])
    assert model.predict_proba(x).shape == (150, 3)
    model.partial_fit(x[~early], y[~early])
    assert set(model.classes_) == {"red", "green", "blue"}
    with pytest.raises(ValueError, match="the class 'pink' in row 0"):
        model.partial_fit(x[:1], ["pink"])
    with pytest.raises(ValueError, match="Name all classes in `classes`"):
        deep_classifier(**SHORT).partial_fit(x[:2], ["red", "red"])


def test_the_history_tells_of_every_part_of_the_training():
    settings = SMALL | {"max_steps": 200, "theta_from": 0.5, "n_mc_train": (1, 3)}
    model = deep_regressor(omega="var-fixed", **settings).fit(X, Y)
    assert len(model.history_) == 100
    assert [record["step"] for record in model.history_] == list(range(2, 201, 2))
    stages = list(dict.fromkeys(record["stage"] for record in model.history_))
    assert stages == ["q(W) + q(Omega), 1 sample", "q(W) + theta + q(Omega), 3 samples"]
    for record in model.history_:
        assert record["elbo"] == pytest.approx(record["ell"] - record["kl"], rel=1e-3, abs=0.1)
        assert record["held_out_mnll"] is None
        assert record["learning_rate"] <= 0.02
    seconds = [record["seconds"] for record in model.history_]
    assert seconds == sorted(seconds)
    assert model.history_[-1]["elbo"] > model.history_[0]["elbo"]
    assert model.elbo_ == pytest.approx(model.history_[-1]["elbo"], rel=0.1)


def test_seconds_bound_the_training_and_take_the_place_of_steps(monkeypatch):
    steady_clock(monkeypatch, tick=0.02)
    settings = {k: v for k, v in SMALL.items() if k != "max_steps"}
    model = deep_regressor(**settings, max_seconds=4.0).fit(X, Y)
    assert model.config_["max_steps"] is None
    assert 3.9 <= model.history_[-1]["seconds"] < 4.3
    assert model.history_[-1]["fraction"] == pytest.approx(1.0, abs=0.02)
    rates = [record["learning_rate"] for record in model.history_]
    assert rates[-1] < 0.1 * max(rates) or model.config_["schedule"] == "constant"


@pytest.mark.parametrize(("n", "held_out"), [(199, 0), (200, 40)])
def test_no_rows_are_held_out_below_two_hundred(n, held_out):
    x, y = problems.numbers(n)
    model = deep_regressor(validation_fraction=0.2, **SHORT).fit(x, y)
    judged = [r for r in model.history_ if r["held_out_mnll"] is not None]
    assert bool(judged) == bool(held_out)
    kept, out = HeldOutRows().parts(model.fitted_.deep.config, Rows(x, y[:, None], np.ones(n)))
    assert len(out or []) == held_out
    assert len(kept) == n - held_out


def test_the_best_parameters_on_held_out_rows_are_kept():
    x, y = problems.numbers(200)
    settings = SHORT | {
        "likelihood": "gaussian", "learning_rate": 0.5, "schedule": "constant", "max_steps": 100,
    }  # fmt: skip
    model = deep_regressor(validation_fraction=0.2, **settings).fit(x, y)
    fit = model.fitted_.deep
    _, out = HeldOutRows().parts(fit.config, Rows(x, y[:, None], np.ones(200)))
    judged = [r["held_out_mnll"] for r in model.history_ if r["held_out_mnll"] is not None]
    assert len(judged) == 25
    posterior = fit.posterior(30, key=fit.key("validate"))
    best = mnll_of(posterior, fit.scaled(out)) + fit.target_scaling.log_jacobian
    assert best == pytest.approx(min(judged), rel=1e-5)
