"""The check of a fitted model, and its command."""

import copy
import dataclasses
import json
import signal
import subprocess
import sys
import time

import equinox as eqx
import jax
import jax.numpy as jnp
import matplotlib
import numpy as np
import pytest
from typer.testing import CliRunner

from bochner import Constant, Deep, DeepGPRegressor, Linear
from bochner.cli import app
from bochner.gp.members import Members
from bochner.mcmc import check_posterior
from bochner.members.parts import RowsPart
from tests.deep_alone import deep_classifier, deep_regressor

matplotlib.use("Agg")
SMALL = {"n_layers": 1, "n_random_features": 4, "random_state": 0, "validation_fraction": 0.0}


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


@pytest.fixture(scope="module")
def checked(fitted):
    model, x, y = fitted
    return check_posterior(model, x, y)


def test_the_exact_posterior_of_one_layer_is_that_of_chains_though_predictions_are_calibrated():
    x, y = data(60)
    model = deep_regressor(
        objective="evidence", calibration="left-out", theta_from="never", noise_variance=2.0, max_steps=2,
        likelihood="gaussian", **SMALL,
    ).fit(x, y)  # fmt: skip
    assert model.model_.stacked.likelihood.law.factor[0] < 0.8
    for refit in (False, True):
        found = check_posterior(model, x, y, refit=refit)
        np.testing.assert_allclose(found.fitted.std, found.sampled.std, rtol=0.03)


def test_chains_give_the_exact_deviation_and_q_its_own(fitted, checked):
    model, x, _ = fitted
    found = checked
    assert (found.refitted, found.new_rows, found.n_rows) == (False, False, 60)
    exact = exact_function_std(model, x)
    np.testing.assert_allclose(found.sampled.function_std[:, 0], exact, rtol=0.15)
    epistemic, _ = model.predict_variance(x)
    np.testing.assert_allclose(found.fitted.function_std[:, 0], np.sqrt(epistemic), rtol=0.35)
    ratio = np.median(found.fitted.function_std[:, 0] / exact)
    assert found.function_std_ratio[1] == pytest.approx(ratio, rel=0.1)
    assert found.mean_difference < 0.3
    assert found.converged
    assert found.sampled.coverage(found.Y) == pytest.approx(0.9, abs=0.1)
    assert "q(W) only" in str(found)


@pytest.mark.parametrize("numbers", [{"smallest_ess": 99.0}, {"worst_rhat": 1.06}])
def test_without_convergence_there_is_no_verdict_but_what_to_do(checked, numbers):
    found = dataclasses.replace(checked, **numbers)
    assert found.verdict.startswith("No verdict")
    assert "--seconds" in found.verdict
    assert "function_std_ratio" not in found.numbers()
    assert found.numbers()["smallest_ess"] == found.smallest_ess


def with_wider_weights(model, shift):
    """The same model with other log variances of q(W)."""
    moved = eqx.tree_at(
        lambda m: m.blocks[0].q_W.log_var, model.model_, replace_fn=lambda log_var: log_var + shift
    )
    return with_model(model, moved)


def with_model(model, moved):
    """The same estimator with another deep model."""
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
        found = check_posterior(wrong, x, y)
        assert word in found.verdict
        # The same posterior compared again after fitting q(W) anew is nearer.
    again = check_posterior(wrong, x, y, refit=True)
    assert again.function_std_ratio[1] < 0.5 * found.function_std_ratio[1]


def test_of_more_rows_a_part_is_used_for_both_sides_and_the_others_are_compared(fitted):
    model, _, _ = fitted
    x, y = data(150, seed=1)
    told = []
    found = check_posterior(model, x, y, n_rows=60, progress=lambda share, text: told.append(text))
    assert (found.refitted, found.new_rows, found.n_rows) == (True, True, 60)
    assert told[0] == "fitting q(W) to these rows"
    assert found.sampled.mean.shape == (90, 1)
    assert 0.3 < found.function_std_ratio[1] < 3
    numbers = found.numbers()
    assert json.loads(json.dumps(numbers)) == numbers
    left, _ = found.plot()
    assert left.get_title() == "mean"


def test_every_replicate_is_checked():
    x, y = data(40)
    model = deep_regressor(n_members=2, max_steps=100, likelihood="gaussian", **SMALL).fit(x, y)
    second = jax.tree.map(lambda leaf: leaf[1], model.model_.stacked)
    shifted = eqx.tree_at(
        lambda one: one.blocks[0].q_W.mean, second, replace_fn=lambda mean: mean + 3.0
    )
    members = Members.of([model.model_.each()[0], shifted])
    found = check_posterior(with_model(model, members), x, y, refit=False)
    assert found.mean_difference > 0.5


def test_classes_are_compared_by_their_probabilities():
    x, y = data(60)
    labels = np.where(y > 10, "high", "low")
    model = deep_classifier(max_steps=500, **SMALL).fit(x, labels)
    found = check_posterior(model, x, labels, n_warmup=50, max_seconds=20)
    np.testing.assert_allclose(found.sampled.mean.sum(axis=1), 1.0, atol=1e-4)
    assert found.interval_ratio is None
    agreed = dataclasses.replace(found, worst_rhat=1.0, smallest_ess=1e3)
    assert agreed.numbers()["coverage_90"] is None
    found.plot()


def test_frequencies_drawn_anew_are_refused():
    x, y = data(30)
    model = deep_regressor(omega="var-resampled", max_steps=10, **SMALL).fit(x, y)
    with pytest.raises(ValueError, match="fixed frequencies"):
        check_posterior(model, x, y)


@pytest.fixture(scope="module")
def stacked():
    x, y = data(60)
    settings = {name: value for name, value in SMALL.items() if name != "random_state"}
    deep = Deep(objective="elbo", max_steps=500, **settings)
    return DeepGPRegressor([("linear", Linear()), ("deep", deep)], random_state=0).fit(x, y)


def test_of_a_stack_the_deep_member_is_checked_on_rows_that_all_of_it_sees(stacked):
    found = check_posterior(stacked, *data(60), max_seconds=20)
    (weight,) = (member["weight"] for member in stacked.members_ if member["name"] == "deep")
    assert found.weight == pytest.approx(weight)
    assert 0.5 < weight < 1
    # Each replicate of the member has left a fold out, so that none is conditioned on the same rows as the chains.
    assert (found.refitted, found.n_rows, found.member) == (True, 60, "deep")
    assert f"whose weight is {weight:.2f}" in str(found)


def test_of_an_exact_member_hyper_parameters_are_sampled(stacked):
    (name, *_) = (
        one["name"] for one in stacked.members_ if one["weight"] and one["name"] != "deep"
    )
    x, y = data(60)
    found = check_posterior(stacked, x, y, member=name)
    assert (found.what, found.member, found.converged) == ("hyper-parameters", name, True)
    law = next(part for part in stacked.fitted_.predictor.parts if isinstance(part, RowsPart)).law(
        x
    )
    mean, epistemic, aleatoric = law.moments()
    # The mode given these rows is that of the fit, which was on the same rows.
    np.testing.assert_allclose(found.fitted.mean[:, 0], mean, atol=0.02 * np.std(y))
    np.testing.assert_allclose(found.fitted.std[:, 0], np.sqrt(epistemic + aleatoric), rtol=0.05)
    # Not to know the hyper-parameters widens what is known of the function.
    assert 0.5 < found.function_std_ratio[1] < 1.1
    with pytest.raises(ValueError, match="one of those that can be checked"):
        check_posterior(stacked, x, y, member="constant")


def test_constants_and_several_targets_cannot_be_checked():
    x, y = data(30)
    model = DeepGPRegressor(Constant(), random_state=0).fit(x, y)
    with pytest.raises(ValueError, match=r"no member that predicts can be checked.*--members deep"):
        check_posterior(model, x, y)
    with pytest.raises(ValueError, match="above 0"):
        check_posterior(model, x, y, max_seconds=0)
    both = np.stack([y, y], axis=1)
    model = DeepGPRegressor(Linear(), random_state=0).fit(x, both)
    with pytest.raises(ValueError, match="each target has members of its own"):
        check_posterior(model, x, both)


def test_the_command_prints_numbers_and_writes_the_plot(tmp_path):
    x, y = data(60)
    table = tmp_path / "table.csv"
    lines = [f"{a},{b}" for a, b in zip(x[:, 0], y, strict=True)]
    table.write_text("\n".join(["x,y", *lines]))
    DeepGPRegressor(Linear(), random_state=0).fit(table, "y").save(tmp_path / "model.bochner")

    def call(*more):
        words = ["check", tmp_path / "model.bochner", table, *more]
        result = CliRunner().invoke(app, [str(word) for word in words])
        assert result.exit_code == 0, result.output
        return result.stdout

    printed = call("--plot", tmp_path / "check.png")
    assert "one value of each hyper-parameter" in " ".join(printed.split())
    assert (tmp_path / "check.png").read_bytes().startswith(b"\x89PNG")
    found = json.loads(call("--json", "--seed", 1))
    assert found["rows"] == 60
    assert set(found["function_std_ratio"]) == {"5 %", "median", "95 %"}
    assert "verdict" in found
    assert call("--quiet") == ""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_compiled_program_within_a_second(number):
    code = """
import hashlib
from bochner.cli.stopping import ending_at_once
with ending_at_once(as_json=False) as before_the_end:
    before_the_end.callback(lambda: print("cleaned up", flush=True))
    print("begun", flush=True)
    hashlib.pbkdf2_hmac("sha256", b"x", b"y", 400_000_000)  # minutes outside of Python, deaf to signals
"""
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "begun\n"
    time.sleep(0.1)
    process.send_signal(number)
    sent = time.monotonic()
    output, errors = process.communicate(timeout=20)
    assert time.monotonic() - sent < 2  # on a busy machine
    assert (process.returncode, output) == (128 + number, "cleaned up\n")
    assert errors.strip() == "Stopped."
