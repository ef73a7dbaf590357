"""skpro's own checks, and its distributions beside our predictions."""

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad

from bochner import DeepGPRegressor, Exact, Linear

pytest.importorskip("skpro")
from skpro.utils import check_estimator

from bochner.estimators.integrations.skpro import MixtureRegressor, PredictedDistribution


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=40), "b": rng.choice(["u", "v"], 40)})
    y = pd.DataFrame({"y": np.sin(X["a"]) + (X["b"] == "u") + 0.1 * rng.normal(size=40)})
    return X.set_index(np.arange(100, 140)), y.set_index(np.arange(100, 140))


@pytest.fixture(scope="module")
def model(frame):
    members = [("line", Linear()), ("curve", Exact(kernel="rbf"))]
    return MixtureRegressor(DeepGPRegressor(members, random_state=0)).fit(*frame)


@pytest.mark.parametrize("kind", [MixtureRegressor, PredictedDistribution])
def test_skpro_accepts_it(kind):
    found = check_estimator(kind, verbose=False)
    failed = {name: error for name, error in found.items() if error != "PASSED"}
    assert found
    assert not failed


def test_the_distribution_is_that_of_the_model(frame, model):
    X, y = frame
    found, ours = model.predict_proba(X), model.regressor_.predict_dist(X)
    values = y["y"].to_numpy()
    assert found.mean().index.equals(X.index)
    for theirs, expected in (
        (found.mean(), ours.mean),
        (found.var(), ours.variance),
        (found.log_pdf(y), ours.log_prob(values)),
        (found.pdf(y), np.exp(ours.log_prob(values))),
        (found.cdf(y), ours.cdf(values)),
        (found.quantile(0.2), ours.ppf(0.2)),
        (found.ppf(found.cdf(y)), values),
        (model.predict(X), model.regressor_.predict(X)),
    ):
        np.testing.assert_allclose(theirs.to_numpy()[:, 0], expected, rtol=1e-6, atol=1e-9)


def test_rows_are_picked_by_their_index(frame, model):
    X, _ = frame
    whole = model.predict_proba(X)
    some = whole.loc[[105, 101]]
    np.testing.assert_allclose(some.mean(), whole.mean().loc[[105, 101]])
    one = whole.iat[3, 0]
    assert one.ndim == 0
    assert one.mean() == pytest.approx(whole.mean().iloc[3, 0])
    assert quad(one.pdf, -20, 20, points=[one.mean()], limit=200)[0] == pytest.approx(1, abs=1e-5)


def test_samples_follow_the_law(frame, model):
    X, _ = frame
    found, n = model.predict_proba(X.iloc[:2]), 4000
    np.random.seed(0)  # noqa: NPY002  (what skpro draws with)
    drawn = found.sample(n)
    z = (drawn.groupby(level=1).mean() - found.mean()) / np.sqrt(found.var() / n)
    assert np.all(np.abs(z) < 4)


def test_whole_numbers_have_masses():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=60)})
    y = pd.DataFrame({"y": rng.poisson(np.exp(1 + 0.3 * X["a"])).astype(float)})
    found = MixtureRegressor(DeepGPRegressor(Linear(), random_state=0)).fit(X, y).predict_proba(X)
    one = found.iloc[[0]]
    masses = [
        one.pmf(pd.DataFrame({"y": [float(k)]}, index=[0])).iloc[0, 0] for k in range(-30, 60)
    ]
    assert sum(masses) == pytest.approx(1, abs=1e-6)
