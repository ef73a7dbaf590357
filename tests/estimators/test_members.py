"""The parameter `members`: what scikit-learn's ways to read, set and copy parameters find inside."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from bochner import Constant, Deep, DeepGPClassifier, DeepGPRegressor, Exact, Landmarks, Linear
from tests.deep_alone import parameters_of
from tests.members.tables import SIMPLE, TINY, curve


def named():
    return DeepGPRegressor([("deep", Deep(n_layers=3)), ("exact", Exact())])


@pytest.mark.parametrize("member", [Deep(n_layers=3), Exact(), Landmarks(), Linear(), Constant()])
def test_settings_of_one_member_are_among_the_parameters(member):
    found = DeepGPRegressor(member).get_params()
    for name, value in member.get_params().items():
        assert found[f"members__{name}"] == value
    assert "members__n_layers" not in DeepGPRegressor(member).get_params(deep=False)


def test_settings_of_named_members_are_among_the_parameters():
    model = named()
    found = model.get_params()
    assert found["deep"] is model.members[0][1]
    assert (found["deep__n_layers"], found["exact__varying_noise"]) == (3, True)
    assert found["members"] is model.members
    assert not {"deep", "deep__n_layers"} & model.get_params(deep=False).keys()


def test_settings_of_members_can_be_set():
    one = DeepGPRegressor(Deep()).set_params(members__n_layers=2, max_seconds=3.0)
    assert (one.members.n_layers, one.max_seconds) == (2, 3.0)
    several = named().set_params(deep__n_layers=2, deep__kernel="rbf", exact__varying_noise=False)
    deep, exact = (member for _, member in several.members)
    assert (deep.n_layers, deep.kernel, exact.varying_noise) == (2, "rbf", False)
    with pytest.raises(ValueError, match="Did you mean `members__n_layers`"):
        DeepGPRegressor(Deep()).set_params(members__n_layer=2)
    with pytest.raises(ValueError, match="has no setting 'n_layers', which is one of a member"):
        DeepGPRegressor(Deep()).set_params(n_layers=2)


def test_a_member_can_be_put_in_the_place_of_another():
    several = named().set_params(exact=Landmarks(n_landmarks=5), deep__n_layers=4)
    assert [name for name, _ in several.members] == ["deep", "exact"]
    assert several.members[1][1].n_landmarks == 5
    assert several.members[0][1].n_layers == 4
    assert not hasattr(several, "exact")
    several.set_params(members=[("other", Deep())], other__n_layers=5)
    assert several.get_params()["other__n_layers"] == 5


def test_pairs_may_be_tuples():
    model = DeepGPRegressor((("deep", Deep()), ("exact", Exact())))
    model.set_params(deep=Linear())
    assert isinstance(model.members, tuple)
    assert isinstance(model.members[0][1], Linear)


@pytest.mark.parametrize("members", ["nonsense", None, [1, 2], [("deep", 3)], Deep])
def test_parameters_that_a_fit_will_refuse_are_given_and_copied_all_the_same(members):
    model = DeepGPRegressor(members)
    assert "members" in model.get_params()
    assert type(clone(model)) is DeepGPRegressor
    assert "DeepGPRegressor" in repr(model)


@pytest.mark.parametrize("kind", [DeepGPRegressor, DeepGPClassifier])
@pytest.mark.parametrize(
    "members", ["auto", Deep(n_layers=3), [("deep", Deep(width=4)), ("exact", Exact())]]
)
def test_a_copy_has_members_of_its_own(kind, members):
    model = kind(members, max_seconds=3.0)
    copy = clone(model)
    assert parameters_of(copy) == parameters_of(model)
    if not isinstance(members, str):
        name = "members" if isinstance(members, Deep) else "deep"
        copy.set_params(**{f"{name}__n_layers": 9})
        assert model.get_params()[f"{name}__n_layers"] != 9


def test_a_search_goes_over_settings_of_members():
    X, y = curve(40)
    model = DeepGPRegressor([*SIMPLE, ("deep", Deep(**TINY))], random_state=0)
    grid = {"deep": [Linear(), "drop"], "linear": [Constant(), Linear()]}
    search = GridSearchCV(model, {"linear": grid["linear"]}, cv=2, refit=False)
    search.fit(X, y)
    assert search.cv_results_["mean_test_score"].shape == (2,)
    search = GridSearchCV(model, {"deep__max_steps": [1, 2]}, cv=2, refit=False).fit(X, y)
    assert np.all(np.isfinite(search.cv_results_["mean_test_score"]))
