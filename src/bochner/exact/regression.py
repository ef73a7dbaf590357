"""Regression in the space of rows: exact Gaussian processes of transformed targets, stacked by left-out rows."""

import dataclasses
import functools
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int

from bochner.exact.folds import folds_of_groups
from bochner.exact.laws import Mixture
from bochner.exact.learning import Effort, learn
from bochner.exact.marginal import LEAST_NOISE, LearnedNoise
from bochner.exact.parts import LINEAR_KERNEL, TABLE_KERNEL, Part, constant_part
from bochner.exact.process import Process
from bochner.exact.rows import Rows
from bochner.exact.stacking import mixed, stack
from bochner.exact.transforms import AbstractTransform, candidates
from bochner.exact.varying_noise import learn_noise, left_out_by_folds

_N_FOLDS = 10
_LEAST_WEIGHT = 1e-3
_FEWEST_FOR_NOISE = 60
_FEWEST_FOR_REFITS = 80
_ROWS_AN_AXIS = 10  # with fewer, folds are judged by parameters learned without them


@dataclasses.dataclass(frozen=True, eq=False)
class Regression:
    """A mixture of exact models, with weights by left-out rows.

    Attributes:
        parts: the models.
        weights: of the models, of which the smallest are zero.
        extent: least and largest training target.
        judged: the training rows that were left out.

    Example:
        >>> import numpy as np
        >>> from bochner.exact.columns import Columns
        >>> from bochner.exact.regression import Regression
        >>> x = np.linspace(0, 6, 40)
        >>> columns = Columns.learn([x])
        >>> model = Regression.fit(columns([x]), np.sin(x))
        >>> law = model.predict(columns([np.array([1.0, 2.0])]))
        >>> np.abs(law.mean - np.sin([1.0, 2.0])).max() < 0.05
        np.True_
        >>> law.quantiles([0.05, 0.95]).shape
        (2, 2)
    """

    parts: tuple[Part, ...]
    weights: Float[np.ndarray, " parts"]
    extent: tuple[float, float]
    judged: Int[np.ndarray, " judged"]

    @classmethod
    def fit(
        cls,
        rows: Rows,
        y: Float[np.ndarray, " n"],
        *,
        groups: Int[np.ndarray, " n"] | None = None,
        effort: Effort | None = None,
        transforms: Sequence[str] | None = None,
        varying_noise: bool = True,
        seed: int = 0,
    ) -> "Regression":
        """Fit all parts and weigh them.

        Args:
            rows: the training rows.
            y: the training targets.
            groups: rows of the same group are left out together; those with equal inputs where None.
            effort: what is spent on learning hyper-parameters.
            transforms: names of the transforms to try; those worth it where None.
            varying_noise: whether to try noise that varies with the row.
            seed: of the sample of rows on which hyper-parameters are learned first, and of folds.
        """
        groups = rows.groups() if groups is None else np.unique(groups, return_inverse=True)[1]
        maker = _Maker(rows, y, groups, effort or Effort(), seed)
        parts: list[Part] = []
        for name, transform in candidates(y).items():
            if transforms is None or name in transforms:
                parts += maker.parts(name, transform, varying_noise)
        return cls.stacked(parts, y, np.arange(len(y)))

    @classmethod
    def stacked(
        cls, parts: list[Part], y: Float[np.ndarray, " n"], judged: Int[np.ndarray, " judged"]
    ) -> "Regression":
        """Weigh parts by the densities of left-out rows."""
        weights = stack(np.stack([part.left_out for part in parts], axis=1))
        weights = np.where(weights < _LEAST_WEIGHT, 0.0, weights)
        extent = (float(np.min(y)), float(np.max(y)))
        return cls(tuple(parts), weights / np.sum(weights), extent, judged)

    def predict(self, rows: Rows) -> Mixture:
        """Predict the law of the target at each row."""
        kept = np.flatnonzero(self.weights)
        laws = [self.parts[i].law(rows) for i in kept]
        return Mixture(self.weights[kept], laws, self.extent)

    def left_out(self) -> Float[np.ndarray, " judged"]:
        """Give the log density of each judged training target when it is left out."""
        return mixed(np.stack([part.left_out for part in self.parts], axis=1), self.weights)


@dataclasses.dataclass(eq=False)
class _Maker:
    """Makes the parts of one table, and keeps what one transform's fit can give the next."""

    rows: Rows
    y: Float[np.ndarray, " n"]
    groups: Int[np.ndarray, " n"]
    effort: Effort
    seed: int
    is_refit: bool = False

    def __post_init__(self) -> None:
        self.found: dict[str, np.ndarray] = {}
        self.made: dict[str, dict[str, Part]] = {}
        n_groups = int(self.groups.max(initial=-1)) + 1
        n_folds = min(_N_FOLDS, n_groups)
        self.folds = folds_of_groups(self.groups, n_folds, self.seed)
        self.ones = LearnedNoise(np.ones(len(self.y)))

    def parts(self, name: str, transform: AbstractTransform, varying_noise: bool) -> list[Part]:
        t = transform(self.y)
        made = [constant_part(f"constant, {name}", transform, self.y, np.arange(len(t)))]
        if len(self.y) < 3 or not self.rows.layout.n_axes:
            return made
        made.append(self._exact(f"linear, {name}", transform, t, "linear", LINEAR_KERNEL)[0])
        plain, process, mean = self._exact(f"sum, {name}", transform, t, "sum", TABLE_KERNEL)
        made.append(plain)
        if varying_noise and len(self.y) >= _FEWEST_FOR_NOISE:
            made.append(self._varying(f"sum with varying noise, {name}", plain, process, t, mean))
        if self.refits:
            made[1:] = [self._refitted(part, transform, name, varying_noise) for part in made[1:]]
        return made

    def _exact(self, name, transform, t, kind: str, kernel) -> tuple[Part, Process, np.ndarray]:
        effort = (
            self.effort if kind == "sum" else dataclasses.replace(self.effort, all=3, scales=(1.0,))
        )
        v = learn(
            kernel,
            self.rows,
            t[:, None],
            self.ones,
            effort=effort,
            start=self.found.get(kind),
            seed=self.seed,
        )
        self.found.setdefault(kind, v)
        noise = self.ones.variances(v)[:, 0]
        process = Process.condition(kernel, v[1:], self.rows, t, noise)
        mean, variance = process.left_out(self.folds)
        part = Part(name, transform, process, float(noise[0]))
        return part.judged_by(self.y, mean, variance), process, mean

    def _varying(self, name, plain: Part, plain_process: Process, t, mean) -> Part:
        model, relative = learn_noise(
            self.rows, t - mean, self.groups, v=self.found.get("noise"), seed=self.seed
        )
        self.found.setdefault("noise", model.process_parameters)
        noise = LearnedNoise(relative)
        start = np.append(np.log(plain.noise), plain_process.v)
        v = learn(TABLE_KERNEL, self.rows, t[:, None], noise, effort=self.effort, start=start)
        K = plain_process.kernel.covariance(plain_process.v, self.rows, self.rows)
        process = Process.condition(TABLE_KERNEL, v[1:], self.rows, t, noise.variances(v)[:, 0])
        mean, variance = left_out_by_folds(
            TABLE_KERNEL,
            v,
            model.process_parameters,
            self.rows,
            t,
            self.folds,
            self.groups,
            (K, plain.noise),
        )
        scale = float(np.exp(v[0]) + LEAST_NOISE)
        part = Part(name, plain.transform, process, scale, model)
        return part.judged_by(self.y, mean, variance)

    def _refitted(
        self, part: Part, transform: AbstractTransform, name: str, varying_noise: bool
    ) -> Part:
        """Judge a part by folds of which its parameters have seen nothing either."""
        mean, variance = np.empty((2, len(self.y)))
        for out, refit in self.refits:
            if name not in refit.made:
                own = refit.parts(name, transform, varying_noise)
                refit.made[name] = {one.name: one for one in own}
            mean[out], variance[out] = refit.made[name][part.name].moments(self.rows[out])
        return part.judged_by(self.y, mean, variance)

    @functools.cached_property
    def refits(self) -> list[tuple[Int[np.ndarray, " out"], "_Maker"]]:
        """Makers on all rows but two folds, for tables of so many axes that parameters could know the rows.

        Empty where parameters are few enough.
        """
        n = len(self.y)
        few_enough = self.rows.layout.n_axes * _ROWS_AN_AXIS <= n
        if self.is_refit or few_enough or n < _FEWEST_FOR_REFITS:
            return []
        effort = dataclasses.replace(self.effort, scales=self.effort.scales[:1])
        makers = []
        for fold in range(0, _N_FOLDS, 2):
            out = (self.folds == fold) | (self.folds == fold + 1)
            kept = np.flatnonzero(~out)
            groups = np.unique(self.groups[kept], return_inverse=True)[1]
            maker = _Maker(self.rows[kept], self.y[kept], groups, effort, self.seed, is_refit=True)
            makers.append((np.flatnonzero(out), maker))
        return makers
