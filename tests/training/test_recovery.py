"""Divergence and early stopping."""

import contextlib
import dataclasses
import re
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.flatten_util import ravel_pytree

from benchmarks import bochner_model
from benchmarks.configurations import A
from bochner.gp.reparameterization import DrawWeights
from bochner.likelihoods import Gaussian
from bochner.training import Plan, TrainingDivergedError, chunk
from bochner.training.chunk import State, run_chunk
from bochner.training.recorder import HeldOut
from tests.training.problems import leaves, model, short_training, table

# Adam's first step, then rest.
ONE_STEP = optax.chain(optax.adam(1.0), optax.scale_by_schedule(lambda count: count == 0))


def test_a_huge_learning_rate_is_halved_three_times_then_given_up():
    plan = Plan(theta_from=None, omega_from=None)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with pytest.raises(TrainingDivergedError) as error:
            short_training(learning_rate=1e30, plan=plan)
    messages = [str(w.message) for w in caught if w.category is RuntimeWarning]
    rates = [re.search(r"halved to (\S+?)\.?$", message)[1] for message in messages]
    assert [float(rate) for rate in rates] == [5e29, 2.5e29, 1.25e29]
    assert re.search(r"near step \d+ \(q\(W\), 1 sample\)", str(error.value))
    assert "smaller `learning_rate` than 1e+30" in str(error.value)


def one_large_step(max_steps):
    """One step lowers the log noise variance by the rate; the bound overflows over 90."""
    return short_training(
        started=model(likelihood=Gaussian.start(1, noise_variance=50.0)),
        plan=Plan(omega_from=None),
        optimizer=ONE_STEP,
        learning_rate=100.0,
        max_steps=max_steps,
    )


def test_training_goes_on_with_a_halved_rate_from_finite_parameters():
    message = "back to step 0; .*the learning rate is halved to 50"
    with pytest.warns(RuntimeWarning, match=message):
        trained = one_large_step(max_steps=200)
    assert trained.n_steps == 200
    assert trained.history[-1].learning_rate in (50.0, 25.0, 12.5)
    assert all(np.isfinite(leaf).all() for leaf in leaves(trained))
    assert np.isfinite([record.elbo for record in trained.history]).all()


def test_steps_that_overflow_are_left_out():
    """One row of sixty, in a step out of six, has a bound that overflows at any rate."""
    wild = table()
    wild = dataclasses.replace(wild, X=wild.X.at[7].set(1e30))
    with pytest.warns(RuntimeWarning, match="steps that overflow are left out") as caught:
        trained = short_training(rows=wild, batch_size=10, max_steps=1200)
    assert len(caught) == 1
    assert trained.n_steps == 1200
    assert trained.history[-1].elbo > trained.history[0].elbo
    assert all(np.isfinite(leaf).all() for leaf in leaves(trained))


def careful_chunks(optimizer, n_steps):
    """The same steps twice: as always, and with care."""
    inputs, state = bochner_model.chunk(A, 1, DrawWeights())
    inputs = dataclasses.replace(
        inputs, optimizer=optimizer, n_steps=jnp.asarray(n_steps, jnp.int32)
    )
    state = State(state.learned, optimizer.init(state.learned))
    copies = [jax.tree.map(jnp.copy, state) for _ in range(2)]
    pairs = zip((inputs, dataclasses.replace(inputs, careful=True)), copies, strict=True)
    return ravel_pytree(state.learned)[0], *(run_chunk(*pair) for pair in pairs)


def test_care_changes_nothing_where_gradients_are_short(monkeypatch):
    monkeypatch.setattr(chunk, "LONGEST_GRADIENT", 1e6)
    _, plain, careful = careful_chunks(optax.adam(1.0), 20)
    for ours, theirs in zip(jax.tree.leaves(careful), jax.tree.leaves(plain), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


def test_care_shortens_a_long_gradient_and_keeps_its_direction(monkeypatch):
    monkeypatch.setattr(chunk, "LONGEST_GRADIENT", 1e-3)
    before, *after = careful_chunks(optax.sgd(1.0), 1)
    plain, careful = (ravel_pytree(state.learned)[0] - before for state, _ in after)
    length = jnp.linalg.norm(plain)
    assert length > 1e-4
    np.testing.assert_allclose(careful, 1e-5 / length * plain, rtol=2e-2, atol=3e-7)


@pytest.mark.filterwarnings("ignore:the bound became non-finite")
def test_training_goes_back_to_parameters_whose_bound_was_finite():
    assert one_large_step(max_steps=50).n_steps == 50


@pytest.mark.filterwarnings("ignore:the bound became non-finite")
def test_parameters_that_the_last_step_made_infinite_are_not_returned():
    with contextlib.suppress(TrainingDivergedError):
        trained = short_training(learning_rate=1e30, max_steps=1, plan=Plan())
        assert all(np.abs(leaf).max() < 1e20 for leaf in leaves(trained))


class Judge:
    """Gives the values it was made with, in order, and remembers the models it saw."""

    def __init__(self, *values):
        self.values, self.seen = values, []

    def __call__(self, judged):
        self.seen.append([np.asarray(leaf).copy() for leaf in jax.tree.leaves(judged)])
        return self.values[min(len(self.seen), len(self.values)) - 1]


def test_early_stopping_returns_the_best_parameters():
    judge = Judge(3.0, 2.0, 1.0, 1.5, 1.2, 1.1)
    trained = short_training(held_out=HeldOut(judge, n_times=10, patience=2))
    assert len(judge.seen) == 5
    assert all(map(np.array_equal, leaves(trained), judge.seen[2]))
    assert any(not np.array_equal(a, b) for a, b in zip(judge.seen[2], judge.seen[4], strict=True))
    assert trained.n_steps == 30
    judged = [r.held_out_mnll for r in trained.history if r.held_out_mnll is not None]
    assert judged == [3.0, 2.0, 1.0, 1.5, 1.2]


def test_without_patience_training_uses_its_whole_budget_and_returns_the_best():
    judge = Judge(3.0, 1.0, 2.0)
    trained = short_training(held_out=HeldOut(judge, n_times=10))
    assert trained.n_steps == 60
    assert len(judge.seen) == 10
    assert all(map(np.array_equal, leaves(trained), judge.seen[1]))


def test_a_judge_who_never_has_a_number_leaves_the_last_parameters():
    judge = Judge(float("nan"))
    trained = short_training(held_out=HeldOut(judge, n_times=10))
    assert all(map(np.array_equal, leaves(trained), judge.seen[-1]))
