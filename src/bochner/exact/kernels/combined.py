"""Sums and products of covariances."""

import dataclasses
import functools
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from bochner.exact.kernels.base import AbstractKernel, PullBack, Start
from bochner.exact.rows import Layout, Rows


@dataclasses.dataclass(frozen=True)
class Sum(AbstractKernel):
    """`k(x, x') = sum_i k_i(x, x')`.

    Example:
        >>> import numpy as np
        >>> from bochner.exact.columns import Columns
        >>> from bochner.exact.kernels import Constant, Linear
        >>> x = np.array([-1.0, 1.0])
        >>> rows = Columns.learn([x])([x])
        >>> (Linear() + Constant()).covariance(np.log([2.0, 1.0]), rows, rows).round(3).tolist()
        [[3.0, -1.0], [-1.0, 3.0]]
    """

    parts: tuple[AbstractKernel, ...]

    def start(self, layout: Layout, variance: float) -> Start:  # noqa: D102
        return _joined([part.start(layout, variance) for part in self.parts])

    def covariance(self, v, A: Rows, B: Rows) -> Float[np.ndarray, "a b"]:  # noqa: D102
        pieces = _pieces(self.parts, v, A.layout)
        K = self.parts[0].covariance(pieces[0], A, B)
        for part, piece in zip(self.parts[1:], pieces[1:], strict=True):
            K += part.covariance(piece, A, B)
        return K

    def diagonal(self, v, A: Rows) -> Float[np.ndarray, " a"]:  # noqa: D102
        pieces = zip(self.parts, _pieces(self.parts, v, A.layout), strict=True)
        return sum((part.diagonal(piece, A) for part, piece in pieces), np.zeros(len(A)))

    def with_pull_back(self, v, A: Rows) -> tuple[Float[np.ndarray, "a a"], PullBack]:  # noqa: D102
        pieces = _pieces(self.parts, v, A.layout)
        terms = [
            part.with_pull_back(piece, A) for part, piece in zip(self.parts, pieces, strict=True)
        ]
        K = terms[0][0].copy()
        for term, _ in terms[1:]:
            K += term
        return K, lambda G: np.concatenate([pull_back(G) for _, pull_back in terms])

    def __add__(self, other: AbstractKernel) -> "Sum":
        """Add one more covariance."""
        return Sum((*self.parts, *(other.parts if isinstance(other, Sum) else (other,))))


@dataclasses.dataclass(frozen=True)
class Product(AbstractKernel):
    """`k(x, x') = prod_i k_i(x, x')`.

    Example:
        >>> import numpy as np
        >>> from bochner.exact.columns import Columns
        >>> from bochner.exact.kernels import Constant, Linear
        >>> x = np.array([-1.0, 1.0])
        >>> rows = Columns.learn([x])([x])
        >>> (Linear() * Constant()).covariance(np.log([2.0, 3.0]), rows, rows).round(3).tolist()
        [[6.0, -6.0], [-6.0, 6.0]]
    """

    parts: tuple[AbstractKernel, ...]

    def start(self, layout: Layout, variance: float) -> Start:  # noqa: D102
        share = variance ** (1 / len(self.parts))
        return _joined([part.start(layout, share) for part in self.parts])

    def covariance(self, v, A: Rows, B: Rows) -> Float[np.ndarray, "a b"]:  # noqa: D102
        pieces = zip(self.parts, _pieces(self.parts, v, A.layout), strict=True)
        return functools.reduce(
            np.multiply, [part.covariance(piece, A, B) for part, piece in pieces]
        )

    def diagonal(self, v, A: Rows) -> Float[np.ndarray, " a"]:  # noqa: D102
        pieces = zip(self.parts, _pieces(self.parts, v, A.layout), strict=True)
        return functools.reduce(np.multiply, [part.diagonal(piece, A) for part, piece in pieces])

    def with_pull_back(self, v, A: Rows) -> tuple[Float[np.ndarray, "a a"], PullBack]:  # noqa: D102
        pieces = _pieces(self.parts, v, A.layout)
        terms = [
            part.with_pull_back(piece, A) for part, piece in zip(self.parts, pieces, strict=True)
        ]

        def pull_back(G):
            gradients = []
            for i, (_, own) in enumerate(terms):
                others = [term for j, (term, _) in enumerate(terms) if j != i]
                gradients.append(own(functools.reduce(np.multiply, others, G)))
            return np.concatenate(gradients)

        return functools.reduce(np.multiply, [term for term, _ in terms]), pull_back


def _joined(starts: list[Start]) -> Start:
    return Start(
        np.concatenate([start.values for start in starts]),
        np.concatenate([start.deviations for start in starts]),
        np.concatenate([start.is_lengthscale for start in starts]),
    )


def _pieces(parts: Sequence[AbstractKernel], v, layout: Layout) -> list[np.ndarray]:
    sizes = [part.n_parameters(layout) for part in parts]
    return np.split(v, np.cumsum(sizes)[:-1])
