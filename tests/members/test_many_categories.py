"""Text columns of many values: an effect of each, shrunken as in a random-effects model, and wide where never seen."""

import jax
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

from bochner import (
    Constant,
    Deep,
    DeepGPClassifier,
    DeepGPRegressor,
    Exact,
    Landmarks,
    Linear,
    load,
)
from bochner.cli import app
from bochner.estimators.export import export
from bochner.estimators.files import from_parts, to_parts
from bochner.fitting import sources
from bochner.members.novelty import novelty
from bochner.system.saving import ModelFileError
from bochner.tables import source

N_CITIES, N_EACH = 60, 8


def cities(seed=0, effect=1.5):
    """A balanced table, and the deviations of its effects and of its noise as the analysis of variance has them."""
    rng = np.random.default_rng(seed)
    city = np.repeat(np.arange(N_CITIES), N_EACH)
    y = 10 + effect * rng.normal(size=N_CITIES)[city] + rng.normal(size=len(city))
    shuffled = rng.permutation(len(city))
    # A column that says nothing, for rows of equal inputs would be left out together.
    table = {"city": [f"city {i}" for i in city], "x": rng.normal(size=len(city)), "y": y}
    return pd.DataFrame(table).iloc[shuffled]


def at(*names):
    return pd.DataFrame({"city": names, "x": 0.0})


def by_analysis_of_variance(frame):
    """Estimate the variances of effects and noise, and the best linear prediction of each city's mean."""
    means = frame.groupby("city")["y"].mean()
    within = float(frame.groupby("city")["y"].var().mean())
    between = float(means.var()) - within / N_EACH
    shrinkage = between / (between + within / N_EACH)
    return between, within, means.mean() + shrinkage * (means - means.mean())


@pytest.fixture(scope="module")
def frame():
    return cities()


@pytest.fixture(scope="module")
def model(frame):
    return DeepGPRegressor(Linear(), random_state=0).fit(frame[["city", "x"]], frame["y"])


def test_effects_are_those_of_a_random_effects_model(frame, model):
    _, within, predicted = by_analysis_of_variance(frame)
    mean, std = model.predict(at(*predicted.index), return_std=True)
    np.testing.assert_allclose(mean, predicted, atol=0.06)
    np.testing.assert_allclose(std, np.sqrt(within * (1 + 1 / N_EACH)), rtol=0.05)


def test_a_value_never_seen_has_the_mean_of_all_and_the_width_of_the_effects(frame, model):
    between, within, predicted = by_analysis_of_variance(frame)
    mean, std = model.predict(at("atlantis"), return_std=True)
    np.testing.assert_allclose(mean, predicted.mean(), atol=0.1)
    np.testing.assert_allclose(std, np.sqrt(between + within), rtol=0.1)


def test_left_out_groups_count_as_never_seen(frame, model):
    by_city = DeepGPRegressor(Linear(), random_state=0)
    by_city.fit(frame[["city", "x"]], frame["y"], groups=frame["city"].to_numpy())
    between, within, _ = by_analysis_of_variance(frame)
    for found, variance in ((by_city, between + within), (model, within * (1 + 1 / N_EACH))):
        expected = -0.5 * np.log(2 * np.pi * variance) - 0.5
        np.testing.assert_allclose(found.summary_["linear"], expected, atol=0.06)


def test_files_and_exports_know_the_values(model, tmp_path):
    rows = at("city 3", "atlantis", "city 59")
    model.save(tmp_path / "model.bochner")
    np.testing.assert_array_equal(
        load(tmp_path / "model.bochner").predict(rows), model.predict(rows)
    )
    export(model, tmp_path / "model.jax")
    program = jax.export.deserialize(bytearray((tmp_path / "model.jax").read_bytes()))
    X = np.float32(model.fitted_.encoder(pa.Table.from_pandas(rows)))
    np.testing.assert_allclose(program.call(X)["mean"], model.predict(rows), rtol=1e-4)


def test_functions_drawn_have_effects_of_their_own_where_nothing_is_known(frame, model):
    rows = at("city 3", "atlantis")
    between, within, _ = by_analysis_of_variance(frame)
    X = model.fitted_.encoder(pa.Table.from_pandas(rows))
    values = np.stack([f(X) for f in model.sample_functions(300, random_state=0)])
    np.testing.assert_allclose(values.mean(axis=0), model.predict(rows), atol=0.25)
    of_known = between * within / (N_EACH * between + within)
    np.testing.assert_allclose(values.std(axis=0), np.sqrt([of_known, between]), rtol=0.15)


def test_effects_and_shares_are_told_by_values(frame, model):
    explanation = model.explain(frame[["city", "x"]])
    assert explanation.columns["city"] > 0.95
    effect = explanation.effect("city")
    known = [value != "another" for value in effect.values]
    names = [value if own else "?!" for value, own in zip(effect.values, known, strict=True)]
    np.testing.assert_allclose(effect.mean, model.predict(at(*names)), atol=0.05)
    assert sum(known) == 24


def test_values_are_told_apart_in_every_row(frame, model):
    row = model.explain_row({"city": "city 59", "x": 0.0})
    assert row.values[0] == "city 59"


@pytest.mark.parametrize(
    "member",
    [
        Exact(kernel="category(city) + constant", varying_noise=False, density=False),
        Landmarks(n_landmarks=150, n_learned_from=300, varying_noise=False, density=False),
    ],
    ids=["exact", "landmarks"],
)
def test_other_members_find_the_effects_too(frame, member):
    _, _, predicted = by_analysis_of_variance(frame)
    model = DeepGPRegressor(member, random_state=0).fit(frame[["city", "x"]], frame["y"])
    np.testing.assert_allclose(model.predict(at(*predicted.index)), predicted, atol=0.1)


def test_classes_have_effects_too(frame):
    is_high = np.where(frame["y"] > frame["y"].median(), "high", "low")
    model = DeepGPClassifier(Linear(), random_state=0).fit(frame[["city", "x"]], is_high)
    shares = (is_high == "high").astype(float)
    counted = pd.Series(shares).groupby(frame["city"].to_numpy()).agg(["mean"])["mean"]
    p = model.predict_proba(at(*counted.index))[:, 0]
    assert np.corrcoef(p, counted)[0, 1] > 0.99
    np.testing.assert_allclose(model.predict_proba(at("atlantis")), 0.5, atol=0.1)


def test_the_command_line_has_them_too(frame, model, tmp_path):
    frame.to_csv(tmp_path / "known.csv", index=False)
    at("city 3", "atlantis").to_csv(tmp_path / "new.csv", index=False)
    path = str(tmp_path / "model.bochner")
    told = ["--model", path, "--members", "linear", "--seed", "0", "--quiet"]
    found = CliRunner().invoke(app, ["fit", str(tmp_path / "known.csv"), "--target", "y", *told])
    assert found.exit_code == 0, found.output
    predicted = str(tmp_path / "predicted.csv")
    found = CliRunner().invoke(
        app, ["predict", path, str(tmp_path / "new.csv"), "--output", predicted]
    )
    assert found.exit_code == 0, found.output
    expected = model.predict(at("city 3", "atlantis"))
    np.testing.assert_allclose(pd.read_csv(predicted)["mean"], expected, rtol=1e-3)


SHORT = Deep(
    n_layers=1,
    n_members=1,
    n_random_features=50,
    max_steps=400,
    n_mc_predict=10,
    objective="elbo",
    learning_rate=0.02,
    theta_from=0,
)


def check_deep(model, frame):
    """The mean of each city is nearer to the best linear prediction than the grand mean is, even of rare ones."""
    _, _, predicted = by_analysis_of_variance(frame)
    wrong = model.predict(at(*predicted.index)) - predicted
    assert np.mean(wrong**2) < 0.1 * np.var(predicted)
    assert abs(model.predict(at("atlantis"))[0] - predicted.mean()) < 0.5


def test_deep_models_see_means_of_each_value_and_keep_them(frame, tmp_path):
    model = DeepGPRegressor(SHORT, random_state=0).fit(frame[["city", "x"]], frame["y"])
    check_deep(model, frame)
    model.save(tmp_path / "deep.bochner")
    rows = at("city 3", "atlantis", "city 59")
    loaded = load(tmp_path / "deep.bochner")
    np.testing.assert_array_equal(loaded.predict(rows), model.predict(rows))
    export(model, tmp_path / "deep.jax")
    program = jax.export.deserialize(bytearray((tmp_path / "deep.jax").read_bytes()))
    X = model.fitted_.encoder(pa.Table.from_pandas(rows))
    np.testing.assert_allclose(program.call(np.float32(X))["mean"], model.predict(rows), rtol=1e-3)
    (place,) = model.fitted_.encoder.coded
    missing, unknown = X.copy(), X.copy()
    missing[:, place], unknown[:, place] = np.nan, 1e6
    np.testing.assert_array_equal(novelty(model.fitted_, missing), novelty(model.fitted_, unknown))
    check_effects_are_those_of_the_table(model, place)


def check_effects_are_those_of_the_table(model, place):
    """A file that lacks the means of a category, or has some for a column of numbers, is refused."""
    arrays, header = to_parts(model)
    name = f"input.effects.{place}"
    less = {one: array for one, array in arrays.items() if one != name}
    more = {**arrays, f"input.effects.{place + 1}": arrays[name]}
    for changed in (less, more):
        with pytest.raises(ModelFileError, match="means of values"):
            from_parts(changed, header)


def test_so_they_do_of_tables_larger_than_memory(frame, tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "NUMBERS_IN_MEMORY", 100)
    pyarrow.parquet.write_table(pa.Table.from_pandas(frame), tmp_path / "t.parquet")
    model = DeepGPRegressor(SHORT, random_state=0).fit(tmp_path / "t.parquet", "y")
    check_deep(model, frame)


@pytest.mark.parametrize("n_sampled", [450, 300])
def test_of_tables_larger_than_memory_rows_see_no_target_of_their_own(n_sampled, monkeypatch):
    monkeypatch.setattr(sources, "NUMBERS_IN_MEMORY", 100)
    monkeypatch.setattr(sources, "_SAMPLE_ROWS", n_sampled)
    monkeypatch.setattr(source, "BYTES_OF_A_BATCH", 1)  # each part alone
    rng = np.random.default_rng(0)
    effects, city = rng.normal(size=150), np.tile(np.arange(150), 9)
    y = effects[city] + rng.normal(size=len(city))
    x = rng.normal(size=len(city))
    table = pd.DataFrame({"city": [f"city {i}" for i in city], "x": x, "y": y})
    parts = pa.Table.from_pandas(table[:450]).to_batches(max_chunksize=70)
    model = DeepGPRegressor(SHORT, random_state=0).fit(pa.Table.from_batches(parts), "y")
    mean, std = model.predict(table[450:], return_std=True)
    # Three rows a city: with a row's own target in the mean of its city, the variance is half of what it should be.
    assert 0.85 < np.mean(std**2) / np.mean((y[450:] - mean) ** 2) < 1.2


def test_folds_of_a_deep_member_are_judged_without_their_own_targets():
    rng = np.random.default_rng(0)
    effects, city = 2 * rng.normal(size=150), np.tile(np.arange(150), 9)
    y = effects[city] + rng.normal(size=len(city))
    rows = pd.DataFrame({"city": [f"city {i}" for i in city], "x": rng.normal(size=len(city))})
    members = [("constant", Constant()), ("deep", SHORT)]
    model = DeepGPRegressor(members, random_state=0).fit(rows[:450], y[:450])
    left_out = next(one["log_likelihood"] for one in model.members_ if one["name"] == "deep")
    # Three rows a city, so that means with a row's own target in them would foresee it by a third of a nat.
    assert abs(left_out - model.log_prob(rows[450:], y[450:]).mean()) < 0.12
