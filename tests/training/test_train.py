import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from bochner.features.spectra import SPECTRA
from bochner.gp.reparameterization import LocalReparameterization
from bochner.training import Budget, Cosine, Plan
from tests.clocks import steady_clock
from tests.training.problems import PLAN, leaves, model, short_training, table

ADAM = optax.adam(1.0)  # one object, since each new one compiles anew


def test_the_same_seed_gives_bit_equal_parameters_and_another_seed_does_not():
    first, again, other = (short_training(seed) for seed in (0, 0, 1))
    assert all(map(np.array_equal, leaves(first), leaves(again)))
    assert [r.elbo for r in first.history] == [r.elbo for r in again.history]
    assert not any(map(np.array_equal, leaves(first)[:1], leaves(other)[:1]))
    assert any(not np.array_equal(a, b) for a, b in zip(leaves(first), leaves(other), strict=True))


@pytest.mark.parametrize("omega", SPECTRA)
def test_training_improves_the_bound(omega):
    trained = short_training(max_steps=400, started=model(2, omega=omega), learning_rate=0.02)
    assert trained.n_steps == 400
    first, last = (np.mean([r.elbo for r in part]) for part in np.split(_history(trained), 2))
    assert last > first + 20


def _history(trained):
    return np.array(trained.history, dtype=object)[: len(trained.history) // 2 * 2]


def test_local_reparameterization_and_a_cosine_rate_improve_the_bound():
    trained = short_training(
        max_steps=300, reparameterization=LocalReparameterization(), schedule=Cosine()
    )
    assert trained.history[-1].elbo > trained.history[0].elbo + 20
    assert trained.history[-1].learning_rate == pytest.approx(0.0, abs=1e-6)


def test_records_hold_the_bound_and_its_parts():
    trained = short_training()
    for record in trained.history:
        assert record.elbo == pytest.approx(record.ell - record.kl, rel=1e-4, abs=1e-3)
        assert record.learning_rate == pytest.approx(0.01)
        assert record.held_out_mnll is None
    steps = [record.step for record in trained.history]
    assert steps == sorted(set(steps))
    assert steps[-1] == 60
    assert trained.history[-1].fraction == 1.0


def test_every_step_draws_new_noise():
    history = short_training(batch_size=60, learning_rate=0.0, max_steps=100).history
    assert len({record.ell for record in history}) == 100
    assert len({record.kl for record in history}) == 1


def test_the_callers_model_is_neither_changed_nor_consumed():
    started = model()
    before = [np.asarray(leaf).copy() for leaf in jax.tree.leaves(started)]
    trained = short_training(started=started)
    after = jax.tree.leaves(started)
    assert not any(leaf.is_deleted() for leaf in after)
    assert all(map(np.array_equal, before, after))
    assert any(not np.array_equal(a, b) for a, b in zip(before, leaves(trained), strict=True))


def test_leaves_that_a_stage_holds_keep_their_values():
    started = model()
    trained = short_training(started=started, plan=Plan(theta_from=None, omega_from=None)).model
    for before, after in zip(started.layers, trained.layers, strict=True):
        for held in ("kernel", "spectrum"):
            pairs = jax.tree.map(
                jnp.array_equal, getattr(before.features, held), getattr(after.features, held)
            )
            assert all(jax.tree.leaves(pairs)), held
        assert not jnp.any(before.q_W.mean == after.q_W.mean)
    assert jnp.array_equal(
        started.likelihood.log_noise_variance, trained.likelihood.log_noise_variance
    )


def test_stages_change_at_their_step_and_the_number_of_samples_at_its_share():
    plan = Plan(theta_from=20, omega_from=0.75, n_mc=1, n_mc_final=3, n_mc_final_from=0.5)
    history = short_training(plan=plan, max_steps=40).history
    stages = {record.step: record.stage for record in history}
    # A record tells of the steps that led to it.
    assert stages[20] == "q(W), 1 sample"
    assert stages[21] == "q(W) + theta, 3 samples"
    assert stages[30] == "q(W) + theta, 3 samples"
    assert stages[31] == "q(W) + theta + q(Omega), 3 samples"


def test_one_program_is_compiled_a_stage_and_none_for_a_second_training(compilations):
    plan = Plan(theta_from=0.3, omega_from=0, n_mc=1, n_mc_final=2, n_mc_final_from=0.6)
    rows, started = table(n=50), model()
    options = {"plan": plan, "rows": rows, "started": started, "max_steps": 130}
    short_training(0, **options)
    assert compilations.count("jit(run_chunk)") == 3
    compilations.clear()
    short_training(1, **options, learning_rate=0.003)
    assert compilations == []


def test_rows_of_weight_zero_are_as_good_as_absent():
    weights, rows = np.array([1.0] * 30 + [0.0] * 30), table()
    first = rows.rows(jnp.arange(30))
    masked = type(rows)(rows.X, rows.Y, jnp.asarray(weights, jnp.float32))
    # Batches larger than the table hold all of it.
    with_zeros = short_training(rows=masked, batch_size=1000, max_steps=10)
    without = short_training(rows=first, batch_size=30, max_steps=10)
    for left, right in zip(leaves(with_zeros), leaves(without), strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-3, atol=1e-4)


def test_any_optax_optimizer_trains():
    trained = short_training(optimizer=ADAM, learning_rate=0.01)
    default = short_training(learning_rate=0.01)
    for left, right in zip(leaves(trained), leaves(default), strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-3, atol=1e-4)


def test_a_budget_of_seconds_is_kept(monkeypatch):
    steady_clock(monkeypatch, tick=0.01)
    trained = short_training(budget=Budget(max_seconds=1.5))
    assert trained.n_steps > 10
    assert 1.5 <= trained.history[-1].seconds < 1.6
    assert trained.history[-1].stage == str(PLAN.stage(trained.n_steps, 1.0))


def test_callbacks_hear_of_every_record_and_of_the_end():
    heard = []

    class Listener:
        def on_record(self, record):
            heard.append(record)

        def on_end(self):
            heard.append("end")

    trained = short_training(callbacks=[Listener()])
    assert heard == [*trained.history, "end"]
