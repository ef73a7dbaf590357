"""Each note's rule at both sides of its threshold."""

import math

import numpy as np
import pytest

from bochner.report import fit_notes, notes
from bochner.report.regression import constant_metrics


@pytest.mark.parametrize(
    ("coverage", "n_rows", "verdict", "words"),
    [
        (0.90, 1000, "good", "what they promise"),
        (0.80, 1000, "attention", "too narrow"),
        (0.98, 1000, "attention", "wider than needed"),
        (0.80, 25, "good", "what they promise"),  # two standard errors of 25 rows are 12 points
        (0.885, 1_000_000, "good", "what they promise"),  # certain, but too small to matter
        (0.87, 1_000_000, "attention", "too narrow"),
    ],
)
def test_coverage_is_judged_by_the_error_of_its_rows(coverage, n_rows, verdict, words):
    note = notes.interval_calibration(coverage, n_rows)
    assert note.verdict == verdict
    assert words in note.text


def test_intervals_of_counts_may_hold_more_than_they_state_but_not_less():
    assert notes.interval_calibration(0.97, 1000, counts=True).verdict == "good"
    assert notes.interval_calibration(0.80, 1000, counts=True).verdict == "attention"


def test_inner_intervals_are_mentioned_only_when_they_are_off():
    assert notes.inner_calibration(0.5, 0.51, 1000) is None
    assert "too cautious" in notes.inner_calibration(0.5, 0.6, 1000).text
    assert "too sure" in notes.inner_calibration(0.5, 0.4, 1000).text


def test_calibrated_classes_are_found_calibrated_whatever_the_number_of_rows():
    generator = np.random.default_rng(0)
    confidence = np.linspace(0.35, 0.95, 7)
    for n in (5, 50, 5000):
        accuracy = generator.binomial(n, confidence) / n
        assert notes.class_calibration(confidence, accuracy, [n] * 7).verdict == "good"


def test_classes_are_told_to_be_too_sure_or_not_sure_enough():
    too_sure = notes.class_calibration([0.9, 0.0], [0.7, 0.0], [500, 0])
    assert (too_sure.verdict, "surer than it should be" in too_sure.text) == ("attention", True)
    modest = notes.class_calibration([0.7], [0.9], [500])
    assert (modest.verdict, "less sure than it could be" in modest.text) == ("attention", True)


def curve(slope_at_the_end, n=100, noise=0.0):
    """A loss that falls steeply at first, and by `slope_at_the_end` from half to half of the last fifth."""
    place = np.arange(n) / n
    values = 5 * np.exp(-20 * place) - 10 * slope_at_the_end * place
    return (values + noise * np.random.default_rng(0).normal(size=n)).tolist()


@pytest.mark.parametrize(
    ("bound", "held_out", "verdict", "words"),
    [
        (curve(0.0), [], "good", "had settled"),
        (curve(0.9 * fit_notes.SETTLED), [], "good", "had settled"),
        (curve(1.1 * fit_notes.SETTLED), [], "attention", "still rose"),
        (curve(2 * fit_notes.SETTLED, noise=1.0), [], "good", "had settled"),  # lost in noise
        (curve(-0.5), [], "attention", "learning_rate"),
        (curve(0.5), curve(0.0, n=20), "good", "held-out rows"),  # held-out rows decide
        (curve(0.0), curve(0.5, n=20), "attention", "held-out rows still rose"),
        (curve(0.0), curve(-0.5, n=20), "info", "overfitting"),
        (curve(0.5, n=9), [], "info", "too few"),
        ([], [], "info", "too few"),
    ],
)
def test_convergence_is_judged_on_the_last_fifth(bound, held_out, verdict, words):
    note = fit_notes.convergence(bound, held_out)
    assert note.verdict == verdict
    assert words in note.text


@pytest.mark.parametrize(
    ("held_out", "useful"), [([1.0, 0.5, 0.6], True), ([1.0, 0.5, 0.5], False), ([], False)]
)
def test_longer_training_is_never_advised_where_the_model_overfits(held_out, useful):
    note = fit_notes.convergence(curve(0.5), held_out, useful=useful)
    assert note.verdict == "info"
    assert "is likely to give a better model" not in note.text
    assert "or train longer" not in fit_notes.convergence(curve(-0.5), []).text


def test_rows_of_the_fit_are_told():
    assert fit_notes.rows_of_the_fit(None) is fit_notes.rows_of_the_fit(0.04) is None
    some = fit_notes.rows_of_the_fit(0.4)
    assert (some.verdict, some.text.startswith("About 40% of these rows are")) == (
        "attention",
        True,
    )


def test_few_rows_are_mentioned():
    assert "99 rows" in notes.sample_size(notes.FEW_ROWS - 1).text
    assert notes.sample_size(notes.FEW_ROWS) is None


def test_important_inputs_are_named_in_order_and_long_lists_cut():
    names = [f"x{i}" for i in range(7)]
    text = notes.important_inputs(names, [0.3, 0.5, 0.001, 0.002, 0.003, 0.004, 0.19]).text
    assert "most with “x1” (50%) and “x0” (30%)." in text
    assert "hardly vary with “x2”, “x3”, “x4” and 1 more." in text


def test_equal_shares_are_not_ranked():
    assert "similar degree" in notes.important_inputs(["a", "b"], [0.52, 0.48]).text
    assert "do not vary" in notes.important_inputs(["a", "b"], [0.0, 0.0]).text


@pytest.mark.parametrize(
    ("own", "verdict", "words"),
    [(-1.0, "good", ""), (-1.49, "info", "does as well"), (-1.6, "attention", "Do not rely")],
)
def test_left_out_rows_compare_with_the_best_simple_model(own, verdict, words):
    found = {"log_likelihood": own, "constant": -2.0, "linear": -1.5, "n_rows": 1234.0}
    note = fit_notes.left_out_rows(found)
    assert note.verdict == verdict
    assert words in note.text
    assert "On 1,234 rows" in note.text


def test_how_rows_were_left_out_is_told():
    found = {"log_likelihood": -1.0, "constant": -2.0, "n_rows": 12.0}
    text = fit_notes.left_out_rows(found, "later rows of 'day' left out").text
    assert "left out of the fit (later rows of 'day' left out), the mean" in text


def test_nothing_is_said_of_left_out_rows_where_there_are_none():
    assert fit_notes.left_out_rows({}) is None


@pytest.mark.parametrize(
    ("share", "words"),
    [(0.19, "further rows will not"), (0.3, "somewhat surer"), (0.5, "would help most")],
)
def test_the_kind_of_uncertainty_decides_the_advice(share, words):
    assert words in notes.kinds_of_uncertainty(share).text


def test_a_model_must_beat_the_constant_prediction():
    assert notes.gain_over_constant(2.0, 2.01, 1.0, 1.0, classes=False).verdict == "attention"
    good = notes.gain_over_constant(1.0, 1.0 + math.log(3), 0.5, 1.0, classes=False)
    assert (good.verdict, "75%" in good.text, "3 times" in good.text) == ("good", True, True)
    classes = notes.gain_over_constant(0.1, 2.0, 0.02, 0.9, classes=True)
    assert ("2.0%" in classes.text, "90.0%" in classes.text) == (True, True)
    assert notes.gain_over_constant(1.0, None, 0.0, 0.0, classes=False).verdict == "info"


def test_a_small_gain_is_not_told_as_one_time():
    text = notes.gain_over_constant(1.0, 1.03, 0.98, 1.0, classes=False).text
    assert "1.03 times as likely" in text
    assert "1 times" not in text


def test_a_constant_target_is_told_from_one_that_hardly_varies():
    # The mean of the first is rounded, so its deviation is not quite zero.
    assert constant_metrics(np.full(3, 0.1), counts=False)["mnll"] is None
    assert constant_metrics(1e-15 * np.arange(3.0), counts=False)["mnll"] < -30
