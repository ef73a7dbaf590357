"""What the report collects, and that the page holds it safely."""

import builtins
import html.parser
import json
import math
import re

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from bochner import Deep, DeepGPClassifier, DeepGPRegressor, Linear
from bochner.report import render_page, rendering, report_data, report_page, write_report
from bochner.report.regression import N_CHOSEN
from tests.deep_alone import deep_regressor
from tests.estimators import problems
from tests.report.conftest import HOSTILE


@pytest.fixture(scope="module")
def numbers(regressor):
    return report_data(regressor, *problems.numbers(seed=1), columns=["a", "b", "c"], source="t")


@pytest.fixture(scope="module")
def classes(classifier):
    return report_data(classifier, *problems.classes(seed=1), source="t", target="color")


class Page(html.parser.HTMLParser):
    """Collects ids, references, elements and text; elements must be closed in order."""

    def __init__(self, page):
        super().__init__()
        self.ids, self.references, self.elements, self.open, self.text = [], [], [], [], ""
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.handle_startendtag(tag, attributes)
        if tag not in ("meta", "link"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.elements.append(tag)
        for name, value in attributes:
            if name == "id":
                self.ids.append(value)
            self.references += re.findall(r"url\(#([^)]+)\)", value or "")
            if name in ("href", "aria-labelledby") and not (value or "").startswith("data:"):
                self.references.append(value.removeprefix("#"))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, text):
        self.text += text


@pytest.fixture(scope="module")
def stacked(stack):
    return report_data(stack, *problems.numbers(seed=1), source="t")


@pytest.fixture(scope="module")
def stacked_classes(stack_of_classes):
    return report_data(stack_of_classes, *problems.classes(seed=1), source="t")


# Of the model, and an effect of each input; only deep models have a learning curve.
DRAWINGS = {"numbers": 5 + 3, "classes": 4 + 2, "stacked": 4 + 3, "stacked_classes": 3 + 2}
KINDS = list(DRAWINGS)


def test_rows_of_the_fit_are_known_again_and_the_title_has_no_folder():
    X, y = problems.numbers()
    model = DeepGPRegressor(Linear(), random_state=0).fit(X, y)
    for rows, share in ((slice(None), 1.0), (slice(0, 5), 1.0)):
        data = report_data(model, X[rows], y[rows], source="/home/me/secret/flats.csv")
        assert data["data"]["share_seen"] == share
    assert any(note["topic"] == "Rows of the fit" for note in data["notes"])
    page = render_page(data)
    assert "<title>Report: flats.csv</title>" in page
    assert "secret" not in page
    new = report_data(model, X + 0.001, y)
    assert new["data"]["share_seen"] == 0.0
    assert all(note["topic"] != "Rows of the fit" for note in new["notes"])


@pytest.mark.parametrize("task", KINDS)
def test_data_are_plain_json(task, request):
    data = request.getfixturevalue(task)
    assert json.loads(json.dumps(data, allow_nan=False)) == data


@pytest.mark.parametrize("task", KINDS)
def test_page_is_whole_names_no_host_and_runs_no_script(task, request):
    page = render_page(request.getfixturevalue(task))
    assert "://" not in page
    parsed = Page(page)
    assert len(parsed.ids) == len(set(parsed.ids))
    assert set(parsed.references) <= set(parsed.ids)
    assert parsed.elements.count("svg") == DRAWINGS[task]
    assert not {"script", "img", "iframe", "object"} & set(parsed.elements)


@pytest.mark.parametrize("task", KINDS)
def test_the_same_data_give_the_same_page(task, request):
    data = request.getfixturevalue(task)
    assert render_page(data) == render_page(data)


def test_metrics_are_those_of_the_estimator(regressor, numbers):
    found = {entry["name"]: entry["value"] for entry in numbers["metrics"]}
    X, y = problems.numbers(seed=1)
    beside = {"mae": np.mean(np.abs(y - regressor.predict(X))), "r_squared": regressor.score(X, y)}
    assert found == pytest.approx(regressor.evaluate(X, y) | beside)


def test_constant_prediction_of_numbers_is_their_mean_and_deviation(numbers):
    _, y = problems.numbers(seed=1)
    constant = {entry["name"]: entry["constant"] for entry in numbers["metrics"]}
    assert constant["rmse"] == pytest.approx(y.std())
    assert constant["mnll"] == pytest.approx(0.5 * np.log(2 * np.pi * y.var()) + 0.5)
    draws = np.random.default_rng(0).normal(y.mean(), y.std(), size=(2, 4000))
    crps = np.abs(draws[0] - y[:, None]).mean() - np.abs(draws[0] - draws[1]).mean() / 2
    assert constant["crps"] == pytest.approx(crps, rel=0.05)
    assert constant["coverage_90"] is None


def test_constant_prediction_of_classes_is_their_share(classes):
    _, y = problems.classes(seed=1)
    _, counts = np.unique(y, return_counts=True)
    shares = counts / len(y)
    constant = {entry["name"]: entry["constant"] for entry in classes["metrics"]}
    assert constant["error_rate"] == pytest.approx(1 - shares.max())
    assert constant["mnll"] == pytest.approx(-np.log(np.repeat(shares, counts)).mean())
    truth = np.eye(len(shares))[np.repeat(np.arange(len(shares)), counts)]
    assert constant["brier"] == pytest.approx(((shares - truth) ** 2).sum(axis=1).mean())


def test_the_page_of_a_stack_says_which_members_predict_and_how_each_did(stack, stacked):
    weights = [member["weight"] for member in stacked["members"]]
    assert weights == sorted(weights, reverse=True)
    assert sum(weights) == pytest.approx(1.0)
    assert {member["name"] for member in stacked["members"]} == {m["name"] for m in stack.members_}
    assert stacked["learning"] is None
    text = Page(render_page(stacked)).text
    predicting = [member for member in stacked["members"] if member["weight"] > 0]
    assert f"DeepGPRegressor with {len(predicting)} members predicts" in text
    for member in stacked["members"]:
        assert member["name"] in text
    assert f"{100 * weights[0]:.1f}%" in text
    assert "Learning curve" not in text
    notes = {note["topic"]: note for note in stacked["notes"]}
    assert "Convergence" not in notes
    assert notes["Left-out rows"]["verdict"] == "good"
    assert f"{stack.summary_['linear']:.4g} under a linear one" in notes["Left-out rows"]["text"]


def test_the_page_of_one_deep_model_without_others_has_no_table_of_members(numbers):
    text = Page(render_page(numbers)).text
    assert "DeepGPRegressor with 2 layers predicts" in text
    assert "trained for 100 steps" in text
    assert "Which members predict" not in text
    assert "Left-out rows" not in text


def test_a_deep_member_of_a_stack_shows_its_training():
    X, y = problems.numbers()
    deep = Deep(**{name: v for name, v in problems.SMALL.items() if name != "random_state"})
    model = DeepGPRegressor([("linear", Linear()), ("deep", deep)], random_state=0).fit(X, y)
    data = report_data(model, X, y)
    assert data["learning"]["n_steps"] == 100
    assert data["configuration"]["width"] == 2
    text = Page(render_page(data)).text
    assert "Configuration of the deep member" in text
    assert "Learning curve of the deep model" in text


def test_inputs_of_a_table_are_its_own_columns():
    pandas = pytest.importorskip("pandas")
    generator = np.random.default_rng(0)
    size, day = generator.normal(size=60), generator.integers(0, 900, size=60)
    color = generator.choice(["red", "<b>"], size=60)
    frame = pandas.DataFrame(
        {"size": size, "color": color, "sold": pandas.Timestamp("2020-01-01") + pandas.to_timedelta(day, "D")}
    )  # fmt: skip
    frame.loc[:5, "size"] = np.nan
    frame["price"] = 2 * size + (color == "red") + 0.1 * generator.normal(size=60)
    model = DeepGPRegressor(Linear(), random_state=0).fit(frame, "price")
    data = report_data(model, frame, "price")
    assert data["target"]["name"] == "price"
    found = {entry["name"]: entry for entry in data["inputs"]}
    assert list(found) == ["size", "color", "sold"]
    assert sum(entry["share"] for entry in found.values()) == pytest.approx(1.0)
    assert found["size"]["missing"] == pytest.approx(0.1)
    assert found["size"]["max"] == pytest.approx(np.nanmax(frame["size"]))
    assert found["color"]["median"] == frame["color"].mode()[0]
    assert found["sold"]["min"] == str(frame["sold"].min().date())
    row = data["worst"][0]
    assert row["inputs"][1:] == [color[row["row"]], str(frame["sold"][row["row"]].date())]
    page = render_page(data)
    assert "<b>" not in page
    assert "<b>" in Page(page).text


def test_worst_rows_have_the_lowest_log_density(regressor, numbers):
    X, y = problems.numbers(seed=1)
    log_prob = regressor.log_prob(X, y)
    worst = numbers["worst"]
    assert [row["row"] for row in worst] == np.argsort(log_prob)[:10].tolist()
    first = worst[0]
    assert first["inputs"] == pytest.approx(X[first["row"]].tolist())
    assert first["observed"] == y[first["row"]]
    interval = regressor.predict_interval(X, coverage=0.9)[first["row"]]
    assert [first["low"], first["high"]] == pytest.approx(interval.tolist())


def test_kinds_of_members_stand_beside_the_whole(stack, stacked):
    X, y = problems.numbers(seed=1)
    *kinds, whole = stacked["kinds"]
    metrics = {entry["name"]: entry["value"] for entry in stacked["metrics"]}
    assert [whole["error"], whole["mnll"]] == pytest.approx([metrics["rmse"], metrics["mnll"]])
    assert sum(kind["weight"] for kind in kinds) == pytest.approx(1.0)
    linear = next(kind for kind in kinds if kind["name"] == "linear")
    alone = DeepGPRegressor(Linear(), random_state=0).fit(*problems.numbers())
    assert linear["error"] == pytest.approx(alone.evaluate(X, y)["rmse"], rel=0.1)
    assert "all together" in Page(render_page(stacked)).text


def test_effects_are_those_of_the_explanation(stack, stacked):
    explanation = stack.explain()
    assert [effect["name"] for effect in stacked["effects"]] == list(explanation.columns)
    first = stacked["effects"][0]
    effect = explanation.effect(first["name"], 24)
    for part in ("values", "mean", "low", "high"):
        assert first[part] == pytest.approx(getattr(effect, part).tolist())


def test_the_area_under_the_curve_is_scikit_learns(classifier, classes):
    X, y = problems.classes(seed=1)
    found = {entry["name"]: entry["value"] for entry in classes["metrics"]}
    expected = roc_auc_score(y, classifier.predict_proba(X), multi_class="ovr", average="macro")
    assert found["auc"] == pytest.approx(expected)


def test_confusions_count_every_row(classifier, classes):
    X, y = problems.classes(seed=1)
    confusions = np.array(classes["confusions"])
    assert confusions.sum(axis=1).tolist() == classes["target"]["counts"]
    assert np.trace(confusions) == np.sum(classifier.predict(X) == y)


def test_names_from_data_are_harmless(regressor, classifier):
    X, y = problems.numbers(n=30)
    columns = [HOSTILE, "$\\frac{", 'a" onload="x\n\x00']
    page = report_page(regressor, X, y, columns=columns, source=HOSTILE, target=HOSTILE)
    assert "<script" not in page
    parsed = Page(page)
    assert HOSTILE in parsed.text
    assert "$\\frac{" in parsed.text
    labels = np.array(["blue", HOSTILE, "<b>"])
    X, y = problems.classes()
    renamed = dict(zip(np.unique(y), labels, strict=True))
    y = np.array([renamed[label] for label in y])
    page = report_page(DeepGPClassifier(Linear(), random_state=0).fit(X, y), X, y)
    assert "<script" not in page
    assert "<b>" not in page
    assert HOSTILE in Page(page).text


def test_names_come_from_the_frame_that_was_fitted():
    pandas = pytest.importorskip("pandas")
    X, y = problems.numbers()
    frame = pandas.DataFrame(X, columns=["width", "depth", "height"])
    model = DeepGPRegressor(Linear(), random_state=0).fit(frame, y)
    for given in (frame, X):
        data = report_data(model, given, pandas.Series(y, name="price"))
        assert [entry["name"] for entry in data["inputs"]] == ["width", "depth", "height"]
        assert (data["target"]["name"], data["warnings"]) == ("price", [])


def test_rows_far_outside_become_a_note(regressor):
    X, y = problems.numbers(n=20)
    X[0, 0] = 1e6
    data = report_data(regressor, X, y)
    assert len(data["warnings"]) == 1
    assert data["notes"][-1]["topic"] == "Warning"
    assert "clipped" in data["notes"][-1]["text"]


def test_plots_stay_small_for_many_rows(regressor):
    X, y = problems.numbers(n=5000, seed=2)
    data = report_data(regressor, X, y)
    assert data["data"]["n_rows"] == 5000
    assert len(data["predictions"]["row"]) == N_CHOSEN
    page = render_page(data)
    assert "2,000 of 5,000 rows" in page
    assert len(page) < 700_000


def test_counts_have_a_page():
    X, y = problems.counts()
    model = deep_regressor(**problems.SMALL, likelihood="poisson").fit(X, y)
    data = report_data(model, X, y)
    assert data["target"]["counts"]
    constant = next(e["constant"] for e in data["metrics"] if e["name"] == "mnll")
    log_factorials = np.array([math.lgamma(count + 1) for count in y])
    assert constant == pytest.approx(np.mean(y.mean() - y * np.log(y.mean()) + log_factorials))
    assert "Predicted against observed" in render_page(data)


def test_equal_targets_and_a_single_row_have_a_page(regressor):
    X, y = problems.numbers(n=5)
    assert "All targets are equal" in report_page(regressor, X, np.full(5, 3.0))
    assert "1 row:" in report_page(regressor, X[:1], y[:1])


def test_a_column_of_targets_is_one_target_and_two_are_refused(regressor):
    X, y = problems.numbers()
    model = DeepGPRegressor(Linear(), random_state=0).fit(X, y[:, None])
    assert report_data(model, X, y[:, None])["task"] == "regression"
    with pytest.raises(ValueError, match="one target"):
        report_data(regressor, X, np.stack([y, y], axis=1))


def test_wrong_number_of_names_is_refused(regressor):
    with pytest.raises(ValueError, match="must name the 3 columns of X; got 2"):
        report_data(regressor, *problems.numbers(), columns=["a", "b"])


def test_many_classes_show_their_most_frequent_confusions(classes):
    n = 30
    confusions = np.diag(np.full(n, 5))
    confusions[3, 4] = 2
    many = classes | {"confusions": confusions.tolist()}
    many["target"] = {"name": "code", "classes": list(range(n)), "counts": [5] * n}
    text = Page(render_page(many)).text
    assert "most frequent confusions among 30 classes" in text
    assert "28.6%" in text


@pytest.mark.parametrize("package", ["matplotlib", "jinja2"])
def test_a_missing_package_is_named_with_its_remedy(numbers, monkeypatch, package):
    original = builtins.__import__

    def without_package(name, *args, **kwargs):
        if name.startswith(package):
            raise ImportError(name)
        return original(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_package)
    rendering._environment.cache_clear()
    with pytest.raises(ImportError, match="pip install"):
        render_page(numbers)


def test_writing_replaces_the_page_and_leaves_nothing_else(tmp_path):
    path = tmp_path / "new" / "report.html"
    write_report(path, "old")
    write_report(path, "new ✓")
    assert path.read_text(encoding="utf-8") == "new ✓"
    assert [entry.name for entry in path.parent.iterdir()] == ["report.html"]


def test_a_failed_writing_keeps_the_old_page(tmp_path):
    path = tmp_path / "report.html"
    write_report(path, "old")
    with pytest.raises(UnicodeEncodeError):
        write_report(path, "\ud800")
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["report.html"]


def test_coverage_of_all_rows_is_the_calibration_curve_at_ninety_percent(numbers):
    calibration = numbers["calibration"]
    found = calibration["found"][calibration["stated"].index(0.9)]
    coverage = next(e["value"] for e in numbers["metrics"] if e["name"] == "coverage_90")
    assert found == pytest.approx(coverage)
