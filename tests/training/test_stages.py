import equinox as eqx
import jax
import pytest

from bochner.gp.members import Members
from bochner.likelihoods import Gaussian, HeteroscedasticGaussian, StudentT
from bochner.training import Budget, Plan, Stage, trainable
from bochner.training.stages import in_words
from tests import examples

Q_W = [".q_W.mean", ".q_W.log_var"]
KERNEL = [".features.kernel.log_variance", ".features.kernel.log_lengthscale"]
Q_OMEGA = [".features.spectrum.q_Omega.mean", ".features.spectrum.q_Omega.log_var"]
PAPER = Plan(theta_from=12_000, omega_from=0, n_mc=1, n_mc_final=100, n_mc_final_from=0.5)


def trained_names(model, stage):
    leaves, _ = jax.tree_util.tree_flatten_with_path(trainable(model, stage))
    assert {type(value) for _, value in leaves} == {bool}
    return {jax.tree_util.keystr(path) for path, value in leaves if value}


def expected_names(*fields, likelihood=()):
    blocks = [".blocks[0]", ".blocks[1].layers", ".blocks[2]"]
    named = {block + field for block in blocks for field in fields}
    return named | {f".likelihood.{name}" for name in likelihood}


@pytest.mark.parametrize("kernel", ["rbf", "matern32", "arccos1"])
@pytest.mark.parametrize("omega", ["prior-fixed", "var-fixed", "var-resampled"])
def test_the_trainable_leaves_of_each_stage_are_these(omega, kernel):
    model = examples.deep_gp(4, feed_inputs=True, omega=omega, kernel=kernel)
    q_Omega = [] if omega == "prior-fixed" else Q_OMEGA
    noise = ("log_noise_variance",)

    def names(theta, omega):
        return trained_names(model, Stage(theta=theta, omega=omega, n_mc=1))

    assert names(False, False) == expected_names(*Q_W)
    assert names(True, False) == expected_names(*Q_W, *KERNEL, likelihood=noise)
    assert names(False, True) == expected_names(*Q_W, *q_Omega)
    assert names(True, True) == expected_names(*Q_W, *KERNEL, *q_Omega, likelihood=noise)


@pytest.mark.parametrize(
    ("likelihood", "names"),
    [
        (Gaussian, ("log_noise_variance",)),
        (HeteroscedasticGaussian, ("constant",)),
        (StudentT, ("log_scale", "raw_nu")),
    ],
)
def test_likelihood_parameters_are_learned_with_theta(likelihood, names):
    started = likelihood.start(1)
    model = examples.deep_gp(1, d_out=likelihood.n_functions(1), likelihood=started)
    learned = trained_names(model, Stage(theta=True, omega=False, n_mc=1))
    assert learned - trained_names(model, Stage(theta=False, omega=False, n_mc=1)) == {
        ".likelihood." + name for name in names
    } | {".blocks[0]" + name for name in KERNEL}


def test_the_marks_have_the_structure_of_the_model():
    model = examples.deep_gp(4, feed_inputs=True)
    marks = trainable(model, Stage(theta=True, omega=True, n_mc=1))
    assert jax.tree.structure(marks) == jax.tree.structure(model)


@pytest.mark.parametrize(
    ("step", "fraction", "stage"),
    [
        (0, 0.0, Stage(theta=False, omega=True, n_mc=1)),
        (11_999, 0.49, Stage(theta=False, omega=True, n_mc=1)),
        (12_000, 0.49, Stage(theta=True, omega=True, n_mc=1)),
        (11_999, 0.5, Stage(theta=False, omega=True, n_mc=100)),
        (50_000, 1.0, Stage(theta=True, omega=True, n_mc=100)),
    ],
)
def test_the_papers_plan_holds_theta_for_12000_steps_and_takes_100_samples_halfway(
    step, fraction, stage
):
    assert PAPER.stage(step, fraction) == stage


def test_none_holds_a_part_for_good():
    plan = Plan(theta_from=None, omega_from=None)
    assert plan.stage(10**9, 1.0) == Stage(theta=False, omega=False, n_mc=1)


def test_a_whole_number_counts_steps_and_a_fraction_is_a_share_of_the_budget():
    assert Plan(theta_from=1).stage(1, 0.0).theta
    assert not Plan(theta_from=1.0).stage(1, 0.99).theta
    assert Plan(theta_from=1.0).stage(1, 1.0).theta


@pytest.mark.parametrize(
    ("step", "expected"),
    [(0, [12_000, 15_000]), (11_999, [1, 3001]), (12_000, [3000]), (15_000, [])],
)
def test_steps_to_the_next_stages_are_counted_in_a_budget_of_steps(step, expected):
    assert PAPER.steps_to_next(step, Budget(max_steps=30_000)) == expected


def test_in_a_budget_of_seconds_only_moments_in_steps_are_foreseen():
    assert PAPER.steps_to_next(0, Budget(max_seconds=60.0)) == [12_000]


@pytest.mark.parametrize("max_steps", [1, 3, 7, 100, 999])
def test_the_foreseen_step_is_the_first_of_the_new_stage(max_steps):
    budget = Budget(max_steps=max_steps)
    for moment in (0.1, 0.3, 0.5, 1 / 3, 0.9):
        plan = Plan(n_mc=1, n_mc_final=5, n_mc_final_from=moment)
        (distance,) = plan.steps_to_next(0, budget)
        before, after = (
            plan.stage(step, budget.fraction(step, 0.0)) for step in (distance - 1, distance)
        )
        assert (before.n_mc, after.n_mc) == (1, 5)


def test_stages_read_as_words():
    assert str(Stage(theta=False, omega=False, n_mc=1)) == "q(W), 1 sample"
    assert str(Stage(theta=True, omega=True, n_mc=10)) == "q(W) + theta + q(Omega), 10 samples"


@pytest.mark.parametrize(
    ("omega", "words"), [("prior-fixed", "q(W), 1 sample"), ("var-fixed", "q(W) + q(Omega), 1 sample")]
)  # fmt: skip
def test_of_held_frequencies_no_stage_says_that_they_are_learned(omega, words):
    model = examples.deep_gp(4, feed_inputs=True, omega=omega, kernel="rbf")
    stage = Stage(theta=False, omega=True, n_mc=1)
    held = eqx.partition(model, trainable(model, stage))[1]
    assert [in_words(stage, one) for one in (model, Members.of([model, model]), held)] == [
        words
    ] * 3
