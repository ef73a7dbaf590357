"""What a stack is made of: fitted members that give a law, or probabilities of classes, at encoded rows."""

import abc
import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from bochner.exact.cells import CellLaw
from bochner.exact.densities import DensityPart
from bochner.exact.draws import draw_functions
from bochner.exact.matrix import MatrixColumns
from bochner.fitting.deep_fit import DeepFit
from bochner.fitting.storing import deep_from_stored, deep_to_stored
from bochner.fitting.task import AbstractTask
from bochner.members.laws import AbstractLaw, GaussianDraws, LawInRows
from bochner.members.programs import LawProgram, program_of_deep, program_of_rows
from bochner.prediction.statistics import AbstractStatistic, Probabilities
from bochner.system.saving import ModelFileError

Function = Callable[[Any], Any]
"""A drawn function of encoded rows, in the units of the target; JAX can trace it."""


class AbstractPart(abc.ABC):
    """A fitted member; of its two predictions it knows the one that fits the task."""

    @abc.abstractmethod
    def law(self, X: Float[np.ndarray, "n d"]) -> AbstractLaw:
        """Predict the law of the target at each row, in its own units."""

    @abc.abstractmethod
    def probabilities(self, X: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n classes"]:
        """Compute the probability of each class."""

    @abc.abstractmethod
    def functions(self, n: int, key: jax.Array) -> list[Function]:
        """Draw functions."""

    @abc.abstractmethod
    def program(self) -> LawProgram:
        """Give the prediction as JAX can export it."""

    @property
    @abc.abstractmethod
    def kind(self) -> str:
        """What explanations call it; parts of one kind are told together."""

    @property
    @abc.abstractmethod
    def n_rows_held(self) -> int:
        """How many training rows it holds."""


class AbstractStoredPart(AbstractPart):
    """A part that is stored by itself, whatever other parts there are."""

    @abc.abstractmethod
    def to_stored(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Give all of it as named arrays and plain values."""

    @classmethod
    @abc.abstractmethod
    def from_stored(
        cls,
        arrays: Mapping[str, np.ndarray],
        stored: Mapping[str, Any],
        task: AbstractTask,
        d_in: int,
    ) -> Self:
        """Make what `to_stored` took apart, every value checked; a `ModelFileError` says what does not fit."""


class MomentsOfDraws(AbstractStatistic):
    """Mean and variance of the target given each function, rows first."""

    def __call__(self, draws, columns):  # noqa: D102
        means, variances = draws.map(lambda likelihood, F: likelihood.moments(F))
        return {"means": means[..., 0].T, "variances": variances[..., 0].T}


@dataclasses.dataclass(frozen=True, eq=False)
class DeepPart(AbstractStoredPart):
    """A deep model of classes, or of one target with Gaussian noise.

    Attributes:
        fit: the model.
    """

    fit: DeepFit

    def law(self, X) -> GaussianDraws:  # noqa: D102
        found = self.fit.posterior().map_rows(MomentsOfDraws(), self.fit.input_scaling(X))
        center, scale = self.fit.target_scaling.center[0], self.fit.target_scaling.scale[0]
        means = found["means"].astype(np.float64).T * scale + center
        return GaussianDraws(means, np.sqrt(found["variances"].astype(np.float64)).T * scale)

    def probabilities(self, X):  # noqa: D102
        found = self.fit.posterior().map_rows(Probabilities(), self.fit.input_scaling(X))
        return found.astype(np.float64)

    def functions(self, n, key):  # noqa: D102
        return deep_functions(self.fit, n, key)

    def program(self):  # noqa: D102
        return program_of_deep(self.fit, one_target=True)

    @property
    def kind(self):  # noqa: D102
        return "deep"

    @property
    def n_rows_held(self):  # noqa: D102
        return 0

    def to_stored(self):  # noqa: D102
        return deep_to_stored(self.fit)

    @classmethod
    def from_stored(cls, arrays, stored, task, d_in):  # noqa: D102
        fit = deep_from_stored(arrays, stored, task)
        if fit.d_in != d_in:
            raise ModelFileError(f"a deep model takes {fit.d_in} columns where there are {d_in}.")
        return cls(fit)


@dataclasses.dataclass(frozen=True, eq=False)
class RowsPart(AbstractPart):
    """A model in the space of rows, or a constant or linear one.

    Attributes:
        columns: what it makes of a matrix.
        part: the model.
        extent: least and largest training target; none for classes.
    """

    columns: MatrixColumns
    part: Any
    extent: tuple[float, float] = (0.0, 0.0)

    @property
    def kind(self):  # noqa: D102
        return self.part.kind

    @property
    def n_rows_held(self):  # noqa: D102
        if isinstance(self.part, DensityPart):
            return len(self.part.landmarks.rows)
        functions = getattr(self.part, "process", None) or getattr(self.part, "functions", None)
        process = getattr(functions, "processes", [functions])[0]
        holder = getattr(process, "landmarks", process)
        return 0 if holder is None else len(holder.rows)

    def law(self, X) -> LawInRows | CellLaw:  # noqa: D102
        law = self.part.law(self.columns(X))
        return law if isinstance(law, CellLaw) else LawInRows(law, self.extent)

    def probabilities(self, X):  # noqa: D102
        return self.part.probabilities(self.columns(X))

    def functions(self, n, key):  # noqa: D102
        rng = np.random.default_rng(np.asarray(jax.random.key_data(key)).tolist())
        return draw_functions(self.part, self.columns, self.extent, n, rng)

    def program(self):  # noqa: D102
        return program_of_rows([self.part], np.ones(1), self.columns, self.extent)


def deep_functions(fit: DeepFit, n: int, key: jax.Array) -> list[Function]:
    """Draw functions from a deep model, on encoded rows."""

    def one(key: jax.Array) -> Function:
        draw = fit.model.draw_function(key=key)

        def function(X: jax.Array) -> jax.Array:
            F = draw(jnp.asarray(fit.input_scaling(X), jnp.float32))
            return fit.task.finish(fit.target_scaling, draw.model.likelihood, F)

        return function

    return [one(each) for each in jax.random.split(key, n)]
