"""What a fitted estimator predicts with: one deep model, a stack of members, or a stack for each of several targets."""

import abc
import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from bochner.exact.lattice import Lattice
from bochner.fitting.deep_fit import DeepFit
from bochner.fitting.rows import Rows
from bochner.likelihoods import GAUSSIAN_NOISE
from bochner.members.laws import Mixture
from bochner.members.parts import AbstractPart, DeepPart, Function, RowsPart, deep_functions
from bochner.members.whole_numbers import Rounded
from bochner.prediction.statistics import (
    AbstractStatistic,
    Distribution,
    Moments,
    Probabilities,
    Quantiles,
    Samples,
    Several,
)

_CHUNK = 4096


class AbstractPredictor(abc.ABC):
    """Predictions for encoded rows, in the units of the targets."""

    @abc.abstractmethod
    def log_density(self, rows: Rows) -> Float[np.ndarray, " n"]:
        """Compute each row's log predictive density or probability."""

    @abc.abstractmethod
    def samples(
        self, X: Float[np.ndarray, "n d"], n_samples: int, key: jax.Array
    ) -> Float[np.ndarray, "n targets samples"]:
        """Draw targets, or numbers of classes."""

    @abc.abstractmethod
    def functions(self, n: int, key: jax.Array) -> list[Function]:
        """Draw whole functions."""

    @property
    @abc.abstractmethod
    def parts(self) -> tuple[AbstractPart, ...]:
        """The members that take part."""

    @property
    def deep(self) -> list[DeepFit]:
        """The deep models among them."""
        return [part.fit for part in self.parts if isinstance(part, DeepPart)]

    @property
    def in_rows(self) -> list[RowsPart]:
        """The models in the space of rows among them."""
        return [part for part in self.parts if isinstance(part, RowsPart)]


class AbstractRegressor(AbstractPredictor):
    """Predictions of numbers; arrays have a column for each target."""

    @abc.abstractmethod
    def summary(
        self, X: Float[np.ndarray, "n d"], levels: Sequence[float] = ()
    ) -> dict[str, np.ndarray]:
        """Compute `mean`, `epistemic` and `aleatoric` variances and `quantiles` (levels along the last axis)."""

    @abc.abstractmethod
    def cdf(self, rows: Rows) -> Float[np.ndarray, "n targets"]:
        """Compute the probability of targets up to those of the rows."""

    @abc.abstractmethod
    def law(self, X: Float[np.ndarray, "n d"]) -> Mixture | Rounded:
        """Predict the law of the one target at each row."""


class AbstractClassifier(AbstractPredictor):
    """Predictions of classes."""

    @abc.abstractmethod
    def probabilities(self, X: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n classes"]:
        """Compute the probability of each class."""

    def log_density(self, rows: Rows):  # noqa: D102
        p = self.probabilities(rows.X)
        return np.log(np.take_along_axis(p, rows.Y, axis=1)[:, 0])


@dataclasses.dataclass(frozen=True, eq=False)
class _Deep(AbstractPredictor):
    """One deep model alone."""

    fit: DeepFit

    @property
    def parts(self) -> tuple[AbstractPart, ...]:
        return (DeepPart(self.fit),)

    def log_density(self, rows: Rows):
        return self.fit.log_density(rows)

    def functions(self, n, key):
        return deep_functions(self.fit, n, key)

    def drawn(self, X, n_samples: int, key: jax.Array) -> np.ndarray:
        """Draw scaled targets: rows, then samples, then targets."""
        key_functions, key_noise = jax.random.split(key)
        posterior = self.fit.posterior(n_samples, key=key_functions)
        return posterior.map_rows(Samples(key_noise), self.fit.input_scaling(X))[:, :n_samples]


class DeepRegressor(_Deep, AbstractRegressor):
    """A deep model of numbers alone, by the statistics of its own posterior."""

    def summary(self, X, levels=()):  # noqa: D102
        parts: dict[str, AbstractStatistic] = {"moments": Moments()}
        if len(levels):
            parts["quantiles"] = Quantiles(jnp.asarray(levels, jnp.float32))
        found = self.fit.posterior().map_rows(Several(parts), self.fit.input_scaling(X))
        moments, scaling = found["moments"], self.fit.target_scaling
        summary = {
            "mean": scaling.inverse(moments["mean"].astype(np.float64)),
            "epistemic": moments["epistemic"] * scaling.scale**2,
            "aleatoric": moments["aleatoric"] * scaling.scale**2,
        }
        if len(levels):
            scale, center = scaling.scale[None, :, None], scaling.center[None, :, None]
            summary["quantiles"] = found["quantiles"] * scale + center
        return summary

    def cdf(self, rows: Rows):  # noqa: D102
        scaled = self.fit.scaled(rows)
        found = self.fit.posterior().map_rows(Distribution(), scaled.X, Y=scaled.Y)
        return found.astype(np.float64)

    def law(self, X):  # noqa: D102
        likelihood = self.fit.config.likelihood
        if self.fit.task.n_columns > 1 or likelihood not in GAUSSIAN_NOISE:
            raise ValueError(
                "a distribution object is for one target with Gaussian noise; this model has "
                f"likelihood={likelihood!r} and {self.fit.task.n_columns} target(s). Use `predict_quantiles`, "
                "`log_prob` and `sample_y`."
            )
        return Mixture(np.ones(1), [DeepPart(self.fit).law(X)])

    def samples(self, X, n_samples, key):  # noqa: D102
        scaling = self.fit.target_scaling
        drawn = self.drawn(X, n_samples, key) * scaling.scale + scaling.center
        return np.swapaxes(drawn, 1, 2)


class DeepClassifier(_Deep, AbstractClassifier):
    """A deep model of classes alone."""

    def probabilities(self, X):  # noqa: D102
        found = self.fit.posterior().map_rows(Probabilities(), self.fit.input_scaling(X))
        found = found.astype(np.float64)
        return found / found.sum(axis=1, keepdims=True)

    def log_density(self, rows: Rows):  # noqa: D102
        return self.fit.log_density(rows)

    def samples(self, X, n_samples, key):  # noqa: D102
        return np.swapaxes(self.drawn(X, n_samples, key), 1, 2)


@dataclasses.dataclass(frozen=True, eq=False)
class _Stack(AbstractPredictor):
    """Members with weights.

    Attributes:
        members: the parts.
        weights: of each, adding up to one.
    """

    members: tuple[AbstractPart, ...]
    weights: Float[np.ndarray, " members"]

    @property
    def parts(self) -> tuple[AbstractPart, ...]:
        return self.members

    def functions(self, n, key):
        """Draw each function from one member; those of the same member together, since they share a program."""
        key_member, key_draw = jax.random.split(key)
        rng = _generator(key_member)
        chosen = rng.choice(len(self.parts), size=n, p=self.weights)
        keys = jax.random.split(key_draw, len(self.parts))
        drawn = {
            i: iter(self.parts[i].functions(int(np.sum(chosen == i)), keys[i]))
            for i in np.unique(chosen)
        }
        return [next(drawn[i]) for i in chosen]


@dataclasses.dataclass(frozen=True, eq=False)
class StackRegressor(_Stack, AbstractRegressor):
    """A mixture of members for one target.

    Attributes:
        lattice: to which the mixture is rounded, where targets are on one.
    """

    lattice: Lattice | None = None

    def law(self, X) -> Mixture | Rounded:  # noqa: D102
        law = Mixture(self.weights, [part.law(X) for part in self.parts])
        return law if self.lattice is None else Rounded(law, self.lattice)

    def summary(self, X, levels=()):  # noqa: D102
        pieces: list[dict[str, np.ndarray]] = []
        for start in range(0, max(len(X), 1), _CHUNK):
            law = self.law(X[start : start + _CHUNK])
            mean, epistemic, aleatoric = law.moments()
            piece: dict[str, np.ndarray] = {
                "mean": mean,
                "epistemic": epistemic,
                "aleatoric": aleatoric,
            }
            if len(levels):
                piece["quantiles"] = law.quantiles(levels)
            pieces.append(piece)
        return {name: np.concatenate([one[name] for one in pieces])[:, None] for name in pieces[0]}

    def cdf(self, rows: Rows):  # noqa: D102
        places = [slice(i, i + _CHUNK) for i in range(0, max(len(rows), 1), _CHUNK)]
        found = [np.transpose(self.law(rows.X[piece]).cdf(rows.Y[piece].T)) for piece in places]
        return np.concatenate(found)

    def log_density(self, rows: Rows):  # noqa: D102
        places = [slice(i, i + _CHUNK) for i in range(0, max(len(rows), 1), _CHUNK)]
        found = [self.law(rows.X[piece]).log_density(rows.Y[piece, 0]) for piece in places]
        return np.concatenate(found)

    def samples(self, X, n_samples, key):  # noqa: D102
        return self.law(X).samples(n_samples, _generator(key)).T[:, None, :]


class StackClassifier(_Stack, AbstractClassifier):
    """A mixture of members for classes."""

    def probabilities(self, X):  # noqa: D102
        pieces = []
        for start in range(0, max(len(X), 1), _CHUNK):
            block = X[start : start + _CHUNK]
            found = [part.probabilities(block) for part in self.parts]
            pieces.append(sum(w * p for w, p in zip(self.weights, found, strict=True)))
        found = np.concatenate(pieces)
        return found / found.sum(axis=1, keepdims=True)

    def samples(self, X, n_samples, key):  # noqa: D102
        p = np.cumsum(self.probabilities(X), axis=1)
        u = _generator(key).uniform(size=(len(X), n_samples))
        drawn = np.sum(u[:, :, None] > p[:, None, :-1], axis=2)
        return drawn[:, None, :]


@dataclasses.dataclass(frozen=True, eq=False)
class SideBySide(AbstractRegressor):
    """A predictor for each of several targets, which are independent given the inputs."""

    targets: tuple[AbstractRegressor, ...]

    @property
    def parts(self):  # noqa: D102
        return tuple(part for target in self.targets for part in target.parts)

    def summary(self, X, levels=()):  # noqa: D102
        found = [target.summary(X, levels) for target in self.targets]
        return {name: np.concatenate([one[name] for one in found], axis=1) for name in found[0]}

    def cdf(self, rows: Rows):  # noqa: D102
        found = [one.cdf(rows.target(i)) for i, one in enumerate(self.targets)]
        return np.concatenate(found, axis=1)

    def log_density(self, rows: Rows):  # noqa: D102
        return np.sum(
            [one.log_density(rows.target(i)) for i, one in enumerate(self.targets)], axis=0
        )

    def law(self, X):  # noqa: D102
        raise ValueError(
            f"a distribution object is for one target; this model has {len(self.targets)}. Use `predict_quantiles`, "
            "`log_prob` and `sample_y`, or fit a model for each."
        )

    def samples(self, X, n_samples, key):  # noqa: D102
        keys = jax.random.split(key, len(self.targets))
        found = [t.samples(X, n_samples, k) for t, k in zip(self.targets, keys, strict=True)]
        return np.concatenate(found, axis=1)

    def functions(self, n, key):  # noqa: D102
        keys = jax.random.split(key, len(self.targets))
        drawn = [t.functions(n, k) for t, k in zip(self.targets, keys, strict=True)]
        return [functools.partial(_columns, functions) for functions in zip(*drawn, strict=True)]


def _columns(functions: Sequence[Function], X: jax.Array) -> jax.Array:
    return jnp.stack([function(X) for function in functions], axis=1)


def _generator(key: jax.Array) -> np.random.Generator:
    return np.random.default_rng(np.asarray(jax.random.key_data(key)).tolist())


def with_draws(fitted: Any, n_draws: int) -> Any:
    """Let deep models draw so many functions for predictions."""

    def changed(fit: DeepFit) -> DeepFit:
        return dataclasses.replace(
            fit, config=dataclasses.replace(fit.config, n_mc_predict=n_draws)
        )

    def of(predictor: AbstractPredictor) -> AbstractPredictor:
        if isinstance(predictor, _Deep):
            return dataclasses.replace(predictor, fit=changed(predictor.fit))
        if isinstance(predictor, SideBySide):
            return SideBySide(tuple(of(one) for one in predictor.targets))  # pyright: ignore[reportArgumentType]
        assert isinstance(predictor, _Stack)
        parts = (
            DeepPart(changed(part.fit)) if isinstance(part, DeepPart) else part
            for part in predictor.parts
        )
        return dataclasses.replace(predictor, members=tuple(parts))

    return dataclasses.replace(fitted, predictor=of(fitted.predictor))
