"""Each baseline learns an easy problem; those of the extra `bench` are skipped where it is not installed."""

import importlib

import numpy as np
import pytest

from experiments import baselines

QUICK = {
    "lightgbm": {},
    "catboost": {},
    "ngboost": {},
    "var-gp": {"n_steps": 300, "n_inducing": 20, "learning_rate": 0.03},
    "dgp-ep": {"n_steps": 400, "n_inducing": 20, "width": 2, "learning_rate": 0.03},
    "dnn": {"n_steps": 2000, "dropout": 0.1},
    "mc-dropout": {"n_steps": 2000, "dropout": 0.1},
    "dsvi-2": {"n_steps": 300, "n_inducing": 20, "learning_rate": 0.03},
    "dsvi-3": {"n_steps": 300, "n_inducing": 20, "learning_rate": 0.03},
}


@pytest.fixture(params=QUICK)
def name(request):
    try:
        baselines.regressor(request.param)
    except ModuleNotFoundError as error:
        pytest.skip(f"{error.name} is not installed")
    return request.param


def inputs(n, seed):
    return np.random.default_rng(seed).uniform(-2, 2, size=(n, 2))


def test_regression_finds_the_function_and_its_noise(name):
    X, X_new = inputs(400, 0), inputs(300, 1)
    noise = np.random.default_rng(2).normal(size=700)
    y, y_new = (
        100 + 10 * np.sin(2 * X[:, 0]) + noise[:400],
        100 + 10 * np.sin(2 * X_new[:, 0]) + noise[400:],
    )
    law = baselines.regressor(name, **QUICK[name]).fit(X, y, seed=0)(X_new)
    scores = baselines.regression_scores(law, y_new)
    assert scores["rmse"] < 2.5
    assert 0.8 < scores["coverage_90"] <= 1
    assert scores["mnll"] < 2.6


@pytest.mark.parametrize("n_classes", [2, 3])
def test_classification_finds_the_regions(name, n_classes):
    X, X_new = inputs(400, 0), inputs(300, 1)

    def label(X):
        return np.digitize(X[:, 0], [-0.5, 0.8][: n_classes - 1])

    predict = baselines.classifier(name, **QUICK[name]).fit(X, label(X), seed=0)
    probabilities = predict(X_new)
    assert probabilities.shape == (300, n_classes)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-5)
    assert baselines.classification_scores(probabilities, label(X_new))["error_rate"] < 0.1


def test_an_unknown_name_lists_the_known():
    with pytest.raises(ValueError, match=r"no baseline 'svm'.*lightgbm"):
        baselines.regressor("svm")


def test_a_missing_package_is_named_with_its_extra(monkeypatch):
    def missing(module):
        raise ModuleNotFoundError(f"No module named {module!r}", name="catboost")

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(ModuleNotFoundError, match=r"'catboost' needs catboost.*extra `bench`"):
        baselines.classifier("catboost")
