"""What the task decides: how targets go in and out, how they are scaled, which likelihoods fit."""

import abc
import dataclasses
import functools
import warnings
from collections.abc import Mapping
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from bochner.fitting.inputs import (
    check_labels,
    check_targets,
    plain_labels,
    target_names,
    warn_of_rounding,
)
from bochner.likelihoods import (
    CLASSIFICATION_LIKELIHOODS,
    REGRESSION_LIKELIHOODS,
    AbstractLikelihood,
)
from bochner.rows.scaling import TargetScaling


class AbstractTask(abc.ABC):
    """Regression or classification of targets with certain columns or classes."""

    classification: ClassVar[bool]
    likelihoods: ClassVar[Mapping[str, type[AbstractLikelihood]]]

    @property
    @abc.abstractmethod
    def n_outputs(self) -> int:
        """How many targets, or classes."""

    @property
    @abc.abstractmethod
    def n_columns(self) -> int:
        """How many columns of targets there are in a table."""

    @abc.abstractmethod
    def targets(self, y: Any, X: np.ndarray) -> np.ndarray:
        """Check targets of rows X, and give them as a matrix: numbers, or the number of each class."""

    def check_likelihood(self, likelihood: str) -> None:
        """Refuse a law that such targets cannot have."""
        return

    @abc.abstractmethod
    def learn_scaling(self, Y: np.ndarray, likelihood: str, target: str | None) -> TargetScaling:
        """Learn how targets are scaled, after checking their range."""

    @abc.abstractmethod
    def scaled(self, scaling: TargetScaling, Y: np.ndarray) -> np.ndarray:
        """Scale targets."""

    @abc.abstractmethod
    def finish(self, scaling: TargetScaling, likelihood: Any, F: jax.Array) -> jax.Array:
        """Give what the values of functions mean to a user."""


@dataclasses.dataclass(frozen=True)
class Regression(AbstractTask):
    """Targets that are numbers.

    Example:
        >>> import numpy as np
        >>> from bochner.fitting.task import Regression
        >>> Regression.of(np.array([1.0, 2.0])), Regression.of(np.ones((2, 3))).n_outputs
        (Regression(n_targets=1, one_target=True), 3)

    Attributes:
        n_targets: columns of the targets.
        one_target: whether predictions are vectors, as they are of one target in any form.
    """

    n_targets: int = 1
    one_target: bool = True
    classification: ClassVar[bool] = False
    likelihoods: ClassVar[Mapping[str, type[AbstractLikelihood]]] = REGRESSION_LIKELIHOODS

    @classmethod
    def of(cls, y: Any) -> "Regression":
        """Note the form of the targets of the first fit."""
        y = np.asarray(y)
        n_targets = 1 if y.ndim < 2 else y.shape[1]
        return cls(n_targets, n_targets == 1)

    @property
    def n_outputs(self) -> int:  # noqa: D102
        return self.n_targets

    @property
    def n_columns(self) -> int:  # noqa: D102
        return self.n_targets

    def targets(self, y: Any, X: np.ndarray) -> np.ndarray:  # noqa: D102
        Y = check_targets(y, X)
        if Y.shape[1] != self.n_targets:
            raise ValueError(
                f"y must have {self.n_targets} columns, as at the first fit; got {Y.shape[1]}."
            )
        return Y

    def learn_scaling(self, Y, likelihood, target) -> TargetScaling:  # noqa: D102
        kind = self.likelihoods[likelihood]
        kind.check_targets(Y)
        if not kind.location_scale:
            return TargetScaling.none(Y.shape[1])
        if np.any(np.ptp(Y, axis=0) == 0):
            warnings.warn(
                "y is constant, so there is nothing to learn; predictions will be that value.",
                UserWarning,
                stacklevel=4,
            )
        warn_of_rounding(Y, [target] if target else target_names(Y.shape[1]))
        return TargetScaling.standard(Y)

    def scaled(self, scaling, Y):  # noqa: D102
        return scaling(Y)

    def finish(self, scaling, likelihood, F):  # noqa: D102
        mean, _ = likelihood.moments(F)
        scale, center = (jnp.asarray(v, F.dtype)[None, :] for v in (scaling.scale, scaling.center))
        return self.shaped(mean * scale + center)

    def shaped(self, values: Any) -> Any:
        """Give a matrix with a column for each target as a vector where targets came as one."""
        return values[:, 0] if self.one_target else values


@dataclasses.dataclass(frozen=True, eq=False)
class Classification(AbstractTask):
    """Targets that name classes.

    Example:
        >>> import numpy as np
        >>> from bochner.fitting.task import Classification
        >>> task = Classification(np.array(["no", "yes"]))
        >>> task.targets(["yes", "no"], np.zeros((2, 1))).tolist()
        [[1], [0]]

    Attributes:
        classes: in order.
    """

    classes: np.ndarray
    classification: ClassVar[bool] = True
    likelihoods: ClassVar[Mapping[str, type[AbstractLikelihood]]] = CLASSIFICATION_LIKELIHOODS

    @classmethod
    def of(cls, y: Any, remedy: str = "Check that the right column is the target.") -> Any:
        """Note the classes of the first fit; `remedy` is for where there is only one."""
        y = plain_labels(y)
        try:
            check_classification_targets(y)
        except ValueError as error:
            raise ValueError(
                "y must name classes, but holds numbers with fractions or several columns. Use DeepGPRegressor for "
                f"numbers; for classes give one whole number or text a row. ({str(error).split('.')[0]}.)"
            ) from error
        classes = np.unique(y)
        if len(classes) < 2:
            raise ValueError(
                f"y must hold at least two classes; got one class only, {classes.tolist()[0]!r}. {remedy}"
            )
        return cls(classes)

    @property
    def n_outputs(self) -> int:  # noqa: D102
        return len(self.classes)

    @property
    def n_columns(self) -> int:  # noqa: D102
        return 1

    def targets(self, y: Any, X: np.ndarray) -> np.ndarray:  # noqa: D102
        return self.numbers(check_labels(y, X))

    def numbers(self, y: np.ndarray) -> np.ndarray:
        """Give the number of each class as a column."""
        index = np.minimum(np.searchsorted(self.classes, y), len(self.classes) - 1)
        unknown = self.classes[index] != y
        if np.any(unknown):
            row = int(np.argmax(unknown))
            raise ValueError(
                f"y holds the class {y.tolist()[row]!r} in row {row}, which was not there at the first fit; the "
                f"classes are {self.classes.tolist()}."
            )
        return index[:, None].astype(np.int32)

    def check_likelihood(self, likelihood: str) -> None:  # noqa: D102
        wanted = CLASSIFICATION_LIKELIHOODS[likelihood].n_classes
        if wanted not in (None, len(self.classes)):
            raise ValueError(
                f"likelihood={likelihood!r} is for {wanted} classes; y has {len(self.classes)}. "
                "Use likelihood='softmax'."
            )

    def learn_scaling(self, Y, likelihood, target) -> TargetScaling:  # noqa: D102
        self.check_likelihood(likelihood)
        return TargetScaling.none(1)

    def scaled(self, scaling, Y):  # noqa: D102
        return Y

    def finish(self, scaling, likelihood, F):  # noqa: D102
        return jnp.exp(likelihood.log_probabilities(F))

    @functools.cached_property
    def labels(self) -> list[Any]:
        """The classes as Python's values."""
        return self.classes.tolist()
