"""Names that nobody knows are told with the one that was meant; what is public is where it is said."""

import inspect
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor

import bochner
from bochner import Constant, Deep, DeepGPClassifier, DeepGPRegressor, Exact, Linear


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Deep(n_layer=2), "Deep has no setting 'n_layer'. Did you mean `n_layers`?"),
        (lambda: DeepGPRegressor(n_layer=2), "Did you mean `Deep(n_layers=...)`?"),
        (lambda: DeepGPRegressor(n_layers=2), "which is one of a member: `Deep(n_layers=...)`"),
        (lambda: DeepGPClassifier(class_weigth="balanced"), "Did you mean `class_weight`?"),
        (lambda: DeepGPRegressor(class_weight="balanced"), "DeepGPRegressor has no setting"),
        (lambda: Exact(kernal="rbf"), "Did you mean `kernel`?"),
        (lambda: Linear(quite="other"), "Linear has no setting 'quite'. It has none."),
    ],
)
def test_a_constructor_names_what_was_meant(make, message):
    with pytest.raises(TypeError) as caught:
        make()
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({"members__n_layer": 2}, "Did you mean `members__n_layers`?"),
        ({"verbos": 1}, "Did you mean `verbose`?"),
        ({"max_step": 1}, "Did you mean `Deep(max_steps=...)`?"),
    ],
)
def test_set_params_names_what_was_meant(told, message):
    with pytest.raises(ValueError, match="has no setting") as caught:
        DeepGPRegressor(Deep()).set_params(**told)
    assert message in str(caught.value)


def test_constructors_keep_their_signatures():
    assert "members" in inspect.signature(DeepGPRegressor).parameters
    assert "n_layers" in inspect.signature(Deep).parameters
    model = DeepGPClassifier(Deep(n_layers=2), class_weight="balanced")
    assert clone(model).get_params()["members__n_layers"] == 2
    assert pickle.loads(pickle.dumps(model)).class_weight == "balanced"


def test_one_column_of_targets_is_predicted_as_scikit_learn_does():
    generator = np.random.default_rng(0)
    X = generator.normal(size=(12, 2))
    y = X[:, [0]] + 0.1 * generator.normal(size=(12, 1))
    ours = DeepGPRegressor(Linear(), random_state=0).fit(X, y)
    theirs = GaussianProcessRegressor().fit(X, y)
    for mine, other in zip(
        ours.predict(X, return_std=True), theirs.predict(X, return_std=True), strict=True
    ):
        assert mine.shape == other.shape == (12,)
    assert ours.score(X, y) > 0.8
    assert ours.predict_interval(X).shape == (12, 2)


def test_load_opens_its_own_kind(tmp_path):
    path = tmp_path / "model.bochner"
    DeepGPRegressor(Constant()).fit([[1.0], [2.0]], [1.0, 2.0]).save(path)
    assert isinstance(DeepGPRegressor.load(path), DeepGPRegressor)
    with pytest.raises(bochner.ModelFileError, match=r"open it by `DeepGPRegressor\.load`"):
        DeepGPClassifier.load(path)
    with pytest.raises(FileNotFoundError, match="no model file at"):
        DeepGPRegressor.load(tmp_path / "none")


def test_errors_are_at_the_top_level():
    assert {"ModelFileError", "TableError", "CheckpointError"} <= set(dir(bochner))
    assert issubclass(bochner.CheckpointError, ValueError)
    with pytest.raises(bochner.TableError, match="no such file"):
        DeepGPRegressor(Constant()).fit("nothing.csv", "y")
