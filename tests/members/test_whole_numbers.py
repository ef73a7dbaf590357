"""Targets on a lattice, through the estimator: masses, quantiles and draws are of whole numbers."""

import numpy as np
import pytest
from scipy.stats import norm

from bochner import Constant, DeepGPClassifier, DeepGPRegressor, Exact, Linear
from bochner.estimators.files import from_parts, to_parts
from bochner.exact.lattice import Lattice
from bochner.members.deep import left_out_density
from bochner.members.laws import GaussianDraws, Mixture
from bochner.members.parts import DeepPart
from bochner.members.stack import fit_stack
from bochner.members.whole_numbers import Rounded
from bochner.system.saving import ModelFileError, format_arrays, parse_arrays
from tests.members.tables import SIMPLE, curve, training


def counts(n: int = 120):
    X, y = curve(n)
    return X, np.rint(2 * (y - 20)) / 2 + 10  # in halves


@pytest.fixture(scope="module")
def model():
    return DeepGPRegressor([*SIMPLE, ("exact", Exact())], random_state=0).fit(*counts())


def test_the_lattice_is_found_and_told(model):
    assert model.fitted_.predictor.lattice == Lattice(counts()[1].min(), 0.5)


def test_masses_of_points_add_up_to_one(model):
    X, _ = counts()
    points = np.arange(0.0, 20.0, 0.5)
    repeated = np.repeat(X[:3], len(points), axis=0)
    density = np.exp(model.log_prob(repeated, np.tile(points, 3)))
    np.testing.assert_allclose(density.reshape(3, -1).sum(axis=1) * 0.5, 1, atol=1e-3)


def test_quantiles_and_draws_are_points_that_agree_with_masses(model):
    X, _ = counts()
    quantiles = model.predict_quantiles(X[:5], [0.05, 0.5, 0.95])
    np.testing.assert_allclose(quantiles * 2, np.rint(quantiles * 2), atol=1e-9)
    drawn = model.sample_y(X[:5], 4000)
    np.testing.assert_allclose(drawn * 2, np.rint(drawn * 2), atol=1e-9)
    own = drawn[np.arange(5), :, None] == np.round(quantiles[:, None, 1:2] * 2) / 2
    mass = 0.5 * np.exp(model.log_prob(X[:5], quantiles[:, 1]))
    np.testing.assert_allclose(own[..., 0].mean(axis=1), mass, atol=4 * 0.5 / 4000**0.5)
    np.testing.assert_allclose(drawn.mean(axis=1), model.predict(X[:5]), atol=0.1)


def test_it_is_stored(model):
    X, y = counts()
    arrays, header = to_parts(model)
    loaded = from_parts(*parse_arrays(format_arrays(arrays, header), "x"))
    np.testing.assert_array_equal(loaded.log_prob(X, y), model.log_prob(X, y))
    np.testing.assert_array_equal(
        loaded.predict_quantiles(X, [0.3]), model.predict_quantiles(X, [0.3])
    )


@pytest.mark.parametrize("lattice", [[0.0], [0.0, 0.0], [0.0, -1.0], "x", [float("nan"), 1.0], 3])
def test_a_forged_lattice_is_refused(model, lattice):
    arrays, header = to_parts(model)
    header["fitted"]["predictor"]["lattice"] = lattice
    with pytest.raises(ModelFileError, match="lattice"):
        from_parts(*parse_arrays(format_arrays(arrays, header), "x"))


@pytest.mark.parametrize("likelihood", ["gaussian", "heteroscedastic"])
def test_a_law_that_is_asked_for_is_not_rounded(likelihood):
    X, y = counts()
    found = DeepGPRegressor(Linear(), likelihood=likelihood, random_state=0).fit(X, y)
    assert found.fitted_.predictor.lattice is None
    quantiles = found.predict_quantiles(X, [0.05])
    assert np.abs(quantiles * 2 - np.rint(quantiles * 2)).max() > 0.01


def test_other_targets_and_classes_are_not_rounded():
    X, y = curve(60)
    assert DeepGPRegressor(Linear()).fit(X, y).fitted_.predictor.lattice is None
    labels = np.rint(y / 2).astype(int)
    classes = DeepGPClassifier(Linear()).fit(X, labels)
    assert not hasattr(classes.fitted_.predictor, "lattice")


def test_each_of_several_targets_has_its_own():
    X, y = counts()
    found = DeepGPRegressor(Constant()).fit(X, np.column_stack([y, np.sin(y), 4 * y]))
    lattices = [one.lattice for one in found.fitted_.predictor.targets]
    assert [one and one.step for one in lattices] == [0.5, None, 2.0]


def test_members_are_judged_by_masses():
    X, y = counts(60)
    y[:] = np.where(X[:, 0] > 0, 1.0, np.where(X[:, 0] > -1, 2.0, 5.0))
    members = (("exact", Exact()),)
    stacked = fit_stack(members, training(X, y))
    # No mass is above one, and steps are of one: a density of a spike would be.
    assert all(one.log_likelihood <= 0 for one in stacked.standings)
    assert max(one.log_likelihood for one in stacked.standings) > -0.7
    plain = fit_stack(members, training(X, y, likelihood="heteroscedastic"))
    assert max(one.log_likelihood for one in plain.standings) > 0


def test_deep_members_are_judged_by_masses(mixture):
    (fit,) = mixture.fitted_.predictor.deep
    X, y = curve(20)
    rows = training(X, np.rint(y), lattice=Lattice(0.0, 1.0))
    law = DeepPart(fit).law(X)
    reference = norm(law.means, law.deviations)
    mass = np.mean(reference.cdf(np.rint(y) + 0.5) - reference.cdf(np.rint(y) - 0.5), axis=0)
    np.testing.assert_allclose(np.exp(left_out_density(fit, rows.rows, rows)), mass, rtol=1e-6)


def test_a_rounded_law_keeps_the_moments_of_the_law():
    law = Mixture(np.ones(1), [GaussianDraws(np.full((1, 2), 3.3), np.full((1, 2), 0.7))])
    rounded = Rounded(law, Lattice(0.0, 1.0))
    assert len(rounded) == 2
    for one, other in zip(rounded.moments(), law.moments(), strict=True):
        np.testing.assert_array_equal(one, other)
    mass = np.exp(rounded.log_density(np.array([3.0, 4.0])))
    from scipy.stats import norm

    np.testing.assert_allclose(mass, np.diff(norm(3.3, 0.7).cdf([2.5, 3.5, 4.5])))
