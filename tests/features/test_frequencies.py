import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from bochner.features.frequencies import FREQUENCIES, Independent, Orthogonal, Sparse

DENSE = {"independent": Independent, "orthogonal": Orthogonal}


def many_draws(frequencies, d_in, n_rf, n_draws, seed=0):
    keys = jax.random.split(jax.random.key(seed), n_draws)
    draw = jax.jit(jax.vmap(lambda key: frequencies.draw(d_in, n_rf, key=key)))
    return np.asarray(draw(keys), np.float64)


@pytest.mark.parametrize(("d_in", "n_rf"), [(1, 4), (3, 7), (5, 3), (4, 8)])
@pytest.mark.parametrize("name", FREQUENCIES)
def test_any_number_of_frequencies_can_be_drawn(name, d_in, n_rf, key):
    epsilon = FREQUENCIES[name]().draw(d_in, n_rf, key=key)
    assert epsilon.shape == (d_in, n_rf)
    values = epsilon[epsilon != 0]
    assert len(np.unique(values)) == len(values) >= (d_in * n_rf if name in DENSE else n_rf)


@pytest.mark.parametrize(("d_in", "n_rf"), [(4, 8), (4, 10), (7, 3), (7, 7)])
def test_orthogonal_frequencies_are_orthogonal_within_blocks_only(d_in, n_rf, key):
    epsilon = np.asarray(Orthogonal().draw(d_in, n_rf, key=key), np.float64)
    unit = epsilon / np.linalg.norm(epsilon, axis=0)
    cosines = np.abs(unit.T @ unit)
    block = np.arange(n_rf) // d_in
    same = (block[:, None] == block[None, :]) & ~np.eye(n_rf, dtype=bool)
    assert cosines[same].max() < 1e-5
    assert cosines[block[:, None] != block[None, :]].min(initial=1.0) > 1e-4


def sizes(jaxpr):
    """The sizes of all arrays of a program, with those inside its loops and calls."""
    for equation in jaxpr.eqns:
        yield from (variable.aval.size for variable in equation.outvars)
        for value in equation.params.values():
            inner = getattr(value, "jaxpr", value)
            if hasattr(inner, "eqns"):
                yield from sizes(inner)


@pytest.mark.parametrize("name", FREQUENCIES)
def test_of_many_inputs_few_frequencies_need_little(name, key):
    d_in, n_rf = 10_000, 40
    program = jax.make_jaxpr(lambda key: FREQUENCIES[name]().draw(d_in, n_rf, key=key))(key)
    assert max(sizes(program.jaxpr)) <= 3 * d_in * n_rf


@pytest.mark.parametrize(("name", "n_rf"), [*itertools.product(DENSE, [5]), ("orthogonal", 2)])
def test_each_frequency_alone_is_a_standard_normal_vector(name, n_rf):
    d_in, n_draws = 3, 4000
    draws = many_draws(DENSE[name](), d_in, n_rf, n_draws)
    for column in range(n_rf):
        epsilon = draws[:, :, column]
        assert np.abs(epsilon.mean(axis=0)).max() < 4 / np.sqrt(n_draws)
        covariance_error = np.sqrt(n_draws) * (np.cov(epsilon.T) - np.eye(d_in))
        assert np.abs(covariance_error).max() < 4 * np.sqrt(2)
        for entry in epsilon.T:
            assert stats.kstest(entry, "norm").pvalue > 1e-3
        squared_length = (epsilon**2).sum(axis=1)
        assert stats.kstest(squared_length, "chi2", args=(d_in,)).pvalue > 1e-3


def test_orthogonal_frequencies_give_smaller_kernel_errors_than_independent_ones():
    x = np.array([0.6, -0.4, 0.5, 0.3, -0.2])
    expected = np.exp(-0.5 * x @ x)
    squared_errors, n_draws = {}, 4000
    for name, frequencies in DENSE.items():
        draws = many_draws(frequencies(), 5, 10, n_draws)
        estimates = np.cos(np.einsum("i,nij->nj", x, draws)).mean(axis=1)
        z_score = (estimates.mean() - expected) / (estimates.std() / np.sqrt(n_draws))
        assert abs(z_score) < 4
        squared_errors[name] = np.mean((estimates - expected) ** 2)
    assert squared_errors["orthogonal"] < 0.7 * squared_errors["independent"]


@pytest.mark.parametrize("name", FREQUENCIES)
def test_frequencies_are_a_function_of_the_key(name):
    first, again, other = (
        FREQUENCIES[name]().draw(3, 6, key=jax.random.key(seed)) for seed in (1, 1, 2)
    )
    assert jnp.array_equal(first, again)
    assert not jnp.any((first == other) & (first != 0))


def test_independent_frequencies_are_not_orthogonal(key):
    epsilon = Independent().draw(4, 4, key=key)
    gram = np.abs(epsilon.T @ epsilon)
    assert gram[~np.eye(4, dtype=bool)].min() > 1e-3


@pytest.mark.parametrize("d_in", [1, 3, 6])
def test_sparse_frequencies_look_at_all_one_two_and_four_inputs_by_turns(d_in, key):
    epsilon = np.asarray(Sparse().draw(d_in, 9, key=key))
    active = [min(n, d_in) for n in (d_in, 1, 2, 4)]
    assert (epsilon != 0).sum(axis=0).tolist() == [*active, *active, d_in]


def test_sparse_frequencies_look_at_each_input_alike_and_have_the_same_mean_squared_length():
    d_in, n_draws = 6, 4000
    draws = many_draws(Sparse(), d_in, 8, n_draws)
    shares = (draws != 0).mean(axis=0)
    for column, n_active in enumerate([6, 1, 2, 4, 6, 1, 2, 4]):
        expected = n_active / d_in
        assert np.abs(shares[:, column] - expected).max() < 4 * 0.5 / np.sqrt(n_draws)
        # The squared length is d_in / n_active times a chi-squared variable of as many degrees.
        squared_length = (draws[:, :, column] ** 2).sum(axis=1)
        law = stats.chi2(n_active, scale=d_in / n_active)
        assert stats.kstest(squared_length, law.cdf).pvalue > 1e-3


def test_sparse_frequencies_have_an_additive_kernel():
    x, d_in, n_draws = np.array([0.6, -0.4, 0.5, 0.3, -0.2]), 5, 4000
    draws = many_draws(Sparse(), d_in, 4, n_draws)
    estimates = np.cos(np.einsum("i,nij->nj", x, draws))
    for column, n_active in enumerate([5, 1, 2, 4]):
        sets = itertools.combinations(range(d_in), n_active)
        kernels = [np.exp(-0.5 * d_in / n_active * np.sum(x[list(S)] ** 2)) for S in sets]
        own = estimates[:, column]
        z_score = (own.mean() - np.mean(kernels)) / (own.std() / np.sqrt(n_draws))
        assert abs(z_score) < 4


def test_sparse_frequencies_of_all_inputs_are_orthogonal(key):
    of_all = np.asarray(Sparse().draw(4, 16, key=key), np.float64)[:, ::4]
    cosines = of_all.T @ of_all
    assert np.abs(cosines[~np.eye(4, dtype=bool)]).max() < 1e-4
