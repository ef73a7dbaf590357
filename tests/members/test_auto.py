"""Which members a fit has: by the size of the table where nobody names any, else as they are named."""

import numpy as np
import pytest

from bochner import Constant, Deep, DeepGPClassifier, DeepGPRegressor, Exact, Landmarks, Linear
from bochner.distributed import Synchronous
from bochner.fitting.resolving import Asked
from bochner.fitting.session import Session
from bochner.members.auto import auto_members
from bochner.members.fit import chosen_members
from tests.members.tables import curve, training

SMALL = ["constant", "linear", "exact"]


def names(X, y=None, **options):
    y = np.resize([0.0, 1.0, 3.0], len(X)) if y is None else y
    return [name for name, _ in auto_members(training(X, y, **options))]


def numbers(n, d=2):
    return np.random.default_rng(0).normal(size=(n, d))


@pytest.mark.parametrize(
    ("n", "expected"),
    [
        (2, SMALL),
        (1_999, SMALL),
        (2_000, [*SMALL, "deep"]),
        (2_001, ["constant", "linear", "landmarks", "deep"]),
        (300_000, ["constant", "linear", "landmarks", "deep"]),
        (300_001, ["constant", "linear", "deep"]),
    ],
)
@pytest.mark.parametrize("classes", [False, True])
def test_the_size_of_the_table_decides(n, expected, classes):
    y = np.arange(n) % 2
    assert names(numbers(n, 1), y, classes=classes) == expected


def test_columns_too_many_for_a_lengthscale_each_are_for_a_deep_model():
    assert names(numbers(40, 300)) == SMALL
    assert names(numbers(40, 301)) == ["constant", "linear", "deep"]


def test_pixels_are_for_a_deep_model_where_they_are_to_be_told_apart():
    images = np.random.default_rng(0).integers(0, 256, size=(60, 64)).astype(float)
    assert names(images, np.arange(60) % 3, classes=True) == ["constant", "linear", "deep"]
    assert names(images) == SMALL


def asked(**settings):
    session = Session(distributed=settings.pop("distributed", None))
    deep = Deep(preset=settings.pop("preset", "auto"))
    return Asked(deep, settings.pop("likelihood", None), 0, session, **settings)


@pytest.mark.parametrize(
    "settings",
    [
        {"preset": "paper"},
        {"goes_on": True},
        {"together": True},
        {"distributed": Synchronous()},
        {"likelihood": "student-t"},
        {"likelihood": "poisson"},
    ],
)
def test_what_only_a_deep_model_can_do_is_done_by_one_alone(settings):
    assert isinstance(chosen_members("auto", asked(**settings)), Deep)


@pytest.mark.parametrize("likelihood", [None, "gaussian", "heteroscedastic", "softmax"])
def test_other_laws_leave_the_choice_to_the_table(likelihood):
    assert chosen_members("auto", asked(likelihood=likelihood)) is None


def test_one_member_is_a_list_of_one_and_a_deep_model_is_alone():
    member = Landmarks()
    assert chosen_members(member, asked()) == (("landmarks", member),)
    deep = Deep(n_layers=3)
    assert chosen_members(deep, asked()).get_params() == {**deep.get_params(), "preset": "auto"}
    ((name, inside),) = chosen_members([("mine", deep)], asked())
    assert (name, inside.n_layers) == ("mine", 3)


@pytest.mark.parametrize("members", [lambda deep: deep, lambda deep: [("mine", deep)]])
def test_a_deep_model_without_a_preset_has_that_of_the_estimator(members):
    for own, expected in ((None, "paper"), ("paper-mnist", "paper-mnist")):
        found = chosen_members(members(Deep(preset=own)), asked(preset="paper"))
        deep = found if isinstance(found, Deep) else found[0][1]
        assert deep.preset == expected


@pytest.mark.parametrize(
    "members",
    [
        "deep",
        None,
        3,
        Deep,
        [],
        (),
        ["deep"],
        [Deep()],
        ("deep", Deep()),
        [("deep", Deep(), 1)],
        [(1, Deep())],
        [("deep", "auto")],
        [("deep", Deep), ("exact", Exact())],
        {"deep": Deep()},
        np.zeros(2),
    ],
)
@pytest.mark.parametrize("kind", [DeepGPRegressor, DeepGPClassifier])
def test_what_is_no_member_is_refused(members, kind):
    X = numbers(20)
    kinds = "Constant, Linear, Exact, Landmarks, Deep"
    with pytest.raises(ValueError, match=f'`members` must be "auto", one of {kinds}, or a list'):
        kind(members).fit(X, np.arange(20) % 2)


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ([("a", Linear()), ("a", Exact())], r"names of `members` must differ; got \['a', 'a'\]"),
        ([("device", Linear())], "must not be that of a parameter.*'device'"),
        ([("a__b", Linear())], "nor hold two underscores; got 'a__b'"),
    ],
)
def test_names_that_cannot_be_told_apart_are_refused(members, message):
    with pytest.raises(ValueError, match=message):
        DeepGPRegressor(members).fit(*curve(20))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"likelihood": "student-t"}, "likelihood='student-t' is for a deep model alone"),
        ({"likelihood": "softmax"}, "`likelihood` must be one of 'gaussian'"),
        ({"distributed": Synchronous()}, "`distributed` is for a deep model alone"),
    ],
)
@pytest.mark.parametrize("members", [Constant(), [("linear", Linear()), ("deep", Deep())]])
def test_mixtures_refuse_what_only_a_deep_model_can_do(members, settings, message):
    with pytest.raises(ValueError, match=message):
        DeepGPRegressor(members, **settings).fit(*curve(20))


def test_further_rows_are_for_every_kind_of_member():
    X, y = curve(30)
    first = DeepGPRegressor([("linear", Linear())], random_state=0).partial_fit(X[:20], y[:20])
    assert [one["name"] for one in first.members_] == ["linear, as it is", "linear, Yeo-Johnson"]
    first.partial_fit(X[20:], y[20:])
    assert first.total_weight_ == 30
    at_once = DeepGPRegressor([("linear", Linear())], random_state=0).fit(X[:20], y[:20])
    np.testing.assert_array_equal(first.predict(X), at_once.update(X[20:], y[20:]).predict(X))
