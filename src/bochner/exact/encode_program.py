"""The encoding of a matrix in JAX: numbers, ranks and codes as `Columns` gives them."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from bochner.exact.columns import LARGEST, Category, ManyValues, Number, bent
from bochner.exact.matrix import MatrixColumns, names_of_dummies
from bochner.exact.rows import MOST_VALUES, Rows


def encoded(rows: Rows) -> Rows:
    """Give rows that are encoded already, as constants of a program."""
    made = jnp.asarray
    return Rows(made(rows.numbers), made(rows.ranks), made(rows.codes), rows.layout)


def encoder(columns: MatrixColumns) -> Callable[[Array], Rows]:
    """Make the function that encodes rows of a matrix; it is to be traced where JAX has double precision.

    Example:
        >>> import jax, numpy as np
        >>> from bochner.exact.encode_program import encoder
        >>> from bochner.exact.matrix import MatrixColumns
        >>> X = np.array([[1.5, 1, 0], [2.0, 1, 0], [3.0, 0, 1], [4.0, 0, 1]])
        >>> columns = MatrixColumns.learn(X, [(0,), (1, 2)])
        >>> with jax.enable_x64(True):
        ...     numbers = jax.jit(lambda X: encoder(columns)(X).numbers)(X)
        >>> bool(np.allclose(numbers, columns(X).numbers))
        True
    """
    varying = [
        (source[0], column)
        for source, column in zip(columns.sources, columns.columns.columns, strict=True)
        if isinstance(column, Number) and column.varies
    ]
    standardize_and_rank = _numbers([column for _, column in varying])
    places = np.array([place for place, _ in varying], np.int64)
    order, layout = _order(columns), columns.layout

    def encode(X: Float[Array, "batch d"]) -> Rows:
        X = X.astype(jnp.float64)
        n = X.shape[0]
        standardized, ranks = standardize_and_rank(X[:, places])
        indicators, codes = [], []
        for source, column in zip(columns.sources, columns.columns.columns, strict=True):
            if isinstance(column, Category):
                if column.varies:
                    code = _code(column, X[:, np.array(source)])
                    shares = np.array(column.shares)
                    is_value = code[:, None] == np.arange(len(shares))[None]
                    indicators.append(is_value - shares[None])
                    codes.append(code)
            elif isinstance(column, ManyValues):
                if column.varies:
                    codes.append(_code_of_many(column, X[:, source[-1]]))
            elif 0 < column.share_missing < 1:
                missing = ~jnp.isfinite(X[:, source[0]])
                indicators.append((missing - column.share_missing)[:, None])
                codes.append(missing.astype(jnp.int64))
        numbers = jnp.concatenate([standardized, *indicators], axis=1)[:, order]
        together = jnp.stack(codes, axis=1) if codes else jnp.zeros((n, 0), jnp.int64)
        return Rows(numbers, ranks, together, layout)

    return encode


def _order(columns: MatrixColumns) -> np.ndarray:
    """Where each number of the layout is, when standardized numbers come first and indicators then."""
    kinds: list[bool] = []
    for column in columns.columns.columns:
        if isinstance(column, Category):
            kinds += [True] * len(column.shares) if column.varies else []
        elif isinstance(column, Number):
            kinds += [True] if 0 < column.share_missing < 1 else []
            kinds += [False] if column.varies else []
    order = np.empty(len(kinds), np.int64)
    order[np.argsort(kinds, kind="stable")] = np.arange(len(kinds))
    return order


def _numbers(columns: list[Number]) -> Callable[[Array], tuple[Array, Array]]:
    """Make the function that standardizes and ranks columns, all at once."""
    if not columns:
        return lambda X: (X, X)
    longest = max(len(column.knots) for column in columns)
    knots = np.full((len(columns), longest), np.inf)
    ranks, slopes = np.zeros((2, len(columns), longest))
    for j, column in enumerate(columns):
        k = len(column.knots)
        knots[j, :k], ranks[j, :k] = column.knots, column.ranks
        slopes[j, : k - 1] = np.diff(column.ranks) / np.diff(column.knots)
    low, high = (np.array([column.knots[end] for column in columns])[None] for end in (0, -1))
    rise = np.array([column.ranks[-1] - column.ranks[0] for column in columns])[None]
    center, deviation, median = (
        np.array([getattr(column, name) for column in columns])[None]
        for name in ("center", "deviation", "median")
    )
    last = np.array([len(column.knots) - 2 for column in columns])[None]
    each = np.arange(len(columns))[None]

    def apply(X: Array) -> tuple[Array, Array]:
        filled = jnp.where(jnp.isfinite(X), jnp.clip(X, -LARGEST, LARGEST), median)
        # Not by signs and sizes, whose derivative is lost at zero.
        scaled = jnp.clip((filled - center) / deviation, -LARGEST, LARGEST)
        standardized = bent(scaled, jnp)
        inside = jnp.clip(filled, low, high)
        place = jax.vmap(
            lambda own, x: jnp.searchsorted(own, x, side="right"), in_axes=(0, 1), out_axes=1
        )(knots, inside)
        place = jnp.clip(place - 1, 0, last)
        own = jnp.broadcast_to(each, place.shape)
        rank = jnp.asarray(slopes)[own, place] * (inside - jnp.asarray(knots)[own, place])
        rank = rank + jnp.asarray(ranks)[own, place]
        beyond = jnp.minimum(filled - low, 0) + jnp.maximum(filled - high, 0)
        return standardized, rank + jnp.clip(rise / (high - low) * beyond, -10, 10)

    return apply


def _code(column: Category, dummies: Array) -> Array:
    names = names_of_dummies(dummies.shape[1])
    codes = jnp.asarray(column.code(names.tolist()))
    is_any = jnp.any(dummies != 0, axis=1)
    # The place of the largest; `argmax` in double precision cannot be part of a program in single.
    is_largest = dummies == jnp.max(dummies, axis=1, keepdims=True)
    places = jnp.where(is_largest, np.arange(dummies.shape[1])[None], len(names) - 2)
    place = jnp.where(is_any, jnp.min(places, axis=1), len(names) - 2)
    return codes[jnp.where(jnp.isnan(dummies).any(axis=1), len(names) - 1, place)]


def _code_of_many(column: ManyValues, numbers: Array) -> Array:
    table = jnp.asarray(column.code(np.arange(MOST_VALUES + 2, dtype=np.float64)))
    is_known = jnp.isfinite(numbers) & (numbers >= 0) & (numbers <= MOST_VALUES)
    return table[jnp.where(is_known, numbers, MOST_VALUES + 1).astype(jnp.int64)]
