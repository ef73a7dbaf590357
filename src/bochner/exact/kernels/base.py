"""What a covariance of rows must offer."""

import abc
import dataclasses
import operator
import re
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from bochner.exact.columns import Columns, Number
from bochner.exact.kernels.inputs import Inputs
from bochner.exact.rows import Layout, Rows

_DEVIATION, _OF_ALL = 2.0, 6.0
WORD = re.compile(r"[^\W\d]\w*")
"""A name of a column that needs no quotes."""

PullBack = Callable[[Float[np.ndarray, "n n"]], Float[np.ndarray, " parameters"]]
"""From dL/dK, symmetric, to dL/dv."""


@dataclasses.dataclass(frozen=True)
class Start:
    """Where the logarithms of a kernel's parameters start, which is also the mode of their prior.

    Attributes:
        values: the logarithms.
        deviations: of the Gaussian prior of each.
        is_lengthscale: which are logarithms of lengthscales.
    """

    values: Float[np.ndarray, " parameters"]
    deviations: Float[np.ndarray, " parameters"]
    is_lengthscale: Bool[np.ndarray, " parameters"]


class Features(NamedTuple):
    """Random features, of which the mean of the products at two rows is the covariance in expectation.

    Attributes:
        draw: draws the arrays of some features.
        at: computes the features of rows, one column each, from these arrays.
    """

    draw: Callable[[np.random.Generator], Any]
    at: Callable[[Rows, Any], Any]


class AbstractKernel(abc.ABC):
    """A covariance k(x, x') of encoded rows, with parameters given as one vector `v` of logarithms.

    Rows hold arrays of NumPy or of JAX, and what is computed of them is of the same kind; gradients and draws are for
    NumPy alone.
    """

    @abc.abstractmethod
    def start(self, layout: Layout, variance: float) -> Start:
        """Say where the parameters start for targets whose prior variance is about as given."""

    @abc.abstractmethod
    def covariance(
        self, v: Float[np.ndarray, " parameters"], A: Rows, B: Rows
    ) -> Float[np.ndarray, "a b"]:
        """Compute k between all rows of A and all of B."""

    @abc.abstractmethod
    def diagonal(self, v: Float[np.ndarray, " parameters"], A: Rows) -> Float[np.ndarray, " a"]:
        """Compute k(x, x) for each row."""

    @abc.abstractmethod
    def with_pull_back(
        self, v: Float[np.ndarray, " parameters"], A: Rows
    ) -> tuple[Float[np.ndarray, "a a"], PullBack]:
        """Compute the covariance of the rows of A, and the map from dL/dK to dL/dv."""

    @abc.abstractmethod
    def features(self, v: Float[np.ndarray, " parameters"], layout: Layout, n: int) -> Features:
        """Make n random features of rows of a layout."""

    @abc.abstractmethod
    def resolved(self, inputs: Inputs, columns: Columns) -> "AbstractKernel":
        """Give the kernel with numbers of encoded columns in place of what a user calls them, and in their units."""

    @abc.abstractmethod
    def called(self, names: Sequence[str], columns: Columns) -> "AbstractKernel":
        """Give a resolved kernel with names in place of numbers of encoded columns, and in the user's units again."""

    @abc.abstractmethod
    def __str__(self) -> str:
        """Give the text from which `parse` makes the same kernel."""

    def n_parameters(self, layout: Layout) -> int:
        """Count the parameters."""
        return len(self.start(layout, 1.0).values)

    def __add__(self, other: "AbstractKernel") -> "AbstractKernel":
        """Add two covariances."""
        from bochner.exact.kernels.combined import Sum

        return Sum((self, other))

    def __mul__(self, other: "AbstractKernel") -> "AbstractKernel":
        """Multiply two covariances."""
        from bochner.exact.kernels.combined import Product

        return Product((self, other))


@dataclasses.dataclass(frozen=True, init=False, repr=False)
class AbstractOfColumns(AbstractKernel):
    """A covariance that sees some columns.

    Attributes:
        columns: names, or places counted from zero; all columns where None.
    """

    columns: tuple[int | str, ...] | None
    FEWEST: ClassVar[int] = 0
    IN_UNITS: ClassVar[tuple[str, ...]] = ()
    """Options that are in the units of the first column, until the kernel is resolved."""

    def __init__(self, *columns: int | str) -> None:
        own = tuple(one if isinstance(one, str) else int(operator.index(one)) for one in columns)
        if any(not isinstance(one, str) and one < 0 for one in own) or len({*own}) < len(own):
            raise ValueError(f"columns must be names or places from zero, each once; got {own}.")
        if len(own) < self.FEWEST:
            raise ValueError(f"`{type(self).__name__.lower()}` needs the name of a column.")
        object.__setattr__(self, "columns", own or None)

    @property
    def options(self) -> dict[str, Any]:
        """What else its constructor takes."""
        return {name: getattr(self, name) for name in self.names_of_options()}

    @classmethod
    def names_of_options(cls) -> list[str]:
        """Name what else the constructor takes; each is a number or None."""
        return [field.name for field in dataclasses.fields(cls) if field.name != "columns"]

    def resolved(self, inputs: Inputs, columns: Columns) -> "AbstractOfColumns":  # noqa: D102
        if self.columns is None:
            return self
        found = [number for own in self.columns for number in inputs.numbers(own)]
        if not self.IN_UNITS:
            return type(self)(*dict.fromkeys(found), **self.options)
        number = columns.columns[found[0]]  # of a date its days
        if not isinstance(number, Number) or not number.varies:
            raise ValueError(f"`{self}` needs a column of numbers that are not all the same.")
        unit = number.deviation
        return type(self)(found[0], **self._converted(lambda value: value / unit))

    def called(self, names: Sequence[str], columns: Columns) -> "AbstractOfColumns":  # noqa: D102
        if self.columns is None:
            return self
        numbers = [operator.index(column) for column in self.columns]  # pyright: ignore[reportArgumentType]
        first = columns.columns[numbers[0]]
        unit = first.deviation if isinstance(first, Number) else 1.0
        own = dict.fromkeys(names[number] for number in numbers)
        # Twelve digits, so that what goes there and back is what it was.
        return type(self)(*own, **self._converted(lambda value: float(f"{value * unit:.12g}")))

    def _converted(self, convert: Callable[[float], float]) -> dict[str, Any]:
        return {
            name: convert(value) if name in self.IN_UNITS and value is not None else value
            for name, value in self.options.items()
        }

    def seen(self, layout: Layout) -> Layout:
        """Give the layout of what it sees."""
        if any(isinstance(column, str) for column in self.columns or ()):
            raise ValueError(f"the columns of {self!r} have names that are not resolved.")
        return layout if self.columns is None else layout.of_columns(self.columns)[0]

    def __str__(self) -> str:
        given = [*map(written, self.columns or ()), *self._options_as("{}={!r}")]
        return type(self).__name__.lower() + (f"({', '.join(given)})" if given else "")

    def __repr__(self) -> str:
        given = [*map(repr, self.columns or ()), *self._options_as("{}={!r}")]
        return f"{type(self).__name__}({', '.join(given)})"

    def _options_as(self, form: str) -> list[str]:
        given = ((name, value) for name, value in self.options.items() if value is not None)
        return [form.format(name, value) for name, value in given]


class AbstractStationary(AbstractOfColumns):
    """A covariance of differences alone, whose first parameter is the logarithm of its variance."""

    def diagonal(self, v, A: Rows) -> Float[np.ndarray, " a"]:  # noqa: D102
        return A.xp.full(A.numbers.shape[:1], np.exp(v[0]))


def start_of_lengthscales(n: int, variance: float, lengthscale: float) -> Start:
    """Start the logarithms of a variance and of n lengthscales."""
    values = np.append(np.log(variance), np.full(n, np.log(lengthscale)))
    return Start(values, np.append(2.0, np.full(n, deviation(n))), np.arange(n + 1) > 0)


def written(column: int | str) -> str:
    """Write a column as in a text, in quotes where its name is no plain word."""
    if isinstance(column, int) or WORD.fullmatch(column):
        return str(column)
    return "'" + column.replace("\\", "\\\\").replace("'", "\\'") + "'"


def deviation(n: int) -> float:
    """Give the prior deviation of the logarithm of each of n parameters, one an axis.

    Less where they are many: with as wide a prior for each, together they could follow the noise of few rows, and
    left-out rows would not tell, since the parameters have seen them.
    """
    return min(_DEVIATION, _OF_ALL / max(n, 1) ** 0.5)


def sums_by_axis(
    values: Float[np.ndarray, " features"], axes: tuple[int, ...], n: int
) -> Float[np.ndarray, " n"]:
    """Add up what belongs to the same axis."""
    sums = np.bincount(np.array(axes, np.int64), weights=values, minlength=n)
    return sums.astype(np.float64)  # whole numbers where there are no values


def onto(K: Any) -> dict[str, Any]:
    """Let NumPy write a result over an array that is needed no more; compilers do so by themselves."""
    return {"out": K} if isinstance(K, np.ndarray) else {}


def of_cosines(
    v: Float[np.ndarray, " parameters"],
    scaled: Callable[[Rows], Any],
    width: int,
    law: Callable[..., np.ndarray],
    n: int,
) -> Features:
    """Make features `sqrt(2 variance) cos(a'w + phase)` of rows in their lengthscales (Rahimi and Recht, 2007).

    Args:
        v: logarithms of the parameters, the variance first.
        scaled: gives rows in units of their lengthscales.
        width: how many columns it gives.
        law: of the frequencies w: normal for RBF, Cauchy for Laplace.
        n: how many features.
    """
    amplitude = 2**0.5 * np.exp(v[0] / 2)

    def draw(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        return law(rng, size=(width, n)), rng.uniform(0, 2 * np.pi, size=(1, n))

    def at(A: Rows, drawn: Any) -> Any:
        frequencies, phases = drawn
        return amplitude * A.xp.cos(scaled(A) @ frequencies + phases)

    return Features(draw, at)
