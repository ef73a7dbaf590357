"""The UCI tables and their like, with the paper's folds and the standard splits."""

import numpy as np

from bochner.datasets.dataset import Dataset
from bochner.datasets.files import checked_path

TARGETS = {
    "boston": "MEDV",
    "concrete": "compressive_strength_MPa",
    "energy": "heating_load",
    "kin40k": "distance",
    "powerplant": "PE",
    "protein": "RMSD",
    "wine_red": "quality",
    "yacht": "residuary_resistance",
}
N_CLASSES = {"credit": 2, "eeg": 2, "spam": 2}


def load_table(name: str) -> Dataset:
    """Read one table and check that it holds what it should."""
    with np.load(checked_path(f"{name}.npz"), allow_pickle=False) as file:
        arrays = {key: file[key] for key in file.files}
    X, y = arrays["X"], arrays["y"]
    target = str(arrays.get("target_name", ""))
    expected = TARGETS.get(name, "")
    if target != expected:
        raise ValueError(f"the target of {name} must be {expected}; the file says {target!r}.")
    classes = tuple(str(c) for c in arrays.get("class_names", ()))
    if len(classes) != N_CLASSES.get(name, 0) or len(X) != len(y):
        raise ValueError(
            f"{name}.npz does not hold what it should: {len(classes)} classes, {len(y)} rows."
        )
    folds = [arrays[key] for key in sorted(arrays) if key.startswith("test_idx_fold")]
    return Dataset(
        name=name,
        X=X.astype(np.float64),
        y=y,
        feature_names=tuple(str(feature) for feature in arrays["feature_names"]),
        target_name="" if classes else target,
        class_names=classes,
        folds=tuple(folds),
        splits=_standard_splits(name),
    )


def _standard_splits(name: str) -> tuple[np.ndarray, ...]:
    with np.load(checked_path("standard_splits.npz"), allow_pickle=False) as file:
        count = sum(key.startswith(f"{name}_test_") for key in file.files)
        return tuple(file[f"{name}_test_{k}"] for k in range(count))
