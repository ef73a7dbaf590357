"""A Gaussian process of many rows, seen from some of them."""

import dataclasses

import numpy as np
from jaxtyping import Float, Int

from bochner.exact.kernels import AbstractKernel
from bochner.exact.left_out import larger_groups
from bochner.exact.linear_algebra import factorize, half_solve, solve
from bochner.exact.rows import Rows

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
    factor: Float[np.ndarray, "m m"]

    @classmethod
    def of(cls, kernel: AbstractKernel, v, rows: Rows) -> "Landmarks":
        """Prepare the landmarks."""
        return cls(kernel, v, rows, factorize(kernel.covariance(v, rows, rows)))

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
        factor: lower Cholesky factor of A.
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
        return cls(seen.landmarks, factor, solve(factor, b))

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
        groups: Int[np.ndarray, " some"] | None = None,
    ) -> tuple[Float[np.ndarray, " some"], Float[np.ndarray, " some"]]:
        """Compute mean and variance, noise included, of some targets given all others that are not of their group.

        With `H = F A^-1 F'` of a group, `D` its noise with what is missing and `r` its residuals, what is left of it
        is `(I - H D^-1)^-1 r`, with covariance `(I - H D^-1)^-1 D`. Landmarks and parameters stay.
        """
        features = np.asarray(seen.features[judged], np.float64)
        d = noise[judged] + seen.missing[judged]
        whitened = half_solve(self.factor, features.T)
        leverages = np.sum(whitened**2, axis=0) / d
        residual = targets[judged] - features @ self.weights
        share = np.maximum(1 - leverages, 1e-6)
        mean, variance = targets[judged] - residual / share, d / share
        for rows in larger_groups(groups):
            H = whitened[:, rows].T @ whitened[:, rows]
            rest = np.eye(len(rows)) - H / d[rows]
            mean[rows] = targets[judged][rows] - np.linalg.solve(rest, residual[rows])
            variance[rows] = np.diag(np.linalg.solve(rest, np.diag(d[rows])))
        return mean, variance

    def _leverages(self, features) -> Float[np.ndarray, " n"]:
        return np.sum(half_solve(self.factor, features.T) ** 2, axis=0)


def choose_landmarks(rows: Rows, n_landmarks: int, seed: int) -> Int[np.ndarray, " m"]:
    """Choose rows with different inputs at random.

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
    return np.sort(order[np.sort(first)[:n_landmarks]])
