"""A function with clipped gradients: its values, and gradients that do not grow on their way back."""

import jax
import jax.numpy as jnp
import numpy as np

from bochner.ops import with_clipped_gradient

MATRIX = np.array([[3.0, -1.0], [0.5, 2.0], [1.0, 1.0]])


def function(F, matrix):
    return jnp.sin(matrix @ F)


def plain_and_clipped(matrix, of_outputs):
    """Both gradients, with respect to the columns and to the matrix."""
    matrix, of_outputs = jnp.asarray(matrix), jnp.asarray(of_outputs)
    F = jnp.asarray(np.random.default_rng(0).normal(size=(2, of_outputs.shape[1])), matrix.dtype)

    def gradients(computed):
        outputs, back = jax.vjp(computed, F, matrix)
        return outputs, *back(of_outputs)

    return gradients(function), gradients(
        lambda F, matrix: with_clipped_gradient(function, F, matrix)
    )


def columns(n=50):
    return np.random.default_rng(1).normal(size=(3, n))


def test_values_and_gradients_of_what_is_not_clipped_are_exact(x64):
    (plain, _, of_matrix), (ours, _, of_our_matrix) = plain_and_clipped(MATRIX, columns())
    np.testing.assert_array_equal(ours, plain)
    np.testing.assert_array_equal(of_our_matrix, of_matrix)


def test_only_columns_whose_gradient_grows_are_clipped_and_none_is_turned(x64):
    of_outputs = columns()
    (_, exact, _), (_, ours, _) = plain_and_clipped(MATRIX, of_outputs)
    longest, length = (np.linalg.norm(gradient, axis=0) for gradient in (of_outputs, exact))
    grown = length > longest
    assert 5 < grown.sum() < 45  # both kinds are there
    np.testing.assert_array_equal(ours[:, ~grown], exact[:, ~grown])
    expected = np.asarray(exact) * longest / length
    np.testing.assert_allclose(ours[:, grown], expected[:, grown], rtol=1e-12)


def test_a_column_without_gradient_has_none():
    of_outputs = columns().astype(np.float32)
    of_outputs[:, 7] = 0.0
    _, (_, ours, _) = plain_and_clipped(MATRIX.astype(np.float32), of_outputs)
    assert np.all(np.isfinite(ours))
    assert not np.any(ours[:, 7])
