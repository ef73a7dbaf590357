import numpy as np
import pytest

from bochner.prediction.paired import Difference


def test_the_error_of_a_difference_of_roots_is_that_of_the_jackknife():
    generator = np.random.default_rng(0)
    first = generator.normal(size=400) ** 2
    second = 1.3 * first + 0.2 * generator.normal(size=400) ** 2

    def gap(rows):
        return np.sqrt(first[rows].mean()) - np.sqrt(second[rows].mean())

    rows = np.arange(400)
    left_out = np.array([gap(np.delete(rows, i)) for i in rows])
    jackknife = np.sqrt(399 / 400 * np.sum((left_out - left_out.mean()) ** 2))
    found = Difference.of_roots(first, second)
    np.testing.assert_allclose(found.difference, gap(rows))
    np.testing.assert_allclose(found.standard_error, jackknife, rtol=0.02)
    assert found.better == 0


def test_one_row_and_equal_models_decide_nothing():
    one = Difference.of_means(np.array([1.0]), np.array([2.0]))
    assert np.isnan(one.standard_error)
    assert one.better is None
    losses = np.array([1.0, 2.0])
    assert Difference.of_means(losses, losses).better is None
    assert Difference.of_roots(np.zeros(3), np.zeros(3)).better is None


@pytest.mark.filterwarnings("error")
def test_losses_of_any_size_can_be_compared():
    found = Difference.of_means(np.array([1e200, 1.0]), np.zeros(2))
    assert found.standard_error > 1e200
    assert found.better is None
