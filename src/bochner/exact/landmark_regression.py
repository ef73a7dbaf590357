"""Regression of many rows: parameters from an exact model of some, then landmarks and all rows."""

import dataclasses

import numpy as np
from jaxtyping import Float, Int

from bochner.exact.folds import folds_of_groups
from bochner.exact.kernels import AbstractKernel
from bochner.exact.landmarks import LandmarkProcess, Landmarks, Seen, choose_landmarks
from bochner.exact.laws import Law, log_density
from bochner.exact.learning import Effort, learn
from bochner.exact.marginal import LearnedNoise
from bochner.exact.parts import (
    LINEAR_KERNEL,
    SMOOTH_KERNEL,
    TABLE_KERNEL,
    Part,
    constant_part,
)
from bochner.exact.process import Process
from bochner.exact.regression import Regression
from bochner.exact.rows import Rows
from bochner.exact.sizes import Sizes, whole_groups
from bochner.exact.tails import Tails
from bochner.exact.transforms import AbstractTransform, candidates
from bochner.exact.varying_noise import learn_noise

_N_FOLDS = 10
_N_JUDGED = 3000
_N_FOR_NOISE = 1000
_STEP_OF_NOISE = 2.5
_MOST_TRIES = 4
_MORE_LANDMARKS = 50


def fit_regression(
    rows: Rows,
    y: Float[np.ndarray, " n"],
    *,
    groups: Int[np.ndarray, " n"] | None = None,
    effort: Effort | None = None,
    sizes: Sizes | None = None,
    varying_noise: bool = True,
    seed: int = 0,
) -> Regression:
    """Fit regression on landmarks: the covariance with and without its rough part, and noise that varies, stacked.

    The transform of the target is the one under which rows left out of an exact model of a sample are most probable.

    Example:
        >>> import numpy as np
        >>> from bochner.exact.columns import Columns
        >>> from bochner.exact.landmark_regression import fit_regression
        >>> from bochner.exact.sizes import Sizes
        >>> x = np.linspace(0, 6, 400)
        >>> columns = Columns.learn([x])
        >>> model = fit_regression(columns([x]), np.sin(x), sizes=Sizes(100, 50))
        >>> np.abs(model.predict(columns([x[:9]])).mean - np.sin(x[:9])).max() < 0.02
        np.True_
    """
    groups = rows.groups() if groups is None else np.unique(groups, return_inverse=True)[1]
    fitting = _Fitting(rows, y, groups, effort or Effort(all=20), sizes or Sizes(), seed)
    return fitting.regression(varying_noise)


@dataclasses.dataclass(eq=False)
class _Fitting:
    rows: Rows
    y: Float[np.ndarray, " n"]
    groups: Int[np.ndarray, " n"]
    effort: Effort
    sizes: Sizes
    seed: int

    def __post_init__(self) -> None:
        n = len(self.y)
        order = np.random.default_rng(self.seed).permutation(n)
        self.sample = np.sort(order[: self.sizes.learned_from])
        self.judged, others = whole_groups(self.groups, _N_JUDGED, self.seed)
        self.for_noise = others[:_N_FOR_NOISE]
        self.landmarks = choose_landmarks(self.rows, self.sizes.landmarks, self.seed)

    def regression(self, varying_noise: bool) -> Regression:
        name, transform, found = self._transform()
        t = transform(self.y)
        parts = [constant_part(f"constant, {name}", transform, self.y, self.judged)]
        if not self.rows.layout.n_axes:
            return Regression.stacked(parts, self.y, self.judged)
        n_features = self.rows.numbers.shape[1]
        for kind, kernel in (
            ("linear", LINEAR_KERNEL),
            ("smooth", SMOOTH_KERNEL),
            ("sum", TABLE_KERNEL),
        ):
            v = found if kind == "sum" else self._learn(kernel, t, None)
            few = 3 * n_features + _MORE_LANDMARKS if kind == "linear" else self.sizes.landmarks
            landmarks = Landmarks.of(kernel, v[1:], self.rows[self.landmarks[:few]])
            seen = Seen.of(landmarks, self.rows)
            noise, process = self._search(seen, t, float(np.exp(v[0])))
            ones = np.ones(len(t))
            parts.append(self._part(f"{kind}, {name}", transform, seen, process, noise, ones, None))
            if varying_noise and kind != "linear" and len(self.for_noise) >= _N_FOR_NOISE // 2:
                parts.append(
                    self._varying(
                        f"{kind} with varying noise, {name}", transform, seen, process, noise
                    )
                )
        return Regression.stacked(parts, self.y, self.judged)

    def _transform(self) -> tuple[str, AbstractTransform, np.ndarray]:
        """Choose the transform by the exact model of the sample; give the parameters found for it."""
        best, chosen, start = -np.inf, None, None
        sample, folds = self.rows[self.sample], None
        for name, transform in candidates(self.y).items():
            if not self.rows.layout.n_axes:
                return name, transform, np.zeros(0)
            t = transform(self.y)
            v = self._learn(TABLE_KERNEL, t, start)
            start = v if start is None else start
            noise = np.full(len(sample), np.exp(v[0]))
            process = Process.condition(TABLE_KERNEL, v[1:], sample, t[self.sample], noise)
            folds = folds_of_groups(
                np.unique(self.groups[self.sample], return_inverse=True)[1], _N_FOLDS, self.seed
            )
            mean, variance = process.left_out(folds)
            z = (t[self.sample] - mean) / np.sqrt(variance)
            tails = Tails.learn(z)
            law = Law(transform, mean, tails.factor * np.sqrt(variance), tails.degrees)
            score = float(np.mean(law.log_density(self.y[self.sample])))
            if score > best:
                best, chosen = score, (name, transform, v)
        assert chosen is not None
        return chosen

    def _learn(self, kernel: AbstractKernel, t, start) -> np.ndarray:
        noise = LearnedNoise(np.ones(len(self.sample)))
        effort = (
            self.effort if kernel is not LINEAR_KERNEL else dataclasses.replace(self.effort, all=3)
        )
        return learn(
            kernel,
            self.rows[self.sample],
            t[self.sample][:, None],
            noise,
            effort=effort,
            start=start,
            seed=self.seed,
        )

    def _search(self, seen: Seen, t, noise: float) -> tuple[float, LandmarkProcess]:
        """Step the noise up or down from what the sample called for, as long as left-out rows gain."""
        ones, tried = np.ones(len(t)), {}

        def score(step: int) -> float:
            if step not in tried:
                level = noise * _STEP_OF_NOISE**step * ones
                process = LandmarkProcess.condition(seen, t, level)
                mean, variance = process.left_out(
                    seen, t, level, self.judged, self.groups[self.judged]
                )
                deviation = np.sqrt(variance)
                density = log_density((t[self.judged] - mean) / deviation, np.inf) - np.log(
                    deviation
                )
                tried[step] = (float(np.sum(density)), level[0], process)
            return tried[step][0]

        best = 0
        for direction in (-1, 1):
            while len(tried) < _MOST_TRIES and score(best + direction) > score(best):
                best += direction
            if best:
                break
        return tried[best][1:]

    def _varying(self, name, transform, seen: Seen, process: LandmarkProcess, noise: float) -> Part:
        t = transform(self.y)
        mean, _ = process.left_out(
            seen, t, np.full(len(t), noise), self.for_noise, self.groups[self.for_noise]
        )
        own = np.unique(self.groups[self.for_noise], return_inverse=True)[1]
        model, _ = learn_noise(
            self.rows[self.for_noise], t[self.for_noise] - mean, own, seed=self.seed
        )
        relative = model(self.rows)
        return self._part(
            name,
            transform,
            seen,
            LandmarkProcess.condition(seen, t, noise * relative),
            noise,
            relative,
            model,
        )

    def _part(self, name, transform, seen, process, noise, relative, model) -> Part:
        t, judged = transform(self.y), self.judged
        mean, variance = process.left_out(seen, t, noise * relative, judged, self.groups[judged])
        part = Part(name, transform, process, noise, model)
        return part.judged_by(self.y[judged], mean, variance)
