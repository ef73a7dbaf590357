"""Regression of many rows: parameters from an exact model of some, then landmarks and all rows."""

import dataclasses

import numpy as np
from jaxtyping import Float, Int

from bochner.exact.deadlines import NEVER, is_past
from bochner.exact.folds import folds_of_groups
from bochner.exact.kernels import AbstractKernel
from bochner.exact.landmarks import LandmarkProcess, Landmarks, Seen, choose_landmarks
from bochner.exact.laws import log_density
from bochner.exact.learning import Effort, learn
from bochner.exact.marginal import LearnedNoise
from bochner.exact.parts import LINEAR_KERNEL, Kind, Part, constant_part, kernels_of_parts
from bochner.exact.process import Process
from bochner.exact.rows import Rows
from bochner.exact.sizes import Sizes
from bochner.exact.transforms import AbstractTransform, candidates
from bochner.exact.varying_noise import NoiseModel, learn_noise

_N_FOLDS = 10
_N_FOR_NOISE = 1000
_STEP_OF_NOISE = 2.5
_MOST_TRIES = 4
_MORE_LANDMARKS = 50


def landmark_parts(
    rows: Rows,
    y: Float[np.ndarray, " n"],
    judged: Int[np.ndarray, " judged"],
    *,
    weights: Float[np.ndarray, " n"] | None = None,
    groups: Int[np.ndarray, " n"] | None = None,
    kernel: AbstractKernel | None = None,
    effort: Effort | None = None,
    sizes: Sizes | None = None,
    varying_noise: bool = True,
    seed: int = 0,
    until: float = NEVER,
) -> list[Part]:
    """Fit parts on landmarks: the covariance with and without its rough part, and noise that varies.

    The transform of the target is the one under which rows left out of an exact model of a sample are most probable.

    Args:
        rows: the training rows.
        y: the training targets.
        judged: the rows by which parts are judged, in this order.
        weights: of the rows, all positive; a row of weight w counts like w rows. Each counts once where None.
        groups: rows of the same group are left out together; those with equal inputs where None.
        kernel: the covariance of the sum, in place of the one for tables and of the smooth one.
        effort: what is spent on learning hyper-parameters.
        sizes: which rows are used for what.
        varying_noise: whether to try noise that varies with the row.
        seed: of samples of rows, and of folds.
        until: the deadline, on the clock of `time.monotonic`. Constant and linear parts come all the same.

    Example:
        >>> import numpy as np
        >>> from bochner.exact.columns import Columns
        >>> from bochner.exact.landmark_regression import landmark_parts
        >>> from bochner.exact.sizes import Sizes
        >>> x = np.linspace(0, 6, 400)
        >>> columns = Columns.learn([x])
        >>> parts = landmark_parts(columns([x]), np.sin(x), np.arange(0, 400, 3), sizes=Sizes(100, 50))
        >>> [part.kind for part in parts], len(parts[0].left_out)
        (['constant', 'linear', 'smooth', 'sum'], 134)
    """
    groups = rows.groups() if groups is None else np.unique(groups, return_inverse=True)[1]
    weights = np.ones(len(y)) if weights is None else np.asarray(weights, np.float64)
    fitting = _Fitting(
        rows, y, judged, weights, groups, kernels_of_parts(kernel), effort or Effort(all=20),
        sizes or Sizes(), seed, until,
    )  # fmt: skip
    return fitting.parts(varying_noise)


@dataclasses.dataclass(eq=False)
class _Fitting:
    rows: Rows
    y: Float[np.ndarray, " n"]
    judged: Int[np.ndarray, " judged"]
    weights: Float[np.ndarray, " n"]
    groups: Int[np.ndarray, " n"]
    kernels: dict[Kind, AbstractKernel]
    effort: Effort
    sizes: Sizes
    seed: int
    until: float

    def __post_init__(self) -> None:
        rng = np.random.default_rng(self.seed)
        self.sample = np.sort(rng.permutation(len(self.y))[: self.sizes.learned_from])
        others = np.flatnonzero(~np.isin(self.groups, self.groups[self.judged]))
        self.for_noise = rng.permutation(others)[:_N_FOR_NOISE]
        self.landmarks = choose_landmarks(self.rows, self.sizes.landmarks, self.seed)

    def parts(self, varying_noise: bool) -> list[Part]:
        transforms = candidates(self.y, self.weights)
        if not self.rows.layout.n_axes or len(self.y) < 3:
            return [self._constant(name, transform) for name, transform in transforms.items()]
        name, transform, found = self._transform(transforms)
        t = transform(self.y)
        parts = [self._constant(name, transform)]
        for kind, kernel in self.kernels.items():
            if kind != "linear" and is_past(self.until):
                break
            v = found if kind == "sum" and found is not None else self._learn(kernel, t, None)
            landmarks = self.landmarks
            if kind == "linear":
                landmarks = landmarks[: 3 * self.rows.n_directions + _MORE_LANDMARKS]
            seen = Seen.of(Landmarks.of(kernel, v[1:], self.rows[landmarks]), self.rows)
            plain = _Plain(f"{kind}, {name}", kind, transform, seen, t)
            noise, process = self._search(plain, LearnedNoise.variance(v))
            parts.append(self._part(plain.name, plain, process, noise, np.ones(len(t)), None))
            if (
                varying_noise
                and kind != "linear"
                and len(self.for_noise) >= _N_FOR_NOISE // 2
                and not is_past(self.until)
            ):
                parts.append(
                    self._varying(f"{kind} with varying noise, {name}", plain, process, noise)
                )
        return parts

    def _constant(self, name: str, transform: AbstractTransform) -> Part:
        return constant_part(
            f"constant, {name}", transform, self.y, self.judged, self.weights, self.groups
        )

    def _transform(
        self, tried: dict[str, AbstractTransform]
    ) -> tuple[str, AbstractTransform, np.ndarray | None]:
        """Choose the transform by the exact model of the sample; give the parameters found for it."""
        best, chosen, start = -np.inf, None, None
        own = self.sample
        folds = folds_of_groups(
            np.unique(self.groups[own], return_inverse=True)[1], _N_FOLDS, self.seed
        )
        for name, transform in tried.items():
            if is_past(self.until):
                break
            t = transform(self.y)
            v = self._learn(self.kernels["sum"], t, start)
            start = v if start is None else start
            noise = LearnedNoise.variance(v)
            process = Process.condition(
                self.kernels["sum"], v[1:], self.rows[own], t[own], noise / self.weights[own]
            )
            mean, variance = process.left_out_new(noise, folds)
            part = Part(name, "sum", transform, None, noise)
            part = part.judged_by(self.y[own], mean, variance, self.weights[own])
            score = float(np.average(part.left_out, weights=self.weights[own]))
            if score > best:
                best, chosen = score, (name, transform, v)
        if chosen is None:
            name, transform = next(iter(tried.items()))
            return name, transform, None
        return chosen

    def _learn(self, kernel: AbstractKernel, t, start) -> np.ndarray:
        # The plane comes all the same.
        is_plane = kernel is LINEAR_KERNEL
        effort = dataclasses.replace(self.effort, all=3) if is_plane else self.effort
        return learn(
            kernel,
            self.rows[self.sample],
            t[self.sample][:, None],
            LearnedNoise.of_weights(self.weights[self.sample]),
            effort=effort,
            start=start,
            seed=self.seed,
            until=NEVER if is_plane else self.until,
        )

    def _search(self, plain: "_Plain", noise: float) -> tuple[float, LandmarkProcess]:
        """Step the noise up or down from what the sample called for, as long as left-out rows gain."""
        tried: dict[int, tuple[float, float, LandmarkProcess]] = {}

        def score(step: int) -> float:
            if step not in tried:
                level = noise * _STEP_OF_NOISE**step
                process = LandmarkProcess.condition(plain.seen, plain.t, level / self.weights)
                mean, variance = self._left_out(plain, process, level / self.weights)
                deviation = np.sqrt(variance + level)
                density = log_density((plain.t[self.judged] - mean) / deviation, np.inf)
                density -= np.log(deviation)
                tried[step] = (float(self.weights[self.judged] @ density), level, process)
            return tried[step][0]

        best = 0
        score(0)
        for direction in (-1, 1):
            while (
                len(tried) < _MOST_TRIES
                and not is_past(self.until)
                and score(best + direction) > score(best)
            ):
                best += direction
            if best:
                break
        return tried[best][1:]

    def _left_out(self, plain: "_Plain", process: LandmarkProcess, noise):
        return process.left_out(plain.seen, plain.t, noise, self.judged, self.groups)

    def _varying(self, name: str, plain: "_Plain", process: LandmarkProcess, noise: float) -> Part:
        own = self.for_noise
        mean, _ = process.left_out(plain.seen, plain.t, noise / self.weights, own, self.groups)
        model, _ = learn_noise(
            self.rows[own],
            plain.t[own] - mean,
            np.unique(self.groups[own], return_inverse=True)[1],
            weights=self.weights[own],
            seed=self.seed,
            until=self.until,
        )
        relative = model(self.rows)
        process = LandmarkProcess.condition(plain.seen, plain.t, noise * relative / self.weights)
        return self._part(name, plain, process, noise, relative, model)

    def _part(
        self,
        name: str,
        plain: "_Plain",
        process: LandmarkProcess,
        noise: float,
        relative: Float[np.ndarray, " n"],
        model: NoiseModel | None,
    ) -> Part:
        judged = self.judged
        mean, variance = self._left_out(plain, process, noise * relative / self.weights)
        part = Part(name, plain.kind, plain.transform, process, noise, model)
        variance = variance + noise * relative[judged]
        return part.judged_by(self.y[judged], mean, variance, self.weights[judged])


@dataclasses.dataclass(frozen=True, eq=False)
class _Plain:
    """What a part with noise that varies has in common with the one without."""

    name: str
    kind: Kind
    transform: AbstractTransform
    seen: Seen
    t: Float[np.ndarray, " n"]
