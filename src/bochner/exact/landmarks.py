"""A Gaussian process of many rows, seen from some of them."""

import dataclasses
import functools
import itertools

import numpy as np
from jaxtyping import Float, Int

from bochner.exact.kernels import AbstractKernel
from bochner.exact.left_out import larger_groups
from bochner.exact.linear_algebra import factorize, half_solve, solve
from bochner.exact.rows import Rows
from bochner.system.threads import blas_on_one_thread

_BLOCK = 2048
_MOST_ENTRIES = 40_000_000
_LEAST_SHARE = 1e-10


@dataclasses.dataclass(frozen=True, eq=False)
class Landmarks:
    """Features `f(x) = L^-1 k(Z, x)` for landmark rows Z with `L L' = k(Z, Z)`.

    The covariance `f(x)' f(x')` is k itself where one of both is a landmark, and falls short elsewhere: by `missing`
    for a row with itself.

    Example:
        >>> import numpy as np
        >>> from bochner.exact.columns import Columns
        >>> from bochner.exact.kernels import RBF
        >>> from bochner.exact.landmarks import Landmarks
        >>> x = np.array([-1.0, 1.0])
        >>> columns = Columns.learn([x])
        >>> landmarks = Landmarks.of(RBF(), np.zeros(2), columns([x]))
        >>> features, missing = landmarks.features(columns([np.array([1.0, 100.0])]))
        >>> missing.round(3).tolist()
        [0.0, 1.0]
    """

    kernel: AbstractKernel
    v: Float[np.ndarray, " parameters"]
    rows: Rows

    @classmethod
    def of(cls, kernel: AbstractKernel, v, rows: Rows) -> "Landmarks":
        """Prepare the landmarks."""
        return cls(kernel, v, rows)

    @functools.cached_property
    def factor(self) -> Float[np.ndarray, "m m"]:
        """Lower Cholesky factor of `k(Z, Z)`, in the order of sums of the fit, so that files predict the same."""
        with blas_on_one_thread():
            return factorize(self.kernel.covariance(self.v, self.rows, self.rows))

    def features(self, rows: Rows) -> tuple[Float[np.ndarray, "n m"], Float[np.ndarray, " n"]]:
        """Compute features, and what they miss of `k(x, x)`."""
        features = half_solve(self.factor, self.kernel.covariance(self.v, self.rows, rows)).T
        diagonal = self.kernel.diagonal(self.v, rows)
        missing = diagonal - np.sum(features**2, axis=1)
        return features, np.maximum(missing, _LEAST_SHARE * diagonal)


@dataclasses.dataclass(frozen=True, eq=False)
class Seen:
    """All training rows through their features, in single precision where they are many.

    Attributes:
        landmarks: that give the features.
        features: of each row.
        missing: of each row's `k(x, x)`.
    """

    landmarks: Landmarks
    features: Float[np.ndarray, "n m"]
    missing: Float[np.ndarray, " n"]

    @classmethod
    def of(cls, landmarks: Landmarks, rows: Rows) -> "Seen":
        """Compute the features of all rows, block by block."""
        shape = (len(rows), len(landmarks.rows))
        features = np.empty(
            shape, np.float64 if shape[0] * shape[1] <= _MOST_ENTRIES else np.float32
        )
        missing = np.empty(len(rows))
        for start in range(0, len(rows), _BLOCK):
            block = slice(start, start + _BLOCK)
            features[block], missing[block] = landmarks.features(rows[block])
        return cls(landmarks, features, missing)

    def blocks(self):
        """Give the features in blocks of rows, in double precision."""
        for start in range(0, len(self.features), _BLOCK):
            block = slice(start, start + _BLOCK)
            yield block, np.asarray(self.features[block], np.float64)


@dataclasses.dataclass(frozen=True, eq=False)
class LandmarkProcess:
    """A process given all rows through landmarks, with what these miss of each row as noise of its own (FITC).

    Snelson and Ghahramani (2006): with `d_i = noise_i + missing_i` and `A = I + sum_i f_i f_i' / d_i` the function at a
    row has mean `f' A^-1 sum_i f_i t_i / d_i` and variance `f' A^-1 f + missing`. So it is that of the prior far from
    all landmarks, and the exact one where all rows are landmarks.

    Attributes:
        landmarks: that give the features.
        factor: lower Cholesky factor of A, rounded to single precision.
        weights: `A^-1 sum_i f_i t_i / d_i`.

    Example:
        >>> import numpy as np
        >>> from bochner.exact.columns import Columns
        >>> from bochner.exact.kernels import RBF
        >>> from bochner.exact.landmarks import LandmarkProcess, Landmarks, Seen
        >>> x = np.linspace(0, 6, 100)
        >>> columns = Columns.learn([x])
        >>> seen = Seen.of(Landmarks.of(RBF(), np.zeros(2), columns([x[::10]])), columns([x]))
        >>> process = LandmarkProcess.condition(seen, np.sin(x), np.full(100, 1e-2))
        >>> np.abs(process.predict(columns([x]))[0] - np.sin(x)).max() < 0.03
        np.True_
    """

    landmarks: Landmarks
    factor: Float[np.ndarray, "m m"]
    weights: Float[np.ndarray, " m"]

    @classmethod
    def condition(
        cls, seen: Seen, targets: Float[np.ndarray, " n"], noise: Float[np.ndarray, " n"]
    ) -> "LandmarkProcess":
        """Condition on targets with noise of given variances."""
        m = seen.features.shape[1]
        A, b = np.eye(m), np.zeros(m)
        precisions = 1 / (noise + seen.missing)
        for block, features in seen.blocks():
            weighted = features * np.sqrt(precisions[block])[:, None]
            A += weighted.T @ weighted
            b += features.T @ (precisions[block] * targets[block])
        factor = factorize(A)
        weights = solve(factor, b)
        # Weights are in double precision in files too, the factor is not: its rounding changes variances little.
        return cls(seen.landmarks, factor.astype(np.float32).astype(np.float64), weights)

    def predict(self, rows: Rows) -> tuple[Float[np.ndarray, " m"], Float[np.ndarray, " m"]]:
        """Compute mean and variance of the function, without noise."""
        found = [(np.zeros(0), np.zeros(0))]
        for start in range(0, len(rows), _BLOCK):
            features, missing = self.landmarks.features(rows[start : start + _BLOCK])
            found.append(self.given(features, missing))
        means, variances = zip(*found, strict=True)
        return np.concatenate(means), np.concatenate(variances)

    def given(self, features, missing) -> tuple[Float[np.ndarray, " m"], Float[np.ndarray, " m"]]:
        """Compute mean and variance from features."""
        return features @ self.weights, self._leverages(features) + missing

    def left_out(
        self,
        seen: Seen,
        targets: Float[np.ndarray, " n"],
        noise: Float[np.ndarray, " n"],
        judged: Int[np.ndarray, " some"],
        groups: Int[np.ndarray, " n"] | None = None,
    ) -> tuple[Float[np.ndarray, " some"], Float[np.ndarray, " some"]]:
        """Compute mean and variance of the function at some rows, given all targets that are not of their group.

        With `H = F A^-1 F'` of a group, `D` its noise with what is missing and `r` its residuals, what is left of the
        targets is `(I - H D^-1)^-1 r`, and the variance of the function `H (I - D^-1 H)^-1` with what is missing.
        Landmarks and parameters stay.

        Args:
            seen: all training rows.
            targets: of all.
            noise: of all, the variance that the process was conditioned with.
            judged: the rows in question.
            groups: the group of each training row; each is its own where None.
        """
        features = np.asarray(seen.features[judged], np.float64)
        missing = seen.missing[judged]
        d = noise[judged] + missing
        spread = self._leverages(features)
        share = np.maximum(1 - spread / d, 1e-6)
        mean = targets[judged] - (targets[judged] - features @ self.weights) / share
        variance = spread / share
        for members, places, bounds in _larger_groups_of(judged, groups):
            features = np.asarray(seen.features[members], np.float64)
            d, residuals = noise[members] + seen.missing[members], targets[members]
            residuals = residuals - features @ self.weights
            whitened = half_solve(self.factor, features.T)
            for group in bounds:
                own_mean, own_variance = _without(whitened[:, group], residuals[group], d[group])
                is_judged = places[group] >= 0
                place = places[group][is_judged]
                mean[place] = targets[judged[place]] - residuals[group][is_judged]
                mean[place] += own_mean[is_judged]
                variance[place] = own_variance[is_judged]
        return mean, variance + missing

    def _leverages(self, features) -> Float[np.ndarray, " n"]:
        return np.sum(half_solve(self.factor, features.T) ** 2, axis=0)


def _without(whitened, residuals, d):
    """Compute what leaving a group out changes of its function's mean, and its variance then."""
    m, n = whitened.shape
    if n <= m:
        own = whitened.T @ whitened
        rest, of_residuals = np.diag(d) - own, residuals
    else:
        scaled = whitened / np.sqrt(d)
        own, of_residuals = whitened, whitened @ (residuals / d)
        rest = np.eye(m) - scaled @ scaled.T
    shared = half_solve(factorize(rest), np.column_stack([own, of_residuals]))
    variance = np.sum(shared[:, :-1] ** 2, axis=0)
    return -shared[:, :-1].T @ shared[:, -1], variance + (np.diag(own) if n <= m else 0.0)


def _larger_groups_of(judged, groups):
    """Give the rows of groups of two or more that have a judged row, in lots of several groups.

    With each lot comes the place of each row among the judged, -1 where it is not one, and the slice of each group.
    """
    if groups is None:
        return
    place = np.full(len(groups), -1)
    place[judged] = np.arange(len(judged))
    lot: list[np.ndarray] = []
    is_wanted = np.isin(groups, groups[judged])
    everyone = np.flatnonzero(is_wanted)
    for members in [everyone[group] for group in larger_groups(groups[everyone])] + [None]:
        if lot and (members is None or sum(map(len, lot)) + len(members) > _BLOCK):
            ends = np.cumsum([0, *map(len, lot)])
            rows = np.concatenate(lot)
            yield rows, place[rows], [slice(*pair) for pair in itertools.pairwise(ends)]
            lot = []
        if members is not None:
            lot.append(members)


def choose_landmarks(rows: Rows, n_landmarks: int, seed: int) -> Int[np.ndarray, " m"]:
    """Choose rows with different inputs at random; of categories of many values, first one row for each value.

    For what no landmark has in common with a row, the landmarks miss. Half of them stay for the other columns.

    Example:
        >>> import numpy as np
        >>> from bochner.exact.columns import Columns
        >>> from bochner.exact.landmarks import choose_landmarks
        >>> x = np.array([1.0, 1.0, 2.0, 2.0])
        >>> len(choose_landmarks(Columns.learn([x])([x]), 3, seed=0))
        2
    """
    order = np.random.default_rng(seed).permutation(len(rows))
    _, first = np.unique(rows.groups()[order], return_index=True)
    different = order[np.sort(first)]
    found = [different[:0]]
    for place in rows.layout.of_many_values:
        _, own, counts = np.unique(
            rows.codes[different, place], return_index=True, return_counts=True
        )
        most = n_landmarks // 2 // len(rows.layout.of_many_values)
        found.append(different[own[np.argsort(-counts, kind="stable")][:most]])
    chosen = np.unique(np.concatenate(found))
    others = different[~np.isin(different, chosen)][: max(n_landmarks - len(chosen), 0)]
    return np.sort(np.concatenate([chosen, others]))
