"""What a fitted estimator predicts in the mean, and what each of its members does."""

import dataclasses
import functools
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from bochner.fitting.deep_fit import key_for
from bochner.members.fitted import Fitted
from bochner.members.parts import Function
from bochner.members.predictors import (
    AbstractClassifier,
    AbstractPredictor,
    AbstractRegressor,
    DeepClassifier,
    DeepRegressor,
    SideBySide,
    StackClassifier,
    StackRegressor,
)

_BLOCK = 256


def predicted_mean(
    predictor: AbstractPredictor, X: Float[np.ndarray, "n d"]
) -> Float[np.ndarray, "n outputs"]:
    """Predict the mean of each target, or the probability of each class.

    Example:
        >>> from bochner import DeepGPRegressor, Linear
        >>> from bochner.explaining.members import predicted_mean
        >>> X = np.linspace(0, 1, 20)[:, None]
        >>> model = DeepGPRegressor(Linear()).fit(X, 3 * X[:, 0])
        >>> predicted_mean(model.fitted_.predictor, X[-1:]).round(1).tolist()
        [[3.0]]
    """
    if isinstance(predictor, AbstractClassifier):
        return predictor.probabilities(X)
    assert isinstance(predictor, AbstractRegressor)
    return predictor.summary(X)["mean"]


def drawn_functions(fitted: Fitted, n: int) -> list[Function]:
    """Draw functions of encoded rows from the posterior, the same ones each time.

    Example:
        >>> from bochner import DeepGPRegressor, Linear
        >>> from bochner.explaining.members import drawn_functions
        >>> X = np.linspace(0, 1, 20)[:, None]
        >>> model = DeepGPRegressor(Linear(), random_state=0).fit(X, 3 * X[:, 0])
        >>> f, = drawn_functions(model.fitted_, 1)
        >>> bool(np.allclose(f(X), 3 * X, atol=0.1))
        True
    """
    if not n:
        return []
    drawn = fitted.predictor.functions(n, key_for("sample", fitted.seed))
    return [functools.partial(_in_blocks, function) for function in drawn]


def _in_blocks(function: Function, X: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n outputs"]:
    """Evaluate blocks of the same size, so that one compiled program serves rows of any number."""
    padded = np.concatenate([X, np.repeat(X[-1:], -len(X) % _BLOCK, axis=0)])
    found = [function(padded[start : start + _BLOCK]) for start in range(0, len(X), _BLOCK)]
    values = np.concatenate([np.asarray(one, np.float64) for one in found])[: len(X)]
    return values.reshape(len(X), -1)


@dataclasses.dataclass(frozen=True, eq=False)
class Member:
    """The members of one kind of a stack, as one; or a deep model alone.

    Attributes:
        name: of the kind, with the number of the target where each of several has its own stack.
        weight: of the kind.
        predictor: of the kind alone; the weights of its parts add up to one.
        target: the place of its target among several; None where it predicts all there is.
    """

    name: str
    weight: float
    predictor: AbstractPredictor
    target: int | None = None

    @property
    def outputs(self) -> slice:
        """The outputs of the whole that are its own."""
        return slice(None) if self.target is None else slice(self.target, self.target + 1)


def members_of(predictor: AbstractPredictor) -> list[Member]:
    """Give the members with weight, those of a kind together.

    Example:
        >>> from bochner import DeepGPRegressor, Linear
        >>> from bochner.explaining.members import members_of
        >>> X = np.linspace(0, 1, 20)[:, None]
        >>> model = DeepGPRegressor(Linear()).fit(X, 3 * X[:, 0])
        >>> [(member.name, round(member.weight, 2)) for member in members_of(model.fitted_.predictor)]
        [('linear', 1.0)]
    """
    if isinstance(predictor, SideBySide):
        return [
            dataclasses.replace(member, name=f"target {place}: {member.name}", target=place)
            for place, one in enumerate(predictor.targets)
            for member in members_of(one)
        ]
    if isinstance(predictor, DeepRegressor | DeepClassifier):
        return [Member("deep", 1.0, predictor)]
    assert isinstance(predictor, StackRegressor | StackClassifier)
    kinds = [part.kind for part in predictor.parts]
    return [_of_kind(predictor, kinds, kind) for kind in dict.fromkeys(kinds)]


def _of_kind(stack: StackRegressor | StackClassifier, kinds: Sequence[str], kind: str) -> Member:
    places = [place for place, one in enumerate(kinds) if one == kind]
    weights = stack.weights[places]
    own = type(stack)(tuple(stack.parts[place] for place in places), weights / weights.sum())
    return Member(kind, float(weights.sum()), own)
