"""Classification of many rows: parameters from an exact model of some, then landmarks and all rows."""

import dataclasses

import numpy as np
from jaxtyping import Float, Int

from bochner.exact.classes import (
    Classification,
    ClassPart,
    choose_temperature,
    frequency_part,
    learn_from_classes,
)
from bochner.exact.dirichlet import dirichlet_targets
from bochner.exact.landmarks import LandmarkProcess, Landmarks, Seen, choose_landmarks
from bochner.exact.learning import Effort
from bochner.exact.parts import LINEAR_KERNEL, SMOOTH_KERNEL, TABLE_KERNEL
from bochner.exact.rows import Rows
from bochner.exact.sizes import Sizes, whole_groups

_N_JUDGED = 3000
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


def fit_classification(
    rows: Rows,
    labels: Int[np.ndarray, " n"],
    n_classes: int,
    *,
    groups: Int[np.ndarray, " n"] | None = None,
    effort: Effort | None = None,
    sizes: Sizes | None = None,
    seed: int = 0,
) -> Classification:
    """Fit Dirichlet classification on landmarks: the covariance with and without its rough part, stacked.

    Example:
        >>> import numpy as np
        >>> from bochner.exact.columns import Columns
        >>> from bochner.exact.landmark_classes import fit_classification
        >>> from bochner.exact.sizes import Sizes
        >>> x = np.linspace(0, 6, 400)
        >>> columns = Columns.learn([x])
        >>> model = fit_classification(columns([x]), (np.sin(x) > 0).astype(int), 2, sizes=Sizes(100, 50, 50))
        >>> model.predict_proba(columns([np.array([1.5, 4.5])])).round(1).tolist()
        [[0.0, 1.0], [1.0, 0.0]]
    """
    groups = rows.groups() if groups is None else np.unique(groups, return_inverse=True)[1]
    sizes, effort = sizes or Sizes(), effort or Effort(all=15)
    judged, _ = whole_groups(groups, _N_JUDGED, seed)
    sample = np.sort(np.random.default_rng(seed).permutation(len(rows))[: sizes.learned_from])
    most = int(max(500, (_WORK / (len(rows) * n_classes)) ** 0.5))
    chosen = choose_landmarks(rows, min(sizes.landmarks_of_classes, most), seed)
    frequent = frequency_part(labels, n_classes, len(labels))
    parts = [dataclasses.replace(frequent, left_out=frequent.left_out[judged])]
    kernels = (("linear", LINEAR_KERNEL), ("smooth", SMOOTH_KERNEL), ("sum", TABLE_KERNEL))
    for kind, kernel in kernels if rows.layout.n_axes else ():
        v = learn_from_classes(kernel, rows[sample], labels[sample], n_classes, 0.03, effort, seed)
        few = 3 * rows.numbers.shape[1] + _MORE_LANDMARKS if kind == "linear" else len(chosen)
        seen = Seen.of(Landmarks.of(kernel, v, rows[chosen[:few]]), rows)
        for strength in (0.1,) if kind == "linear" else (0.01, 0.1):
            targets, noise = dirichlet_targets(labels, n_classes, strength)
            offsets = np.mean(targets, axis=0)
            processes, means, variances = [], [], []
            for c in range(n_classes):
                t = targets[:, c] - offsets[c]
                process = LandmarkProcess.condition(seen, t, noise[:, c])
                mean, variance = process.left_out(seen, t, noise[:, c], judged, groups[judged])
                means.append(mean + offsets[c])
                variances.append(np.maximum(variance - noise[judged, c], 1e-6))
                processes.append(process)
            of_judged = np.stack(means, axis=1), np.stack(variances, axis=1)
            temperature, left = choose_temperature(*of_judged, labels[judged])
            functions = LandmarkClassProcesses(tuple(processes), offsets)
            name = f"{kind}, strength {strength:g}"
            parts.append(ClassPart(name, functions, frequent.frequencies, temperature, left))
    return Classification.stacked(parts, labels, judged)
