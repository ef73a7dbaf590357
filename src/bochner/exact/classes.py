"""Classification in the space of rows: exact Gaussian processes of Dirichlet targets, stacked by left-out rows."""

import dataclasses
from typing import Protocol

import numpy as np
from jaxtyping import Float, Int

from bochner.exact.dirichlet import dirichlet_targets, probabilities
from bochner.exact.folds import folds_of_groups
from bochner.exact.kernels import AbstractKernel
from bochner.exact.learning import Effort, learn
from bochner.exact.marginal import GivenNoise
from bochner.exact.parts import LINEAR_KERNEL, TABLE_KERNEL
from bochner.exact.process import Process
from bochner.exact.rows import Rows
from bochner.exact.stacking import stack

STRENGTHS = (0.01, 0.1, 0.001)
"""Of the Dirichlet prior. Hyper-parameters are learned at the first, and held at the others."""
TEMPERATURES = (0.5, 0.6, 0.7, 0.85, 1.0, 1.2, 1.45, 1.75, 2.1)
_N_FOLDS = 10
_ROWS_AN_AXIS = 10  # with fewer, folds are judged by parameters learned without them
_MOST_LEARNED_FROM = 4
_VARIANCE = 3.0
_ROWS_FOR_NO_CHANGE = 25
_LEAST_PROBABILITY = 1e-6
_LEAST_WEIGHT = 1e-3


class Functions(Protocol):
    """Anything that gives mean and variance of a function for each class."""

    def predict(self, rows: Rows) -> tuple[Float[np.ndarray, "n c"], Float[np.ndarray, "n c"]]:
        """Compute mean and variance at each row, for each class."""
        ...


@dataclasses.dataclass(frozen=True, eq=False)
class ClassProcesses:
    """One process a class, with the same covariance.

    Attributes:
        processes: one a class.
        offsets: the prior mean of each.
    """

    processes: tuple[Process, ...]
    offsets: Float[np.ndarray, " classes"]

    def predict(self, rows: Rows):
        """Compute mean and variance at each row, for each class."""
        first = self.processes[0]
        cross = first.kernel.covariance(first.v, rows, first.rows)
        diagonal = first.kernel.diagonal(first.v, rows)
        found = [process.given(cross, diagonal) for process in self.processes]
        means, variances = (np.stack(one, axis=1) for one in zip(*found, strict=True))
        return means + self.offsets, variances


@dataclasses.dataclass(frozen=True, eq=False)
class ClassPart:
    """One model of the classes.

    Attributes:
        name: of the model.
        functions: what is normalized to probabilities; None where they are the same for all rows.
        frequencies: of the classes in training rows.
        temperature: by which functions are divided.
        left_out: probabilities of the classes for each judged training row when it is left out.
    """

    name: str
    functions: Functions | None
    frequencies: Float[np.ndarray, " classes"]
    temperature: float
    left_out: Float[np.ndarray, "judged classes"]

    def probabilities(self, rows: Rows) -> Float[np.ndarray, "n classes"]:
        """Compute the probability of each class at each row."""
        if self.functions is None:
            return np.tile(self.frequencies, (len(rows), 1))
        return safe(probabilities(*self.functions.predict(rows), self.temperature))


@dataclasses.dataclass(frozen=True, eq=False)
class Classification:
    """A mixture of exact models, with weights by left-out rows.

    Attributes:
        parts: the models.
        weights: of the models, of which the smallest are zero.
        judged: the training rows that were left out.

    Example:
        >>> import numpy as np
        >>> from bochner.exact.classes import Classification
        >>> from bochner.exact.columns import Columns
        >>> x = np.linspace(0, 6, 60)
        >>> columns = Columns.learn([x])
        >>> model = Classification.fit(columns([x]), (np.sin(2 * x) > 0).astype(int), 2)
        >>> model.predict_proba(columns([np.array([0.8, 2.4])])).round(1).tolist()
        [[0.0, 1.0], [1.0, 0.0]]
    """

    parts: tuple[ClassPart, ...]
    weights: Float[np.ndarray, " parts"]
    judged: Int[np.ndarray, " judged"]

    @classmethod
    def fit(
        cls,
        rows: Rows,
        labels: Int[np.ndarray, " n"],
        n_classes: int,
        *,
        groups: Int[np.ndarray, " n"] | None = None,
        effort: Effort | None = None,
        seed: int = 0,
    ) -> "Classification":
        """Fit all parts and weigh them.

        Args:
            rows: the training rows.
            labels: the class of each, counted from zero.
            n_classes: how many classes there are.
            groups: rows of the same group are left out together; those with equal inputs where None.
            effort: what is spent on learning hyper-parameters.
            seed: of the sample of rows on which hyper-parameters are learned first, and of folds.
        """
        groups = rows.groups() if groups is None else np.unique(groups, return_inverse=True)[1]
        folds = folds_of_groups(groups, _N_FOLDS, seed)
        parts = [frequency_part(labels, n_classes, len(labels))]
        if rows.layout.n_axes and len(labels) > 2:
            effort = effort or Effort()
            fitting = _Fitting(rows, labels, n_classes, folds, seed)
            light = dataclasses.replace(effort, all=3, scales=(1.0,))
            parts += fitting.parts("linear", LINEAR_KERNEL, (0.1,), light)
            parts += fitting.parts("sum", TABLE_KERNEL, STRENGTHS, effort)
        return cls.stacked(parts, labels, np.arange(len(labels)))

    @classmethod
    def stacked(
        cls,
        parts: list[ClassPart],
        labels: Int[np.ndarray, " n"],
        judged: Int[np.ndarray, " judged"],
    ) -> "Classification":
        """Weigh parts by the probabilities of left-out labels."""
        own = labels[judged]
        of_labels = np.stack([part.left_out[np.arange(len(own)), own] for part in parts], axis=1)
        weights = stack(np.log(of_labels))
        weights = np.where(weights < _LEAST_WEIGHT, 0.0, weights)
        return cls(tuple(parts), weights / np.sum(weights), judged)

    def predict_proba(self, rows: Rows) -> Float[np.ndarray, "n classes"]:
        """Compute the probability of each class at each row."""
        return np.asarray(
            sum(
                weight * part.probabilities(rows)
                for weight, part in zip(self.weights, self.parts, strict=True)
                if weight
            )
        )

    def left_out(self) -> Float[np.ndarray, "judged classes"]:
        """Give the probabilities of the classes for each judged training row when it is left out."""
        return np.asarray(
            sum(w * part.left_out for w, part in zip(self.weights, self.parts, strict=True))
        )


def frequency_part(labels: Int[np.ndarray, " n"], n_classes: int, n: int) -> ClassPart:
    """Make the model that says the same of each row, with half a row more in each class."""
    counts = np.bincount(labels, minlength=n_classes) + 0.5
    without = counts - (labels[:, None] == np.arange(n_classes))
    left = without / np.sum(without, axis=1, keepdims=True)
    return ClassPart("frequencies", None, counts / np.sum(counts), 1.0, left)


def choose_temperature(
    mean: Float[np.ndarray, "n c"],
    variance: Float[np.ndarray, "n c"],
    labels: Int[np.ndarray, " n"],
) -> tuple[float, Float[np.ndarray, "n c"]]:
    """Choose the temperature by left-out labels, as if 25 further rows had called for none; give probabilities too."""
    best, found = np.inf, None
    for temperature in TEMPERATURES:
        p = safe(probabilities(mean, variance, temperature))
        loss = -np.sum(np.log(p[np.arange(len(labels)), labels]))
        loss += 0.5 * _ROWS_FOR_NO_CHANGE * np.log(temperature) ** 2
        if loss < best:
            best, found = loss, (temperature, p)
    assert found is not None
    return found


def safe(p: Float[np.ndarray, "n c"]) -> Float[np.ndarray, "n c"]:
    """Keep probabilities from being zero."""
    p = np.maximum(p, _LEAST_PROBABILITY)
    return p / np.sum(p, axis=1, keepdims=True)


def learn_from_classes(
    kernel: AbstractKernel,
    rows: Rows,
    labels: Int[np.ndarray, " n"],
    n_classes: int,
    strength: float,
    effort: Effort,
    seed: int,
) -> Float[np.ndarray, " parameters"]:
    """Learn the parameters of the covariance from the most frequent classes, four at most."""
    targets, noise = dirichlet_targets(labels, n_classes, strength)
    counts = np.bincount(labels, minlength=n_classes)
    used = np.sort(np.argsort(-counts, kind="stable")[:_MOST_LEARNED_FROM])
    centered = (targets - np.mean(targets, axis=0))[:, used]
    return learn(
        kernel,
        rows,
        centered,
        GivenNoise(noise[:, used]),
        variance=_VARIANCE,
        effort=effort,
        seed=seed,
    )


@dataclasses.dataclass(frozen=True, eq=False)
class _Fitting:
    rows: Rows
    labels: Int[np.ndarray, " n"]
    n_classes: int
    folds: Int[np.ndarray, " n"]
    seed: int

    def parts(
        self, name: str, kernel: AbstractKernel, strengths: tuple[float, ...], effort: Effort
    ) -> list[ClassPart]:
        """Make a part for each strength, all with the parameters learned at the first."""
        v = self._learn(kernel, np.arange(len(self.labels)), strengths[0], effort)
        K = kernel.covariance(v, self.rows, self.rows)
        left = {}
        if self.rows.layout.n_axes * _ROWS_AN_AXIS > len(self.labels):
            left = self._left_out_of_refits(kernel, strengths, effort)
        made = []
        for strength in strengths:
            functions = self._condition(kernel, v, slice(None), strength, K)
            if strength not in left:
                left[strength] = self._left_out(functions)
            temperature, p = choose_temperature(left[strength][0], left[strength][1], self.labels)
            counts = np.bincount(self.labels, minlength=self.n_classes)
            share = counts / len(self.labels)
            made.append(
                ClassPart(f"{name}, strength {strength:g}", functions, share, temperature, p)
            )
        return made

    def _learn(self, kernel, index, strength: float, effort: Effort) -> np.ndarray:
        return learn_from_classes(
            kernel,
            self.rows[index],
            self.labels[index],
            self.n_classes,
            strength,
            effort,
            self.seed,
        )

    def _condition(self, kernel, v, index, strength: float, K) -> ClassProcesses:
        targets, noise = dirichlet_targets(self.labels[index], self.n_classes, strength)
        offsets = np.mean(targets, axis=0)
        return ClassProcesses(
            tuple(
                Process.condition(kernel, v, self.rows[index], t - offset, own, K)
                for t, offset, own in zip(targets.T, offsets, noise.T, strict=True)
            ),
            offsets,
        )

    def _left_out(self, functions: ClassProcesses) -> np.ndarray:
        means, variances = np.empty((2, len(self.labels), self.n_classes))
        for c, process in enumerate(functions.processes):
            mean, variance = process.left_out(self.folds)
            means[:, c] = mean + functions.offsets[c]
            variances[:, c] = np.maximum(variance - process.noise, 1e-6)
        return np.stack([means, variances])

    def _left_out_of_refits(self, kernel, strengths, effort: Effort):
        """Leave folds out with parameters learned anew, for parameters of many axes have seen what few rows say."""
        left = {strength: np.empty((2, len(self.labels), self.n_classes)) for strength in strengths}
        light = dataclasses.replace(effort, scales=effort.scales[:1], then=effort.then // 2, all=3)
        for fold in range(0, int(self.folds.max()) + 1, 2):
            out = (self.folds == fold) | (self.folds == fold + 1)
            kept = np.flatnonzero(~out)
            if not len(kept):
                return {}
            v = self._learn(kernel, kept, strengths[0], light)
            for strength in strengths:
                functions = self._condition(kernel, v, kept, strength, None)
                left[strength][:, out] = np.stack(functions.predict(self.rows[out]))
        return left
