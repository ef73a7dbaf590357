"""Sums and products of covariances."""

import dataclasses
import functools
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from bochner.exact.columns import Columns
from bochner.exact.kernels.base import AbstractKernel, Features, PullBack, Start
from bochner.exact.kernels.inputs import Inputs
from bochner.exact.rows import Layout, Rows

DEEPEST, MOST_KERNELS = 8, 64
"""How deep covariances may be combined, and how many of them."""


@dataclasses.dataclass(frozen=True, repr=False)
class AbstractCombined(AbstractKernel):
    """A sum or a product of covariances.

    Attributes:
        parts: two or more; a part that is of the same kind is taken apart.
    """

    parts: tuple[AbstractKernel, ...]

    def __post_init__(self) -> None:
        own = [one.parts if isinstance(one, type(self)) else (one,) for one in self.parts]
        object.__setattr__(self, "parts", tuple(part for parts in own for part in parts))
        if len(self.parts) < 2 or _depth(self) > DEEPEST or _count(self) > MOST_KERNELS:
            raise ValueError(
                f"a kernel combines two to {MOST_KERNELS} kernels, {DEEPEST} deep at most."
            )

    def resolved(self, inputs: Inputs, columns: Columns) -> "AbstractCombined":  # noqa: D102
        return type(self)(tuple(part.resolved(inputs, columns) for part in self.parts))

    def called(self, names: Sequence[str], columns: Columns) -> "AbstractCombined":  # noqa: D102
        return type(self)(tuple(part.called(names, columns) for part in self.parts))

    def terms(self, v, layout: Layout) -> list[tuple[AbstractKernel, Float[np.ndarray, " own"]]]:
        """Give each part with its parameters."""
        sizes = [part.n_parameters(layout) for part in self.parts]
        return list(zip(self.parts, np.split(v, np.cumsum(sizes)[:-1]), strict=True))

    def _start_of_each(self, layout: Layout, variance: float) -> Start:
        starts = [part.start(layout, variance) for part in self.parts]
        return Start(
            np.concatenate([start.values for start in starts]),
            np.concatenate([start.deviations for start in starts]),
            np.concatenate([start.is_lengthscale for start in starts]),
        )


class Sum(AbstractCombined):
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

    def start(self, layout: Layout, variance: float) -> Start:  # noqa: D102
        return self._start_of_each(layout, variance)

    def covariance(self, v, A: Rows, B: Rows) -> Float[np.ndarray, "a b"]:  # noqa: D102
        # In place by NumPy, for each part makes an array of its own.
        terms = self.terms(v, A.layout)
        return functools.reduce(operator.iadd, (k.covariance(own, A, B) for k, own in terms))

    def diagonal(self, v, A: Rows) -> Float[np.ndarray, " a"]:  # noqa: D102
        terms = self.terms(v, A.layout)
        return functools.reduce(operator.add, [k.diagonal(own, A) for k, own in terms])

    def with_pull_back(self, v, A: Rows) -> tuple[Float[np.ndarray, "a a"], PullBack]:  # noqa: D102
        parts = [k.with_pull_back(own, A) for k, own in self.terms(v, A.layout)]
        K = functools.reduce(operator.iadd, (own for own, _ in parts[1:]), parts[0][0].copy())
        return K, lambda G: np.concatenate([pull_back(G) for _, pull_back in parts])

    def features(self, v, layout: Layout, n: int) -> Features:  # noqa: D102
        parts = [k.features(own, layout, n) for k, own in self.terms(v, layout)]

        def draw(rng: np.random.Generator) -> Any:
            # Of unlike signs, so that products of two parts' features are zero in the mean.
            return [(part.draw(rng), rng.choice([-1.0, 1.0], size=(1, n))) for part in parts]

        def at(A: Rows, drawn: Any) -> Any:
            pairs = zip(parts, drawn, strict=True)
            return functools.reduce(
                operator.add, [part.at(A, own) * sign for part, (own, sign) in pairs]
            )

        return Features(draw, at)

    def __str__(self) -> str:
        return " + ".join(map(str, self.parts))

    def __repr__(self) -> str:
        return " + ".join(map(repr, self.parts))


class Product(AbstractCombined):
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

    def start(self, layout: Layout, variance: float) -> Start:  # noqa: D102
        return self._start_of_each(layout, variance ** (1 / len(self.parts)))

    def covariance(self, v, A: Rows, B: Rows) -> Float[np.ndarray, "a b"]:  # noqa: D102
        terms = self.terms(v, A.layout)
        return functools.reduce(operator.imul, (k.covariance(own, A, B) for k, own in terms))

    def diagonal(self, v, A: Rows) -> Float[np.ndarray, " a"]:  # noqa: D102
        terms = self.terms(v, A.layout)
        return functools.reduce(operator.mul, [k.diagonal(own, A) for k, own in terms])

    def with_pull_back(self, v, A: Rows) -> tuple[Float[np.ndarray, "a a"], PullBack]:  # noqa: D102
        parts = [k.with_pull_back(own, A) for k, own in self.terms(v, A.layout)]

        def pull_back(G):
            gradients = []
            for i, (_, own) in enumerate(parts):
                others = [K for j, (K, _) in enumerate(parts) if j != i]
                gradients.append(own(functools.reduce(np.multiply, others, G)))
            return np.concatenate(gradients)

        return functools.reduce(np.multiply, [K for K, _ in parts]), pull_back

    def features(self, v, layout: Layout, n: int) -> Features:  # noqa: D102
        parts = [k.features(own, layout, n) for k, own in self.terms(v, layout)]

        def at(A: Rows, drawn: Any) -> Any:
            pairs = zip(parts, drawn, strict=True)
            return functools.reduce(operator.mul, [part.at(A, own) for part, own in pairs])

        return Features(lambda rng: [part.draw(rng) for part in parts], at)

    def __str__(self) -> str:
        return " * ".join(
            f"({part})" if isinstance(part, Sum) else str(part) for part in self.parts
        )

    def __repr__(self) -> str:
        return " * ".join(
            f"({part!r})" if isinstance(part, Sum) else repr(part) for part in self.parts
        )


def _depth(kernel: AbstractKernel) -> int:
    return 1 + max(map(_depth, kernel.parts)) if isinstance(kernel, AbstractCombined) else 0


def _count(kernel: AbstractKernel) -> int:
    return sum(map(_count, kernel.parts)) if isinstance(kernel, AbstractCombined) else 1
