"""Classification of many rows: parameters from an exact model of some, then landmarks and all rows."""

import dataclasses

import numpy as np
from jaxtyping import Float, Int

from bochner.exact.classes import (
    ClassPart,
    choose_temperature,
    frequency_part,
    learn_from_classes,
    weighted_targets,
)
from bochner.exact.deadlines import NEVER, is_past
from bochner.exact.kernels import AbstractKernel
from bochner.exact.landmarks import LandmarkProcess, Landmarks, Seen, choose_landmarks
from bochner.exact.learning import Effort
from bochner.exact.parts import kernels_of_parts
from bochner.exact.rows import Rows
from bochner.exact.sizes import Sizes

_WORK = 4e11
_MORE_LANDMARKS = 50


@dataclasses.dataclass(frozen=True, eq=False)
class LandmarkClassProcesses:
    """One process a class, on the same landmarks."""

    processes: tuple[LandmarkProcess, ...]
    offsets: Float[np.ndarray, " classes"]

    def predict(self, rows: Rows):
        """Compute mean and variance at each row, for each class."""
        landmarks = self.processes[0].landmarks
        means, variances = np.empty((2, len(rows), len(self.processes)))
        for start in range(0, len(rows), 2048):
            block = slice(start, start + 2048)
            features, missing = landmarks.features(rows[block])
            for c, process in enumerate(self.processes):
                means[block, c], variances[block, c] = process.given(features, missing)
        return means + self.offsets, variances


def landmark_class_parts(
    rows: Rows,
    labels: Int[np.ndarray, " n"],
    n_classes: int,
    judged: Int[np.ndarray, " judged"],
    *,
    weights: Float[np.ndarray, " n"] | None = None,
    groups: Int[np.ndarray, " n"] | None = None,
    kernel: AbstractKernel | None = None,
    effort: Effort | None = None,
    sizes: Sizes | None = None,
    seed: int = 0,
    until: float = NEVER,
) -> list[ClassPart]:
    """Fit Dirichlet classification on landmarks: the covariance with and without its rough part.

    Args:
        rows: the training rows.
        labels: the class of each, counted from zero.
        n_classes: how many classes there are.
        judged: the rows by which parts are judged, in this order.
        weights: of the rows, all positive; a row of weight w counts like w rows. Each counts once where None.
        groups: rows of the same group are left out together; each alone where None.
        kernel: the covariance of the sum, in place of the one for tables and of the smooth one.
        effort: what is spent on learning hyper-parameters.
        sizes: which rows are used for what.
        seed: of samples of rows.
        until: the deadline, on the clock of `time.monotonic`. Frequencies and linear parts come all the same.

    Example:
        >>> import numpy as np
        >>> from bochner.exact.columns import Columns
        >>> from bochner.exact.landmark_classes import landmark_class_parts
        >>> from bochner.exact.sizes import Sizes
        >>> x = np.linspace(0, 6, 400)
        >>> columns = Columns.learn([x])
        >>> labels, judged = (np.sin(x) > 0).astype(int), np.arange(0, 400, 2)
        >>> part = landmark_class_parts(columns([x]), labels, 2, judged, sizes=Sizes(100, 50, 50))[-1]
        >>> part.probabilities(columns([np.array([1.5, 4.5])])).round(1).tolist()
        [[0.0, 1.0], [1.0, 0.0]]
    """
    alone = np.arange(len(labels))
    groups = alone if groups is None else np.unique(groups, return_inverse=True)[1]
    weights = np.ones(len(labels)) if weights is None else np.asarray(weights, np.float64)
    sizes, effort = sizes or Sizes(), effort or Effort(all=15)
    sample = np.sort(np.random.default_rng(seed).permutation(len(rows))[: sizes.learned_from])
    most = int(max(500, (_WORK / max(len(rows) * n_classes, 1)) ** 0.5))
    chosen = choose_landmarks(rows, min(sizes.landmarks_of_classes, most), seed)
    frequent = frequency_part(labels, n_classes, weights, groups)
    parts = [dataclasses.replace(frequent, left_out=frequent.left_out[judged])]
    kernels = kernels_of_parts(kernel)
    for kind, kernel in kernels.items() if rows.layout.n_axes and len(labels) > 2 else ():
        if kind != "linear" and is_past(until):
            break
        v = learn_from_classes(
            kernel,
            rows[sample],
            labels[sample],
            n_classes,
            weights[sample],
            strength=0.03,
            effort=effort,
            seed=seed,
            until=NEVER if kind == "linear" else until,
        )
        few = 3 * rows.n_directions + _MORE_LANDMARKS if kind == "linear" else len(chosen)
        seen = Seen.of(Landmarks.of(kernel, v, rows[chosen[:few]]), rows)
        for strength in (0.1,) if kind == "linear" else (0.01, 0.1):
            targets, noise, offsets = weighted_targets(labels, n_classes, strength, weights)
            processes, means, variances = [], [], []
            for t, own in zip(targets.T, noise.T, strict=True):
                process = LandmarkProcess.condition(seen, t, own)
                mean, variance = process.left_out(seen, t, own, judged, groups)
                means.append(mean)
                variances.append(variance)
                processes.append(process)
            temperature, left = choose_temperature(
                np.stack(means, axis=1) + offsets,
                np.stack(variances, axis=1),
                labels[judged],
                weights[judged],
            )
            functions = LandmarkClassProcesses(tuple(processes), offsets)
            name = f"{kind}, strength {strength:g}"
            share = frequent.frequencies
            parts.append(ClassPart(name, kind, functions, share, temperature, left, strength))
    return parts
