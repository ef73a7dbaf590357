"""Lattices are found, and masses of points are those of SciPy."""

import numpy as np
import pytest
import scipy.stats

from bochner.exact.cells import CellLaw
from bochner.exact.lattice import Lattice, smoothed
from bochner.exact.laws import Law
from bochner.exact.transforms import Standardized

RNG = np.random.default_rng(0)
LATTICES = {
    "whole numbers": (RNG.integers(3, 9, 100).astype(float), Lattice(3.0, 1.0)),
    "halves, some of which nobody gave": (
        RNG.choice([12.5, 13.0, 15.5], 60), Lattice(12.5, 0.5)
    ),
    "tenths": (RNG.integers(-20, 20, 500) / 10, Lattice(-2.0, 0.1)),
    "years": (RNG.integers(1970, 1990, 300).astype(float), Lattice(1970.0, 1.0)),
}  # fmt: skip
OTHERS = {
    "real numbers": RNG.normal(size=100),
    "few rows": np.arange(12.0),
    "two values": np.repeat([0.0, 1.0], 30),
    "one value": np.ones(30),
    "too many points": np.append(RNG.integers(0, 5, 100), 1000.0),
    "steps that differ": np.repeat(np.log([1.0, 2.0, 3.0, 4.0]), 30),
    "rounded to nothing": np.repeat([0.0, 1.0, 2.0 + 1e-4], 30),
}


@pytest.mark.parametrize(("y", "expected"), LATTICES.values(), ids=LATTICES)
def test_a_lattice_is_found(y, expected):
    found = Lattice.found(y)
    assert found is not None
    assert found.start == pytest.approx(expected.start)
    assert found.step == pytest.approx(expected.step)
    np.testing.assert_allclose(found.nearest(y), y, atol=1e-9)


@pytest.mark.parametrize("y", OTHERS.values(), ids=OTHERS)
def test_other_targets_have_none(y):
    assert Lattice.found(y) is None


def normal(mean: float, deviation: float, n: int) -> Law:
    return Law(Standardized(0.0, 1.0), np.full(n, mean), np.full(n, deviation))


@pytest.mark.parametrize("deviation", [0.1, 0.5, 2.0])
def test_masses_are_those_between_half_steps(deviation):
    lattice, points = Lattice(0.5, 0.5), 0.5 * np.arange(-60, 60)
    found = lattice.log_mass(normal(1.3, deviation, len(points)), points)
    reference = scipy.stats.norm(1.3, deviation)
    expected = reference.cdf(points + 0.25) - reference.cdf(points - 0.25)
    near = expected > 1e-8
    np.testing.assert_allclose(np.exp(found)[near], expected[near], rtol=1e-6)
    assert np.exp(found).sum() == pytest.approx(1, abs=1e-6)
    density = lattice.log_density(normal(1.3, deviation, len(points)), points)
    np.testing.assert_allclose(density, found + np.log(2))


def test_far_out_masses_stay_comparable():
    lattice, far = Lattice(0.0, 1.0), np.array([-30.0, 30.0])
    found = lattice.log_mass(normal(0.0, 1.0, 2), far)
    expected = scipy.stats.norm.logpdf(far)
    np.testing.assert_allclose(found, expected)


def test_between_points_the_density_is_that_of_the_point():
    lattice = Lattice(0.0, 1.0)
    law = normal(0.3, 1.0, 3)
    found = lattice.log_density(law, np.array([2.0, 2.4, 1.6]))
    np.testing.assert_array_equal(found, found[0])


def test_upwards_is_the_quantile_of_the_rounded_law():
    lattice = Lattice(0.0, 0.5)
    reference = scipy.stats.norm(1.3, 0.8)
    p = np.linspace(0.01, 0.99, 197)
    points = lattice.up(reference.ppf(p))
    assert np.all(reference.cdf(points + 0.25) >= p - 1e-6)
    assert np.all(reference.cdf(points - 0.25) < p + 1e-6)


def test_cells_are_of_points_and_little_lies_beyond_the_outer_ones():
    y = np.repeat([2.0, 3.0, 6.0], [30, 60, 10])
    lattice = Lattice.found(y)
    assert lattice is not None
    cells = lattice.cells(y, np.ones(100))
    assert cells.edges.tolist() == [2.5, 3.5, 4.5, 5.5]
    law = CellLaw(cells, np.tile([0.3, 0.6, 0.0, 0.0, 0.1], (6, 1)))
    mass = np.exp(lattice.log_mass(law, np.array([1.0, 2.0, 3.0, 4.0, 6.0, 7.0])))
    expected = [0.3 * (31 / 32) / 32, 0.3 * 31 / 32, 0.6, 0.0, 0.1 * 11 / 12, 0.1 * (11 / 12) / 12]
    np.testing.assert_allclose(mass, expected, atol=1e-12)


def test_frequencies_of_few_rows_are_smoothed_towards_the_truth_and_those_of_many_kept():
    rng = np.random.default_rng(0)
    points = np.arange(80)
    truth = scipy.stats.nbinom.pmf(points, 4, 0.12)
    truth /= truth.sum()
    few, many = (rng.multinomial(n, truth).astype(float) for n in (300, 1_000_000))
    found = smoothed(few)
    assert found.sum() == pytest.approx(300)

    def lost(q):  # in nats, by which a new row is less probable than under the truth
        return truth @ (np.log(truth) - np.log((q + 0.5) / (q + 0.5).sum()))

    assert lost(found) < 0.4 * lost(few)
    assert lost(smoothed(many)) < lost(many) + 1e-6
