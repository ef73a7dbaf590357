"""Rows left out in closed form are those left out by fitting again, equal rows together."""

import numpy as np
import pytest

from bochner.exact.classes import class_parts, safe
from bochner.exact.dirichlet import probabilities
from bochner.exact.folds import folds_of_groups
from bochner.exact.learning import Effort
from bochner.exact.process import Process
from bochner.exact.regression import regression_parts
from bochner.exact.varying_noise import learn_noise
from tests.exact.tables import mixed_rows

N_PAIRS, N_FOLDS, SEED = 40, 10, 3
N = 2 * N_PAIRS
CLOSE = {"rtol": 1e-6, "atol": 1e-6}
LIGHT = Effort(scales=(1.0,), first=3, then=5)


def pairs():
    """Every row twice, with different targets and weights."""
    rng = np.random.default_rng(100)
    rows = mixed_rows(N_PAIRS)[np.tile(np.arange(N_PAIRS), 2)]
    y = np.sin(2 * rows.numbers[:, 0]) + rng.normal(size=N) * (0.2 + (rows.ranks[:, 0] > 0.5))
    return rows, y, rng.uniform(0.5, 2, N)


def folds():
    found = folds_of_groups(pairs()[0].groups(), N_FOLDS, SEED)
    np.testing.assert_array_equal(found[:N_PAIRS], found[N_PAIRS:])
    assert len(set(found)) == N_FOLDS
    return found


def refit(process, kept, targets=None, noise=None):
    """The process of some rows, with the same parameters."""
    targets = process.targets if targets is None else targets
    noise = process.noise if noise is None else noise
    rows = process.rows[kept]
    return Process.condition(process.kernel, process.v, rows, targets[kept], noise[kept])


@pytest.fixture(scope="module")
def parts():
    rows, y, weights = pairs()
    return regression_parts(
        rows, y, weights=weights, effort=LIGHT, transforms=["as it is"], seed=SEED
    )


@pytest.mark.parametrize("place", [1, 2], ids=["linear", "sum"])
def test_parts_are_judged_as_by_refits_without_each_fold(parts, place):
    (_, y, weights), part = pairs(), parts[place]
    assert part.kind == ["linear", "sum"][place - 1]
    mean, variance = np.empty((2, N))
    for fold in range(N_FOLDS):
        out = folds() == fold
        mean[out], of_function = refit(part.process, ~out).predict(part.process.rows[out])
        variance[out] = of_function + part.noise
    again = part.judged_by(y, mean, variance, weights)
    assert again.tails == part.tails
    np.testing.assert_allclose(part.left_out, again.left_out, **CLOSE)


def test_varying_noise_is_judged_as_by_refits_of_all_that_it_is_made_of(parts):
    (rows, y, weights), plain, part = pairs(), parts[2].process, parts[3]
    assert part.noise_model is not None
    groups, mean, variance = rows.groups(), np.empty(N), np.empty(N)
    for fold in range(N_FOLDS):
        out, kept = folds() == fold, folds() != fold
        of_kept = np.unique(groups[kept], return_inverse=True)[1]
        residuals = plain.targets[kept] - refit(plain, kept).left_out(of_kept)[0]
        model, relative = learn_noise(
            rows[kept],
            residuals,
            of_kept,
            weights=weights[kept],
            v=part.noise_model.process_parameters,
        )
        noise = np.full(N, np.nan)
        noise[kept] = part.noise * relative / weights[kept]
        mean[out], of_function = refit(part.process, kept, noise=noise).predict(rows[out])
        variance[out] = of_function + part.noise * model(rows[out])
    again = part.judged_by(y, mean, variance, weights)
    np.testing.assert_allclose(part.left_out, again.left_out, **CLOSE)


def test_classes_are_judged_as_by_refits_without_each_fold():
    rows, y, weights = pairs()
    labels = np.searchsorted([-0.5, 0.5], y)
    found = class_parts(
        rows, labels, 3, weights=weights, groups=rows.groups(), effort=LIGHT, seed=SEED
    )
    assert [part.kind for part in found] == ["constant", "linear", "sum", "sum", "sum"]
    for part in found[1:]:
        mean, variance = np.empty((2, N, 3))
        for fold in range(N_FOLDS):
            out = folds() == fold
            for c, process in enumerate(part.functions.processes):
                mean[out, c], variance[out, c] = refit(process, ~out).predict(rows[out])
        mean += part.functions.offsets
        expected = safe(probabilities(mean, variance, part.temperature))
        np.testing.assert_allclose(part.left_out, expected, **CLOSE)


def test_the_twin_of_a_row_says_nothing_of_it(parts):
    """Targets of the rows equal to the first change nothing of what is said of it, others do."""
    process = parts[2].process
    groups = process.rows.groups()

    def without_own_group(changed):
        targets = process.targets + 5.0 * (np.arange(N) == changed)
        return refit(process, slice(None), targets).left_out(groups)[0][0]

    expected = process.left_out(groups)[0][0]
    assert without_own_group(N_PAIRS) == pytest.approx(expected, abs=1e-9)
    assert without_own_group(0) == pytest.approx(expected, abs=1e-9)
    assert abs(without_own_group(1) - expected) > 1e-4
