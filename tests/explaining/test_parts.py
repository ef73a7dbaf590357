"""Terms of sums of covariances: their means add up to the posterior mean, and their shares to one."""

import numpy as np
import pytest

from bochner import DeepGPClassifier, DeepGPRegressor, Exact, Landmarks
from bochner.explaining import table_columns
from bochner.explaining.kernel_parts import _means_of_terms, shares_of_terms


@pytest.fixture(scope="module")
def half_linear():
    """A plane along one column and waves along the other, each with half of the variance."""
    X = np.random.default_rng(0).uniform(-1, 1, size=(150, 2))
    y = X[:, 0] * np.sqrt(3) + np.sin(6 * X[:, 1]) * np.sqrt(2)
    return X, y + 0.02 * np.random.default_rng(1).normal(size=150)


@pytest.fixture(scope="module", params=[Exact, Landmarks])
def fitted(request, half_linear):
    settings = {"n_landmarks": 100} if request.param is Landmarks else {}
    kind = request.param(varying_noise=False, **settings)
    return DeepGPRegressor(kind, random_state=0).fit(*half_linear)


def test_means_of_terms_add_up_to_the_posterior_mean(fitted, half_linear):
    for part in fitted.fitted_.predictor.parts:
        rows = part.columns(half_linear[0])
        terms = _means_of_terms(part.part.process, rows, str)
        assert terms.keys() >= {"rbf", "linear", ""}
        np.testing.assert_allclose(
            sum(terms.values()), part.part.process.predict(rows)[0], atol=1e-6
        )


def test_shares_of_terms_add_up_to_one_and_find_the_plane(fitted, half_linear):
    columns = table_columns(fitted.fitted_)
    for part in fitted.fitted_.predictor.parts:
        shares = shares_of_terms(part, half_linear[0], columns)
        assert sum(shares.values()) == pytest.approx(1)
        assert shares["linear"] == pytest.approx(0.5, abs=0.15)
        assert "constant" not in shares


def test_parts_of_the_whole_and_of_each_member_add_up_to_one(explanation, of_classes):
    for found in (explanation, of_classes):
        assert sum(found.parts.values()) == pytest.approx(1, abs=1e-6)
        assert found.parts.keys() <= {"laplace", "rbf", "linear"}
        assert list(found.parts.values()) == sorted(found.parts.values(), reverse=True)
        for name, member in found.members.items():
            if name != "constant":
                assert sum(member.parts.values()) == pytest.approx(1)
        if "linear" in found.members:
            assert found.members["linear"].parts == {"linear": pytest.approx(1)}


def test_parts_of_a_chosen_kernel_are_named_as_it_was_written():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame({"time": rng.uniform(0, 3, 80), "dep day": rng.normal(size=80)})
    frame["color"] = rng.choice(["red", "blue"], 80)
    frame["y"] = np.sin(3 * frame["time"]) + (frame["color"] == "red") * frame["dep day"]
    text = "rbf(time) + category(color) * linear('dep day')"
    model = DeepGPRegressor(Exact(kernel=text, varying_noise=False), random_state=0).fit(frame, "y")
    explanation = model.explain()
    assert explanation.parts.keys() == {"rbf(time)", "category(color) * linear('dep day')"}
    assert min(explanation.parts.values()) > 0.2
    assert sum(explanation.parts.values()) == pytest.approx(1)


def test_classes_on_landmarks_have_parts():
    X = np.random.default_rng(0).normal(size=(120, 2))
    y = (X[:, 0] > 0).astype(int)
    model = DeepGPClassifier(Landmarks(n_landmarks=50), random_state=0).fit(X, y)
    explanation = model.explain()
    assert sum(explanation.parts.values()) == pytest.approx(1, abs=1e-6)
    assert explanation.columns["column 0"] > 0.9
