import numpy as np
import pytest

from bochner.prediction import metrics
from tests.deep_alone import deep_regressor
from tests.estimators import problems
from tests.estimators.problems import SMALL

X, Y = problems.numbers()


def two_targets(n=60):
    x, y = problems.numbers(n)
    return x, np.stack([y, -100 * y], axis=1)


@pytest.fixture(scope="module")
def two_outputs():
    return deep_regressor(**SMALL | {"max_steps": 300}).fit(*two_targets())


def test_shapes_with_one_target(regressor):
    x = X[:7]
    assert regressor.predict(x).shape == (7,)
    assert [part.shape for part in regressor.predict(x, return_std=True)] == [(7,)] * 2
    assert [part.shape for part in regressor.predict_variance(x)] == [(7,)] * 2
    assert regressor.predict_interval(x).shape == (7, 2)
    assert regressor.predict_quantiles(x, [0.1, 0.5, 0.9]).shape == (7, 3)
    assert regressor.predict_quantiles(x, 0.5).shape == (7, 1)
    assert regressor.log_prob(x, Y[:7]).shape == (7,)
    assert regressor.sample_y(x, 5).shape == (7, 5)
    assert len(regressor.explain().columns) == 3
    assert regressor.sample_functions(2)[0](x).shape == (7,)


def test_shapes_with_two_targets(two_outputs):
    x, y = (part[:7] for part in two_targets())
    assert two_outputs.n_targets_ == 2
    assert [part.shape for part in two_outputs.predict(x, return_std=True)] == [(7, 2)] * 2
    assert [part.shape for part in two_outputs.predict_variance(x)] == [(7, 2)] * 2
    assert two_outputs.predict_interval(x).shape == (7, 2, 2)
    assert two_outputs.predict_quantiles(x, [0.1, 0.5, 0.9]).shape == (7, 2, 3)
    assert two_outputs.log_prob(x, y).shape == (7,)
    assert two_outputs.sample_y(x, 5).shape == (7, 2, 5)
    assert two_outputs.sample_functions(2)[0](x).shape == (7, 2)


def test_a_column_of_one_target_gives_vectors_as_scikit_learn_does():
    model = deep_regressor(**SMALL | {"max_steps": 5}).fit(X, Y[:, None])
    assert model.predict(X[:4]).shape == (4,)
    assert model.predict_interval(X[:4]).shape == (4, 2)


def test_shapes_of_a_classifier(classifier):
    x, y = (part[:7] for part in problems.classes())
    assert classifier.predict(x).shape == (7,)
    assert classifier.predict_proba(x).shape == (7, 3)
    assert classifier.log_prob(x, y).shape == (7,)
    assert classifier.sample_y(x, 5).shape == (7, 5)
    assert classifier.sample_functions(2)[1](x).shape == (7, 3)
    np.testing.assert_allclose(classifier.predict_proba(x).sum(axis=1), 1.0, rtol=1e-12)


def test_each_target_keeps_its_own_units(two_outputs):
    x, y = two_targets()
    mean, std = two_outputs.predict(x, return_std=True)
    for k in range(2):
        assert np.corrcoef(mean[:, k], y[:, k])[0, 1] > 0.8
    assert std[:, 1].mean() > 20 * std[:, 0].mean()


def test_rows_are_predicted_alike_in_any_batch(regressor):
    whole = regressor.predict(X, return_std=True)
    for k, alone in enumerate((regressor.predict(X[3:4], True), regressor.predict(X[:9], True))):
        rows = [slice(3, 4), slice(0, 9)][k]
        for part, expected in zip(alone, whole, strict=True):
            np.testing.assert_allclose(part, expected[rows], rtol=1e-5)
    order = np.random.default_rng(0).permutation(len(X))
    np.testing.assert_allclose(regressor.predict(X[order]), whole[0][order], rtol=1e-5)


def test_new_numbers_of_rows_compile_nothing(regressor, classifier, compilations):
    def ask(n):
        x = np.resize(X, (n, 3))
        regressor.predict(x, return_std=True)
        regressor.predict_interval(x)
        regressor.log_prob(x, np.resize(Y, n))
        classifier.predict_proba(np.resize(problems.classes()[0], (n, 2)))

    ask(5)
    count = len(compilations)
    for n in (1, 6, 600):
        ask(n)
    assert len(compilations) == count


def test_the_standard_deviation_joins_both_parts_of_the_variance(regressor):
    epistemic, aleatoric = regressor.predict_variance(X)
    _, std = regressor.predict(X, return_std=True)
    np.testing.assert_allclose(std**2, epistemic + aleatoric, rtol=1e-5)
    assert np.all(epistemic > 0)
    assert np.all(aleatoric > 0)


def test_intervals_are_quantiles_and_widen_with_coverage(regressor):
    widths = []
    for coverage in (0.5, 0.8, 0.9, 0.99):
        low, high = regressor.predict_interval(X, coverage).T
        tails = regressor.predict_quantiles(X, [(1 - coverage) / 2, (1 + coverage) / 2]).T
        np.testing.assert_allclose((low, high), tails)
        widths.append(high - low)
    assert np.all(np.diff(widths, axis=0) > 0)


def test_samples_have_the_predicted_moments(regressor):
    n = 4000
    mean, std = regressor.predict(X[:5], return_std=True)
    samples = regressor.sample_y(X[:5], n)
    # The mean and deviation are themselves of 50 drawn functions.
    epistemic, _ = regressor.predict_variance(X[:5])
    error = np.sqrt(epistemic / 50 + std**2 / n)
    assert np.abs((samples.mean(axis=1) - mean) / error).max() < 4
    np.testing.assert_allclose(samples.std(axis=1), std, rtol=0.3)
    again = regressor.sample_y(X[:5], n)
    np.testing.assert_array_equal(again, samples)
    assert np.all(regressor.sample_y(X[:5], n, random_state=1) != samples)


def test_a_regressor_is_evaluated_by_its_own_predictions(regressor):
    found = regressor.evaluate(X, Y)
    assert list(found) == ["rmse", "mae", "r_squared", "mnll", "crps", "coverage_90"]
    low, high = regressor.predict_interval(X).T
    assert found["rmse"] == pytest.approx(metrics.rmse(Y, regressor.predict(X)), rel=1e-6)
    assert found["mnll"] == pytest.approx(-regressor.log_prob(X, Y).mean(), rel=1e-5)
    assert found["coverage_90"] == pytest.approx(metrics.coverage(Y, low, high))
    other = metrics.crps(Y, regressor.sample_y(X, 500))
    assert found["crps"] == pytest.approx(other, rel=0.1)


def test_a_classifier_is_evaluated_by_its_own_predictions(classifier):
    x, y = problems.classes()
    found = classifier.evaluate(x, y)
    assert list(found) == ["error_rate", "auc", "mnll", "brier", "ece"]
    labels = np.searchsorted(classifier.classes_, y)
    probabilities = classifier.predict_proba(x)
    assert found["error_rate"] == pytest.approx(1 - classifier.score(x, y))
    assert found["mnll"] == pytest.approx(-classifier.log_prob(x, y).mean(), rel=1e-4)
    assert found["brier"] == pytest.approx(metrics.brier(labels, probabilities))
    assert found["ece"] == pytest.approx(metrics.ece(labels, probabilities))


def test_plots_are_drawn_on_given_axes(regressor, classifier):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 7)
    assert regressor.plot_learning_curve(ax=axes[0]) is axes[0]
    explanation = regressor.explain()
    assert regressor.plot_shares(ax=axes[1], explanation=explanation) is axes[1]
    regressor.plot_effects(ax=axes[4:], explanation=explanation)
    assert regressor.plot_calibration(X, Y, ax=axes[2]) is axes[2]
    assert classifier.plot_calibration(*problems.classes(), ax=axes[3]) is axes[3]
    assert all(axis.has_data() for axis in axes)
    plt.close(figure)
