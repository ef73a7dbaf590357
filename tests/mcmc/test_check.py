"""The check of a fitted model, and its command."""

import copy
import dataclasses
import json

import equinox as eqx
import jax.numpy as jnp
import matplotlib
import numpy as np
import pytest
from typer.testing import CliRunner

from bochner import Deep, DeepGPRegressor, Linear
from bochner.cli import app
from bochner.mcmc import check_posterior
from tests.deep_alone import deep_classifier, deep_regressor

matplotlib.use("Agg")
SMALL = {"n_layers": 1, "n_random_features": 4, "random_state": 0, "validation_fraction": 0.0}
# The same sizes everywhere, so that one program is compiled.
SIZES = {"n_samples": 500, "n_warmup": 200, "n_chains": 4}


def data(n, seed=0):
    generator = np.random.default_rng(seed)
    x = generator.uniform(-2, 2, size=(n, 1))
    return x, 10 + 3 * np.sin(2 * x[:, 0]) + 0.5 * generator.normal(size=n)


@pytest.fixture(scope="module")
def fitted():
    x, y = data(60)
    return deep_regressor(max_steps=2000, likelihood="gaussian", **SMALL).fit(x, y), x, y


def exact_function_std(model, x):
    """The posterior deviation of one layer's function, in the units of y: linear regression on the features."""
    layer = model.model_.layers[0]
    Phi = np.asarray(
        layer.Phi(jnp.asarray(model.fitted_.deep.input_scaling(x), jnp.float32)), np.float64
    )
    noise = float(np.exp(model.model_.likelihood.log_noise_variance[0]))
    covariance = np.linalg.inv(np.eye(Phi.shape[1]) + Phi.T @ Phi / noise)
    return (
        np.sqrt(np.einsum("ij,jk,ik->i", Phi, covariance, Phi))
        * model.fitted_.deep.target_scaling.scale[0]
    )


def test_the_exact_posterior_of_one_layer_is_that_of_nuts_though_predictions_are_calibrated():
    x, y = data(60)
    model = deep_regressor(
        objective="evidence", calibration="left-out", theta_from="never", noise_variance=2.0, max_steps=2,
        likelihood="gaussian", **SMALL,
    ).fit(x, y)  # fmt: skip
    assert model.model_.stacked.likelihood.law.factor[0] < 0.8
    for refit in (False, True):
        found = check_posterior(model, x, y, **SIZES, refit=refit)
        np.testing.assert_allclose(found.variational.std, found.nuts.std, rtol=0.03)


def test_nuts_gives_the_exact_deviation_and_q_its_own(fitted):
    model, x, y = fitted
    found = check_posterior(model, x, y, **SIZES)
    assert (found.refitted, found.new_rows, found.n_rows) == (False, False, 60)
    exact = exact_function_std(model, x)
    np.testing.assert_allclose(found.nuts.function_std[:, 0], exact, rtol=0.15)
    epistemic, _ = model.predict_variance(x)
    np.testing.assert_allclose(found.variational.function_std[:, 0], np.sqrt(epistemic), rtol=0.35)
    ratio = np.median(found.variational.function_std[:, 0] / exact)
    assert found.function_std_ratio[1] == pytest.approx(ratio, rel=0.1)
    assert found.mean_difference < 0.3
    assert found.worst_rhat < 1.05
    assert found.nuts.coverage(found.Y) == pytest.approx(0.9, abs=0.1)
    assert "q(W) only" in str(found)


def with_wider_weights(model, shift):
    """The same model with other log variances of q(W)."""
    moved = eqx.tree_at(
        lambda m: m.blocks[0].q_W.log_var, model.model_, replace_fn=lambda log_var: log_var + shift
    )
    fit = dataclasses.replace(model.fitted_.deep, model=moved)
    wrong = copy.copy(model)
    wrong.fitted_ = dataclasses.replace(
        model.fitted_, predictor=dataclasses.replace(model.fitted_.predictor, fit=fit)
    )
    return wrong


def test_a_narrow_posterior_is_called_too_narrow_and_a_wide_one_too_wide(fitted):
    model, x, y = fitted
    for shift, word in ((-4.0, "too narrow"), (4.0, "too wide")):
        wrong = with_wider_weights(model, shift)
        found = check_posterior(wrong, x, y, **SIZES)
        assert word in found.verdict
        # The same posterior compared again after fitting q(W) anew is nearer.
    again = check_posterior(wrong, x, y, **SIZES, refit=True)
    assert again.function_std_ratio[1] < 0.5 * found.function_std_ratio[1]


def test_of_more_rows_a_part_is_used_for_both_sides_and_the_others_are_compared(fitted):
    model, _, _ = fitted
    x, y = data(150, seed=1)
    found = check_posterior(model, x, y, n_rows=60, **SIZES)
    assert (found.refitted, found.new_rows, found.n_rows) == (True, True, 60)
    assert found.nuts.mean.shape == (90, 1)
    assert 0.3 < found.function_std_ratio[1] < 3
    numbers = found.numbers()
    assert json.loads(json.dumps(numbers)) == numbers
    left, _ = found.plot()
    assert left.get_title() == "mean"


@pytest.mark.slow
def test_classes_are_compared_by_their_probabilities():
    x, y = data(60)
    labels = np.where(y > 10, "high", "low")
    model = deep_classifier(max_steps=500, **SMALL).fit(x, labels)
    found = check_posterior(model, x, labels, n_samples=100, n_warmup=100)
    np.testing.assert_allclose(found.nuts.mean.sum(axis=1), 1.0, atol=1e-4)
    assert found.interval_ratio is None
    assert found.numbers()["coverage_90"] is None
    found.plot()


def test_frequencies_drawn_anew_are_refused():
    x, y = data(30)
    model = deep_regressor(omega="var-resampled", max_steps=10, **SMALL).fit(x, y)
    with pytest.raises(ValueError, match="fixed frequencies"):
        check_posterior(model, x, y)


def test_of_a_stack_the_deep_member_is_checked_on_rows_that_all_of_it_sees():
    x, y = data(60)
    settings = {name: value for name, value in SMALL.items() if name != "random_state"}
    deep = Deep(objective="elbo", max_steps=500, **settings)
    model = DeepGPRegressor([("linear", Linear()), ("deep", deep)], random_state=0).fit(x, y)
    found = check_posterior(model, x, y, **SIZES)
    (weight,) = (member["weight"] for member in model.members_ if member["name"] == "deep")
    assert found.weight == pytest.approx(weight)
    assert 0 < weight < 1
    # Each replicate of the member has left a fold out, so that none is conditioned on the same rows as NUTS.
    assert (found.refitted, found.n_rows) == (True, 60)
    assert 0.3 < found.function_std_ratio[1] < 3
    assert f"whose weight is {weight:.2f}" in str(found)
    assert found.numbers()["weight_of_checked_model"] == pytest.approx(weight)


def test_members_without_a_deep_one_and_several_targets_cannot_be_checked():
    x, y = data(30)
    model = DeepGPRegressor(Linear(), random_state=0).fit(x, y)
    with pytest.raises(ValueError, match=r"no deep model takes part.*--members deep"):
        check_posterior(model, x, y)
    both = np.stack([y, y], axis=1)
    model = DeepGPRegressor(Linear(), random_state=0).fit(x, both)
    with pytest.raises(ValueError, match="each target has members of its own"):
        check_posterior(model, x, both)


def test_the_command_prints_numbers_and_writes_the_plot(fitted, tmp_path):
    _, x, y = fitted
    table = tmp_path / "table.csv"
    lines = [f"{a},{b}" for a, b in zip(x[:, 0], y, strict=True)]
    table.write_text("\n".join(["x,y", *lines]))
    deep_regressor(max_steps=300, **SMALL).fit(table, "y").save(tmp_path / "model.bochner")
    words = [
        "check",
        tmp_path / "model.bochner",
        table,
        "--samples",
        500,
        "--warmup",
        200,
        "--chains",
        4,
    ]

    def call(*more):
        result = CliRunner().invoke(app, [str(word) for word in (*words, *more)])
        assert result.exit_code == 0, result.output
        return result.stdout

    printed = call("--plot", tmp_path / "check.png")
    assert "q(W) only" in " ".join(printed.split())
    assert (tmp_path / "check.png").read_bytes().startswith(b"\x89PNG")
    found = json.loads(call("--json", "--seed", 1))
    assert found["rows"] == 60
    assert set(found["function_std_ratio"]) == {"5 %", "median", "95 %"}
    assert "verdict" in found
    assert call("--quiet") == ""
