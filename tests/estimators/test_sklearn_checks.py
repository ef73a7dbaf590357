import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from bochner import DeepGPClassifier, DeepGPRegressor

SHORT = {
    "objective": "elbo",  # which compiles in half the time; the slow test has the defaults
    "max_steps": 150,
    "n_random_features": 20,
    "width": 2,
    "n_mc_predict": 20,
    "theta_from": 0,  # one stage, one program for each size of data
}
REASON = (
    "mini-batches of weighted rows and of repeated rows hold different rows, as in any learner by "
    "mini-batches; test_weights.py shows that the gradients of all rows are equal"
)


def expected_failures(estimator):
    return {
        "check_sample_weight_equivalence_on_dense_data": REASON,
        "check_sample_weight_equivalence_on_sparse_data": REASON,
    }


@parametrize_with_checks(
    [DeepGPRegressor(**SHORT), DeepGPClassifier(**SHORT)],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_accepts_a_short_training(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [DeepGPRegressor(), DeepGPClassifier()], expected_failed_checks=expected_failures
)
def test_scikit_learn_accepts_the_defaults(estimator, check):
    check(estimator)
