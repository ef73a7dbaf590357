"""Plots of what a model says of its columns."""

import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib")


def test_shares_are_drawn_the_largest_on_top(model, explanation):
    ax = model.plot_shares(explanation=explanation, n_most=3)
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert names == list(explanation.columns)[:3][::-1]
    widths = [bar.get_width() for bar in ax.patches]
    assert widths == pytest.approx(list(explanation.columns.values())[:3][::-1])


def test_effects_are_small_multiples_of_the_most_important_columns(model, explanation):
    axes = model.plot_effects(explanation=explanation)
    titles = [ax.get_title().split(" (")[0] for ax in axes]
    assert titles == list(explanation.columns)
    wave = explanation.effect("wave", 24)
    x, y = axes[titles.index("wave")].lines[0].get_data()
    np.testing.assert_allclose(y, wave.mean)
    np.testing.assert_allclose(x, wave.values)
    color = axes[titles.index("color")]
    assert [label.get_text() for label in color.get_xticklabels()] == ["blue", "green", "red"]
    matplotlib.pyplot.close("all")


def test_effects_go_where_they_are_told(model, explanation):
    _, axes = matplotlib.pyplot.subplots(1, 2)
    found = model.plot_effects(["line", "color"], ax=axes, explanation=explanation)
    assert [ax.get_title().split(" (")[0] for ax in found] == ["line", "color"]
    alone = model.plot_effects("line", ax=axes[0], explanation=explanation)
    assert alone.size == 1
    with pytest.raises(ValueError, match="one for each of 3 columns; got 2"):
        model.plot_effects(["line", "color", "wave"], ax=axes, explanation=explanation)
    matplotlib.pyplot.close("all")


def test_each_class_has_a_curve_and_the_second_of_two_stands_for_both(classifier, of_classes):
    (ax,) = classifier.plot_effects(["column 0"], explanation=of_classes)
    labels = [line.get_label() for line in ax.lines]
    assert labels == classifier.classes_.tolist()
    assert ax.get_legend() is not None
    matplotlib.pyplot.close("all")


def test_names_are_drawn_as_they_are():
    from bochner import DeepGPClassifier, Linear

    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"$\\frac{": [0.0, 1, 2, 3], "a\x1b$b$": [1.0, 0, 1, 0]})
    model = DeepGPClassifier(Linear(), random_state=0).fit(frame, ["$x$", "$x$", "\\no", "\\no"])
    figure = model.plot_effects()[0].figure
    figure.canvas.draw()
    model.plot_shares().figure.canvas.draw()
    (ax, *_) = figure.axes
    assert ax.get_ylabel().startswith("probability of")
    assert len(ax.lines) == 1
    matplotlib.pyplot.close("all")
