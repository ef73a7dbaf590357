"""Fits of several tables in one program, beside the same fits one by one."""

import jax
import numpy as np
import pandas as pd
import pytest

from bochner import Deep, DeepGPClassifier, DeepGPRegressor, Exact, fit_together
from bochner.gp.layers import LayerSettings
from bochner.gp.members import Members
from bochner.gp.model import DeepGP
from bochner.gp.reparameterization import DrawWeights
from bochner.inference.objectives import Elbo
from bochner.likelihoods import Gaussian
from bochner.rows.table import Table, Tables
from tests.deep_alone import deep_regressor


def tables(n_tables, n_rows=60, seed=0):
    generator = np.random.default_rng(seed)
    X = generator.uniform(-1, 1, size=(n_tables, n_rows, 2))
    phases = np.arange(n_tables)[:, None]
    noise = 0.1 * generator.normal(size=(n_tables, n_rows))
    return list(zip(X, np.sin(3 * X[..., 0] + phases) + noise, strict=True))


@pytest.mark.parametrize(("objective", "n_members"), [("evidence", 2), ("elbo", 1)])
def test_each_model_is_the_one_of_a_fit_of_its_own(objective, n_members):
    """Noise decides nothing: not of one layer under the evidence, whose gradient is exact up to 32 features, and not of
    a bound whose draws have no spread to learn.
    """
    settings = {
        "n_layers": 1,
        "objective": objective,
        "likelihood": "gaussian",
        "omega": "prior-fixed",
        "n_members": n_members,
        "max_steps": 60,
        "batch_size": 60,
        "local_reparameterization": False,
        "n_random_features": 16,
        "initial_log_var": -60.0,
        "schedule": "constant",
    }
    data = tables(3)
    together = fit_together([deep_regressor(**settings, random_state=s) for s in range(3)], data)
    for seed, (X, y) in enumerate(data):
        alone = deep_regressor(**settings, random_state=seed).fit(X, y)
        np.testing.assert_allclose(together[seed].predict(X), alone.predict(X), atol=2e-3)
        assert together[seed].n_steps_ == alone.n_steps_
        assert together[seed].elbo_ == pytest.approx(alone.elbo_, rel=0.02, abs=2.0)


def test_tables_are_learned_apart():
    data = tables(4)
    models = fit_together(
        [DeepGPRegressor(Deep(max_steps=300), random_state=0) for _ in data], data
    )
    errors = np.array(
        [[np.sqrt(np.mean((m.predict(X) - y) ** 2)) for X, y in data] for m in models]
    )
    assert np.all(np.diag(errors) < 0.2)
    assert np.all(errors[~np.eye(4, dtype=bool)] > 0.3)


def test_classes_in_batches():
    data = [(X, np.where(y > 0, "up", "down")) for X, y in tables(2, n_rows=100)]
    models = fit_together(
        [DeepGPClassifier(Deep(max_steps=300, batch_size=50), random_state=s) for s in (0, 1)], data
    )
    for model, (X, y) in zip(models, data, strict=True):
        assert model.score(X, y) > 0.85
        assert len(model.history_) > 0


def test_models_can_be_saved(tmp_path):
    from bochner import load

    data = tables(2)
    model = fit_together(
        [DeepGPRegressor(Deep(max_steps=20), random_state=s) for s in (0, 1)], data
    )[1]
    model.save(tmp_path / "model.bochner")
    X = data[1][0]
    np.testing.assert_array_equal(load(tmp_path / "model.bochner").predict(X), model.predict(X))


@pytest.mark.parametrize(
    ("settings", "other", "message"),
    [
        ({}, {"width": 5}, "alike but for `random_state`"),
        ({}, {"likelihood": "gaussian"}, "alike but for `random_state`"),
        ({"n_layers": "auto"}, {"n_layers": "auto"}, "needs a number of layers"),
        ({"warm_start": True}, {"warm_start": True}, "knows no `warm_start`"),
    ],
)
def test_what_it_cannot_do_is_refused(settings, other, message):
    estimators = [deep_regressor(max_steps=5, **each) for each in (settings, other)]
    with pytest.raises(ValueError, match=message):
        fit_together(estimators, tables(2))


def test_text_columns_of_many_values_are_refused():
    cities = [f"city {number}" for number in range(60)]
    table = pd.DataFrame({"x": np.arange(180.0), "city": cities * 3}), np.arange(180.0) % 7
    estimators = [deep_regressor(max_steps=5, random_state=seed) for seed in range(2)]
    with pytest.raises(ValueError, match="knows no text columns of many values"):
        fit_together(estimators, [table, table])


@pytest.mark.parametrize("members", [Exact(), [("deep", Deep())]])
def test_mixtures_are_refused(members):
    estimators = [DeepGPRegressor(members) for _ in range(2)]
    with pytest.raises(ValueError, match="for deep models alone; got members="):
        fit_together(estimators, tables(2))


def test_tables_of_other_sizes_are_refused():
    data = [*tables(1, n_rows=30), *tables(1, n_rows=31)]
    with pytest.raises(ValueError, match="equal numbers of rows"):
        fit_together([DeepGPRegressor(Deep(max_steps=5)) for _ in data], data)
    with pytest.raises(ValueError, match="one estimator for each table"):
        fit_together([DeepGPRegressor()], data)
    with pytest.raises(ValueError, match="given twice"):
        fit_together([DeepGPRegressor()] * 2, data)
    with pytest.raises(ValueError, match="pair of arrays"):
        fit_together([DeepGPRegressor()], [("table.csv", "y")])


def test_a_failure_leaves_the_estimators_as_they_were():
    X, y = tables(1)[0]
    labels = np.where(y > 0, "up", "down")
    estimators = [DeepGPClassifier(Deep(max_steps=5)) for _ in range(2)]
    three = np.where(y > 0.5, "far up", labels)
    with pytest.raises(ValueError, match=r"equal numbers of targets or classes; got \[2, 3\]"):
        fit_together(estimators, [(X, labels), (X, three)])
    assert not any(hasattr(estimator, "classes_") for estimator in estimators)


def test_side_by_side_or_one_after_another_the_bound_is_the_same():
    members = Members.start(
        lambda key: DeepGP.start(
            [LayerSettings(2, 5), LayerSettings(1, 5)], Gaussian.start(1), d_in=2, feed_inputs=True, key=key
        ),
        4,
        key=jax.random.key(0),
    )  # fmt: skip
    data = Tables.stack([Table.of(X, y[:, None]) for X, y in tables(2)])
    noise = members.draw_noise((3,), key=jax.random.key(1))
    bounds = [
        float(Elbo()(members, data, noise, DrawWeights(), scale=1.0, one_at_a_time=one).elbo)
        for one in (False, True)
    ]
    assert bounds[0] == pytest.approx(bounds[1], rel=1e-6)
    first = Elbo()(
        members, Table.of(*[a[0] for a in (data.X, data.Y)]), noise, DrawWeights(), scale=1.0
    )
    assert bounds[0] != pytest.approx(float(first.elbo), rel=1e-3)


def test_members_of_a_table_come_after_each_other():
    stacked = Tables.stack([Table.of(np.full((3, 1), v), np.zeros((3, 1))) for v in (0.0, 1.0)])
    members = stacked.of_members(4)
    np.testing.assert_array_equal(members.X[:, 0, 0], [0, 0, 1, 1])
    assert stacked.total_weight == 3.0
