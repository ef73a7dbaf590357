"""Regression in the space of rows: exact Gaussian processes of transformed targets, judged by left-out rows."""

import dataclasses
import functools
from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Float, Int

from bochner.exact.deadlines import NEVER, is_past
from bochner.exact.folds import folds_of_groups
from bochner.exact.kernels import AbstractKernel
from bochner.exact.learning import Effort, learn
from bochner.exact.marginal import LearnedNoise
from bochner.exact.parts import LINEAR_KERNEL, Kind, Part, constant_part, kernels_of_parts
from bochner.exact.process import Process
from bochner.exact.rows import Rows
from bochner.exact.transforms import AbstractTransform, candidates
from bochner.exact.varying_noise import learn_noise, left_out_by_folds

_N_FOLDS = 10
_FEWEST_FOR_NOISE = 60
_FEWEST_FOR_REFITS = 80
_ROWS_AN_AXIS = 10  # with fewer, folds are judged by parameters learned without them


def regression_parts(
    rows: Rows,
    y: Float[np.ndarray, " n"],
    *,
    judged: Int[np.ndarray, " judged"] | None = None,
    weights: Float[np.ndarray, " n"] | None = None,
    groups: Int[np.ndarray, " n"] | None = None,
    kernel: AbstractKernel | None = None,
    effort: Effort | None = None,
    transforms: Sequence[str] | None = None,
    varying_noise: bool = True,
    seed: int = 0,
    until: float = NEVER,
) -> list[Part]:
    """Fit the parts, each judged on training rows that it has left out.

    Args:
        rows: the training rows.
        y: the training targets.
        judged: the rows by which parts are judged, in this order; all where None.
        weights: of the rows, all positive; a row of weight w counts like w rows. Each counts once where None.
        groups: rows of the same group are left out together; those with equal inputs where None.
        kernel: the covariance of the sum; the one for tables where None.
        effort: what is spent on learning hyper-parameters.
        transforms: names of the transforms to try; those worth it where None.
        varying_noise: whether to try noise that varies with the row.
        seed: of the sample of rows on which hyper-parameters are learned first, and of folds.
        until: the deadline, on the clock of `time.monotonic`. Constant and linear parts come all the same.

    Example:
        >>> import numpy as np
        >>> from bochner.exact.columns import Columns
        >>> from bochner.exact.regression import regression_parts
        >>> x = np.linspace(0, 6, 40)
        >>> columns = Columns.learn([x])
        >>> parts = regression_parts(columns([x]), np.sin(x), transforms=["as it is"])
        >>> [part.name for part in parts]
        ['constant, as it is', 'linear, as it is', 'sum, as it is']
        >>> law = parts[-1].law(columns([np.array([1.0, 2.0])]))
        >>> np.abs(law.location * np.std(np.sin(x)) + np.mean(np.sin(x)) - np.sin([1.0, 2.0])).max() < 0.05
        np.True_
    """
    groups = rows.groups() if groups is None else np.unique(groups, return_inverse=True)[1]
    weights = np.ones(len(y)) if weights is None else np.asarray(weights, np.float64)
    tried = {
        name: transform
        for name, transform in candidates(y, weights).items()
        if transforms is None or name in transforms
    }
    kernel = kernels_of_parts(kernel)["sum"]
    judged = np.arange(len(y)) if judged is None else judged
    maker = _Maker(rows, y, judged, weights, groups, kernel, tried, effort or Effort(), seed, until)
    return maker.parts(varying_noise)


@dataclasses.dataclass(eq=False)
class _Maker:
    """Makes the parts of one table, and keeps what one part's fit can give the next."""

    rows: Rows
    y: Float[np.ndarray, " n"]
    judging: Int[np.ndarray, " judged"]
    weights: Float[np.ndarray, " n"]
    groups: Int[np.ndarray, " n"]
    kernel: AbstractKernel
    transforms: dict[str, AbstractTransform]
    effort: Effort
    seed: int
    until: float
    is_refit: bool = False

    def __post_init__(self) -> None:
        self.found: dict[str, np.ndarray] = {}
        self.made: dict[tuple[str, str], Part] = {}
        self.residuals: dict[str, np.ndarray] = {}
        n_groups = int(self.groups.max(initial=-1)) + 1
        self.folds = folds_of_groups(self.groups, min(_N_FOLDS, n_groups), self.seed)

    def parts(self, varying_noise: bool) -> list[Part]:
        made = [
            constant_part(
                f"constant, {name}", transform, self.y, self.judging, self.weights, self.groups
            )
            for name, transform in self.transforms.items()
        ]
        if len(self.y) < 3 or not self.rows.layout.n_axes:
            return made
        made += [self.judged(self.linear, name) for name in self.transforms]
        sums: list[Part] = []
        for name in self.transforms:
            if not is_past(self.until):
                sums.append(self.judged(self.sum, name))
        if varying_noise and len(self.y) >= _FEWEST_FOR_NOISE:
            own = self.weights[self.judging]
            by_score = sorted(sums, key=lambda part: -float(own @ part.left_out))
            for part in by_score[:1]:
                if not is_past(self.until):
                    sums.append(self.judged(self.varying, part.name.removeprefix("sum, ")))
        return made + sums

    def judged(self, make: "Callable[[str], Part]", name: str) -> Part:
        """Make a part, judged by folds of which its parameters have seen nothing where parameters are many."""
        part = make(name)
        if not self.refits:
            return part
        mean, variance = np.full((2, len(self.y)), np.nan)
        for out, refit in self.refits:
            mean[out], of_function, noise = getattr(refit, make.__name__)(name).moments(
                self.rows[out]
            )
            variance[out] = of_function + noise
        return self._judged_by(part, mean, variance)

    def _judged_by(self, part: Part, mean: np.ndarray, variance: np.ndarray) -> Part:
        own = self.judging
        return part.judged_by(self.y[own], mean[own], variance[own], self.weights[own])

    def linear(self, name: str) -> Part:
        light = dataclasses.replace(self.effort, all=0, scales=(1.0,))
        return self._plain("linear", name, LINEAR_KERNEL, light, NEVER)

    def sum(self, name: str) -> Part:
        return self._plain("sum", name, self.kernel, self.effort, self.until)

    def _plain(
        self, kind: Kind, name: str, kernel: AbstractKernel, effort: Effort, until: float
    ) -> Part:
        if (kind, name) in self.made:
            return self.made[kind, name]
        t = self.transforms[name](self.y)
        v = learn(
            kernel,
            self.rows,
            t[:, None],
            LearnedNoise.of_weights(self.weights),
            effort=effort,
            start=self.found.get(kind),
            seed=self.seed,
            until=until,
        )
        self.found.setdefault(kind, v)
        noise = LearnedNoise.variance(v)
        process = Process.condition(kernel, v[1:], self.rows, t, noise / self.weights)
        mean, variance = process.left_out_new(noise, self.folds)
        self.residuals[name] = t - mean
        part = Part(f"{kind}, {name}", kind, self.transforms[name], process, noise)
        self.made[kind, name] = self._judged_by(part, mean, variance)
        return self.made[kind, name]

    def varying(self, name: str) -> Part:
        plain, t = self.sum(name), self.transforms[name](self.y)
        assert isinstance(plain.process, Process)
        model, relative = learn_noise(
            self.rows,
            self.residuals[name],
            self.groups,
            weights=self.weights,
            v=self.found.get("noise"),
            seed=self.seed,
            until=self.until,
        )
        self.found.setdefault("noise", model.process_parameters)
        v = learn(
            self.kernel,
            self.rows,
            t[:, None],
            LearnedNoise.of_weights(self.weights, relative=relative),
            effort=self.effort,
            start=np.append(np.log(plain.noise), plain.process.v),
            until=self.until,
        )
        noise = LearnedNoise.variance(v)
        process = Process.condition(
            self.kernel, v[1:], self.rows, t, noise * relative / self.weights
        )
        mean, variance = left_out_by_folds(
            plain.process, model, v, self.folds, self.groups, self.weights
        )
        part = Part(
            f"sum with varying noise, {name}", "sum", plain.transform, process, noise, model
        )
        return self._judged_by(part, mean, variance)

    @functools.cached_property
    def refits(self) -> "list[tuple[Int[np.ndarray, ' out'], _Maker]]":
        """Makers on all rows but two folds, for tables of so many axes that parameters could know the rows.

        Empty where parameters are few enough.
        """
        n = len(self.y)
        few_enough = self.rows.layout.n_axes * _ROWS_AN_AXIS <= n
        if self.is_refit or few_enough or n < _FEWEST_FOR_REFITS:
            return []
        effort = dataclasses.replace(self.effort, scales=self.effort.scales[:1])
        makers = []
        for fold in range(0, int(self.folds.max()) + 1, 2):
            out = (self.folds == fold) | (self.folds == fold + 1)
            kept = np.flatnonzero(~out)
            if not len(kept):
                return []
            if not out[self.judging].any():
                continue
            groups = np.unique(self.groups[kept], return_inverse=True)[1]
            maker = _Maker(
                self.rows[kept],
                self.y[kept],
                np.arange(len(kept)),
                self.weights[kept],
                groups,
                self.kernel,
                self.transforms,
                effort,
                self.seed,
                self.until,
                is_refit=True,
            )
            makers.append((np.flatnonzero(out), maker))
        return makers
