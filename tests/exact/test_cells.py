"""Laws that are flat in cells against quadrature, SciPy, and what cells are cut by."""

import numpy as np
import pytest
import scipy.integrate
import scipy.stats

from bochner.exact.cells import CellLaw, Cells

CELLS = Cells(np.array([-1.0, 0.5, 0.75, 3.0]), (0.4, 2.0))
LAW = CellLaw(CELLS, np.random.default_rng(0).dirichlet(np.ones(5), size=3))
FAR = (-30.0, 80.0)


def over(row: int, function) -> float:
    """Integrate a function of the target under the law of a row."""
    pieces = zip([FAR[0], *CELLS.edges], [*CELLS.edges, FAR[1]], strict=True)
    one = LAW.at(np.array([row]))
    return sum(
        scipy.integrate.quad(
            lambda y: function(y) * np.exp(one.log_density(np.array([y]))[0]), *piece
        )[0]
        for piece in pieces
    )


@pytest.mark.parametrize("row", range(3))
def test_the_density_adds_up_to_one_and_has_the_moments_told(row):
    assert over(row, lambda y: 1.0) == pytest.approx(1, abs=1e-8)
    mean, epistemic, aleatoric = (moment[row] for moment in LAW.moments())
    assert over(row, lambda y: y) == pytest.approx(mean, abs=1e-8)
    assert over(row, lambda y: (y - mean) ** 2) == pytest.approx(aleatoric, abs=1e-6)
    assert epistemic == 0


def test_inside_it_is_the_histogram_of_scipy():
    edges = np.array([0.0, 1.0, 1.5, 4.0])
    p = np.array([0.2, 0.5, 0.3])
    reference = scipy.stats.rv_histogram((p, edges), density=False)
    law = CellLaw(Cells(edges, (1.0, 1.0)), np.array([[0.0, *p, 0.0]]))
    y = np.linspace(0.01, 3.99, 50)[:, None]
    np.testing.assert_allclose(law.cdf(y)[:, 0], reference.cdf(y[:, 0]), atol=1e-12)
    densities = [law.log_density(one)[0] for one in y]
    np.testing.assert_allclose(densities, reference.logpdf(y[:, 0]), atol=1e-12)


def test_tails_are_exponential():
    y = np.array([-1.0, -1.4, -9.0])
    expected = np.log(LAW.probabilities[0, 0]) + scipy.stats.expon.logpdf(-1.0 - y, scale=0.4)
    law = LAW.at(np.zeros(3, int))
    np.testing.assert_allclose(law.log_density(y - 1e-12), expected, atol=1e-9)
    above = scipy.stats.expon.sf(7.0 - 3.0, scale=2.0) * LAW.probabilities[:, -1]
    np.testing.assert_allclose(1 - LAW.cdf(np.full(3, 7.0)), above, atol=1e-12)


def test_quantiles_are_the_inverse_of_the_distribution_function():
    p = np.linspace(1e-6, 1 - 1e-6, 301)[:, None]
    found = LAW.quantile(p)
    assert np.all(np.diff(found, axis=0) > 0)
    np.testing.assert_allclose(LAW.cdf(found), np.broadcast_to(p, found.shape), atol=1e-12)
    low, high = LAW.bounds(p)
    np.testing.assert_array_equal(low, found)
    np.testing.assert_array_equal(high, found)


def test_cells_without_probability_hold_no_quantile():
    law = CellLaw(CELLS, np.array([[0.0, 0.5, 0.0, 0.5, 0.0]]))
    found = law.quantile(np.array([[0.25], [0.5], [0.75], [1.0]]))[:, 0]
    np.testing.assert_allclose(found, [-0.25, 0.5, 1.875, 3.0], atol=1e-9)


def test_samples_follow_the_law():
    drawn = LAW.samples(4000, np.random.default_rng(1))
    for row in range(3):
        p = scipy.stats.kstest(drawn[:, row], lambda y, row=row: LAW.cdf(_in(row, y))[..., row])
        assert p.pvalue > 1e-3


def _in(row: int, y: np.ndarray) -> np.ndarray:
    full = np.zeros((len(y), 3))
    full[:, row] = y
    return full


def test_cells_hold_equal_weights():
    y = np.random.default_rng(0).normal(size=1000)
    cells = Cells.learn(y, 8)
    np.testing.assert_array_equal(np.bincount(cells.places(y)), np.full(8, 125))
    np.testing.assert_allclose(cells.tails[0], np.mean(cells.edges[0] - y[y < cells.edges[0]]))


def test_a_row_of_weight_two_counts_like_two_rows():
    y = np.random.default_rng(0).normal(size=60)
    weights = np.random.default_rng(1).integers(1, 4, 60)
    found = Cells.learn(y, 6, weights.astype(float))
    repeated = Cells.learn(np.repeat(y, weights), 6)
    # Where a tenth of the targets begins decides only how narrow a cell may be.
    np.testing.assert_array_equal(found.edges, repeated.edges)
    np.testing.assert_allclose(found.tails, repeated.tails)


def test_of_few_values_each_has_a_cell():
    y = np.repeat([1.0, 2.0, 7.0], 30)
    cells = Cells.learn(y, 10)
    assert cells.edges.tolist() == [1.5, 4.5]
    assert cells.places(np.array([1.0, 2.0, 7.0])).tolist() == [0, 1, 2]


@pytest.mark.parametrize("share", [0.3, 0.9])
def test_repeated_values_do_not_make_densities_without_bound(share):
    rng = np.random.default_rng(0)
    y = np.where(rng.random(400) < share, 0.0, rng.normal(size=400))
    y[:5] = [1e-14, 2e-14, -1e-14, 1e-13, 3e-12]
    cells = Cells.learn(y, 40)
    assert cells.widths.min() >= 1e-7 * np.ptp(y)


def test_one_value_has_one_cell():
    assert len(Cells.learn(np.ones(9), 4)) == 1
