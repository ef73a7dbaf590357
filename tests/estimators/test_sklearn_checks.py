"""scikit-learn's own checks: of the estimators as users get them, and of a deep model alone."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from bochner import DeepGPClassifier, DeepGPRegressor
from tests.deep_alone import deep_classifier, deep_regressor

SHORT = {
    "max_steps": 150,
    "n_random_features": 20,
    "width": 2,
    "n_mc_predict": 20,
    "theta_from": 0,  # one stage, one program for each size of data
}
OF_MIXTURES = (
    "rows that are repeated with the same target say that there is no noise, and a weight does not; test_weights.py "
    "shows what weights do"
)
OF_BATCHES = (
    "mini-batches of weighted rows and of repeated rows hold different rows, as in any learner by "
    "mini-batches; test_weights.py shows that the gradients of all rows are equal"
)


def expected_failures(reason):
    return lambda estimator: {
        "check_sample_weight_equivalence_on_dense_data": reason,
        "check_sample_weight_equivalence_on_sparse_data": reason,
    }


@parametrize_with_checks(
    [DeepGPRegressor(), DeepGPClassifier()], expected_failed_checks=expected_failures(OF_MIXTURES)
)
def test_scikit_learn_accepts_the_defaults(estimator, check):
    check(estimator)


@parametrize_with_checks(
    [deep_regressor(**SHORT), deep_classifier(**SHORT)],
    expected_failed_checks=expected_failures(OF_BATCHES),
)
def test_scikit_learn_accepts_a_deep_model(estimator, check):
    check(estimator)
