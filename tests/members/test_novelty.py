"""Novelty: the share of local functions that the training rows leave open."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bochner import DeepGPClassifier, DeepGPRegressor, Exact, Landmarks, Linear, load
from bochner.exact.columns import Columns
from bochner.exact.kernels import RBF, Constant, Laplace
from bochner.exact.kernels import Linear as Plane
from bochner.exact.landmarks import LandmarkProcess, Seen
from bochner.exact.landmarks import Landmarks as Seers
from bochner.exact.novelty import open_share
from bochner.exact.process import Process
from tests.members.tables import curve, sides

FOLDER = Path(__file__).parents[1] / "data_files"
V = np.log([1.5, 0.5, 0.7, 0.8, 0.6, 0.4, 2.0, 1.0, 3.0])


@pytest.fixture(scope="module")
def rows():
    X = np.random.default_rng(0).normal(size=(40, 2))
    columns = Columns.learn(list(X.T))
    new = np.vstack([X[:5] + 0.1, [[3.0, 3.0], [100.0, 0.0]]])
    return columns(list(X.T)), columns(list(new.T))


def wanted(known, new, M):
    """The formula, with all matrices written out; of the kernels below the first two are local."""
    K, diagonal = np.zeros((len(known), len(new))), 0.0
    for kernel, v in ((RBF(), V[:3]), (Laplace(), V[3:6])):
        K += kernel.covariance(v, known, new)
        diagonal = diagonal + kernel.diagonal(v, new)
    return 1 - np.einsum("ij,ij->j", K, np.linalg.solve(M, K)) / diagonal


def test_it_is_what_is_left_of_local_terms(rows):
    known, new = rows
    kernel, noise = RBF() + Laplace() + Plane() + Constant(), np.full(40, 0.3)
    process = Process.condition(kernel, V, known, np.ones(40), noise)
    M = kernel.covariance(V, known, known) + np.diag(noise)
    found: Any = open_share(process, new)
    np.testing.assert_allclose(found, wanted(known, new, M), rtol=1e-6)
    assert np.all(found[:5] < found[5])
    assert found[6] > 0.98
    landmarks = Seers.of(kernel, V, known)
    seen = LandmarkProcess.condition(Seen.of(landmarks, known), np.ones(40), noise)
    by_landmarks: Any = open_share(seen, new)
    np.testing.assert_allclose(by_landmarks, found, atol=1e-4)


def test_planes_and_constants_know_nothing_of_it(rows):
    known, new = rows
    process = Process.condition(Plane() + Constant(), V[6:], known, np.ones(40), np.ones(40))
    assert open_share(process, new) is None
    X, y = curve(20)
    with pytest.raises(ValueError, match="this fit has none with weight"):
        DeepGPRegressor(Linear(), random_state=0).fit(X, y).novelty(X)


@pytest.mark.parametrize("member", [Exact(), Landmarks(n_landmarks=20, n_learned_from=60)])
@pytest.mark.parametrize("kind", [DeepGPRegressor, DeepGPClassifier])
def test_it_grows_from_the_training_rows_to_one(kind, member):
    X, y = curve() if kind is DeepGPRegressor else sides()
    model = kind(member, random_state=0).fit(X, y)
    new = X[:1] + np.array([0.0, 1.0, 4.0, 10.0, 1000.0])[:, None] * [1.0, 100.0]
    found = model.novelty(new)
    assert np.all(np.diff(found) >= 0)
    assert found[0] < 0.6
    assert found[-1] > 0.95
    assert np.all(model.novelty(X) < 0.9)


@pytest.mark.filterwarnings("ignore:.*far outside")
def test_a_deep_model_judges_by_its_first_layer():
    for name in ("regressor-2", "classifier-2"):
        model = load(FOLDER / f"{name}.bochner")
        known = model.fitted_.background
        names = getattr(model, "feature_names_in_", range(known.shape[1]))
        rows = pd.DataFrame(np.vstack([known, known[:1] + 1e5]), columns=names)
        found = model.novelty(rows)
        assert np.all(found[:-1] < 0.1)
        assert found[-1] > 0.99


def test_deviations_grow_towards_those_of_the_prior():
    X, y = curve()
    model = DeepGPRegressor(Exact(kernel="rbf + constant", varying_noise=False)).fit(X, y)
    far = np.array([[1.0, 100.0]]) * np.array([1.0, 3.0, 30.0, 300.0])[:, None]
    std = model.predict(far, return_std=True)[1]
    assert std[0] < 0.3 * std[-1]
    assert std[-1] > 0.5 * np.std(y)
    assert std[-1] == pytest.approx(std[-2], rel=1e-3)
