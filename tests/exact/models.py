"""Models of every kind in the space of rows, small, for the tests of files, programs and draws."""

import functools

import numpy as np

from bochner.exact.cells import Cells
from bochner.exact.classes import ClassPart, ClassProcesses
from bochner.exact.densities import DensityPart
from bochner.exact.dirichlet import dirichlet_targets
from bochner.exact.kernels import RBF, Category, Constant, Laplace, Linear, Periodic
from bochner.exact.landmark_classes import LandmarkClassProcesses
from bochner.exact.landmarks import LandmarkProcess, Landmarks, Seen
from bochner.exact.logistic import Shapes
from bochner.exact.matrix import MatrixColumns
from bochner.exact.parts import LINEAR_KERNEL, TABLE_KERNEL, Part
from bochner.exact.process import Process
from bochner.exact.rows import Rows
from bochner.exact.tails import Tails
from bochner.exact.transforms import Log, Standardized, YeoJohnson
from bochner.exact.varying_noise import NoiseModel, learn_noise
from tests.exact.tables import mixed_columns

SOURCES = [(0,), (1,), (2,), (3, 4, 5)]
PRODUCT_KERNEL = Laplace(0, 3) * RBF(1, 2) + Linear() * (Constant() + Laplace()) + Constant()
CHOSEN_KERNEL = Category(3) * Periodic(0, near=0.7) + Category(2) + Periodic(1, period=2.0) * RBF(0)
KERNELS = {
    "table": TABLE_KERNEL,
    "product": PRODUCT_KERNEL,
    "linear": LINEAR_KERNEL,
    "chosen": CHOSEN_KERNEL,
}
TRANSFORMS = {"standardized": Standardized, "log": Log, "yeo-johnson": YeoJohnson}


def matrix(n: int, seed: int = 0) -> np.ndarray:
    """Two columns of numbers, one with missing values, whole numbers, and three dummies."""
    columns = mixed_columns(n, seed)
    dummies = [(columns[3] == value).astype(float) for value in ("red", "green", "blue")]
    return np.column_stack([*columns[:3], *dummies]).astype(np.float64)


def encoding(n: int = 40) -> MatrixColumns:
    return MatrixColumns.learn(matrix(n), SOURCES)


def training(n: int = 40) -> tuple[Rows, np.ndarray, np.random.Generator]:
    X, rng = matrix(n), np.random.default_rng(100)
    y = np.exp(np.sin(2 * X[:, 0]) + X[:, 3] + 0.2 * rng.normal(size=n))
    return encoding(n)(X), y, rng


def parameters(kernel, rows: Rows, rng: np.random.Generator) -> np.ndarray:
    v = kernel.start(rows.layout, 0.5).values
    return v + 0.3 * rng.normal(size=len(v))


@functools.cache
def noise_model(n: int) -> tuple[NoiseModel, np.ndarray]:
    rows, _, rng = training(n)
    return learn_noise(rows, rng.normal(size=n), np.arange(n))


def regression_part(
    kind: str = "exact",
    kernel: str = "table",
    transform: str = "standardized",
    varying: bool = False,
    n: int = 40,
) -> Part:
    rows, y, rng = training(n)
    made = TRANSFORMS[transform].learn(y)
    t, v = made(y), parameters(KERNELS[kernel], rows, rng)
    noise, model, relative = 0.1, None, np.ones(n)
    if varying:
        model, relative = noise_model(n)
    if kind == "exact":
        process = Process.condition(KERNELS[kernel], v, rows, t, noise * relative)
    else:
        landmarks = Landmarks.of(KERNELS[kernel], v, rows[: n // 2])
        process = LandmarkProcess.condition(Seen.of(landmarks, rows), t, noise * relative)
    tails = Tails(4.0, 0.9) if varying else Tails()
    return Part("a part", "sum", made, process, noise, model, tails)


def class_part(kind: str = "exact", n_classes: int = 2, n: int = 40) -> ClassPart:
    rows, y, rng = training(n)
    labels = np.searchsorted(np.quantile(y, np.arange(1, n_classes) / n_classes), y)
    targets, noise = dirichlet_targets(labels, n_classes, 0.1)
    offsets = targets.mean(axis=0)
    v = parameters(TABLE_KERNEL, rows, rng)
    pairs = list(zip((targets - offsets).T, noise.T, strict=True))
    if kind == "exact":
        K = TABLE_KERNEL.covariance(v, rows, rows)
        processes = [Process.condition(TABLE_KERNEL, v, rows, t, own, K) for t, own in pairs]
        functions = ClassProcesses(tuple(processes), offsets)
    else:
        seen = Seen.of(Landmarks.of(TABLE_KERNEL, v, rows[: n // 2]), rows)
        processes = [LandmarkProcess.condition(seen, t, own) for t, own in pairs]
        functions = LandmarkClassProcesses(tuple(processes), offsets)
    share = np.bincount(labels, minlength=n_classes) / n
    return ClassPart("a part", "sum", functions, share, 0.85, np.zeros((n, n_classes)))


def density_part(n: int = 40) -> DensityPart:
    rows, y, rng = training(n)
    landmarks = Landmarks.of(TABLE_KERNEL, parameters(TABLE_KERNEL, rows, rng), rows[: n // 2])
    cells = Cells.learn(y, 6)
    counts = np.bincount(cells.places(y), minlength=len(cells)).astype(float)
    shapes = Shapes.of(counts, amplitude=2.0, width=0.2)
    return DensityPart(
        "density", landmarks, cells, shapes, rng.normal(size=(n // 2, len(shapes.directions)))
    )


def constant_part() -> Part:
    return Part("a part", "constant", Standardized(3.0, 2.0), None, 1.0, None, Tails(6.0, 1.1))


def frequencies() -> ClassPart:
    return ClassPart("a part", "constant", None, np.array([0.3, 0.7]), 1.0, np.zeros((5, 2)))


REGRESSION = {
    f"{kind}, {kernel}, {transform}, {'varying' if varying else 'equal'} noise": (
        kind, kernel, transform, varying,
    )
    for kind in ("exact", "landmarks")
    for kernel, transform, varying in (
        ("table", "standardized", False), ("product", "log", True), ("linear", "yeo-johnson", False),
        ("table", "yeo-johnson", True), ("chosen", "standardized", False),
    )
}  # fmt: skip
CLASSES = {f"{kind}, {n} classes": (kind, n) for kind in ("exact", "landmarks") for n in (2, 3)}
PARTS = {
    **{name: (lambda own=own: regression_part(*own)) for name, own in REGRESSION.items()},
    **{name: (lambda own=own: class_part(*own)) for name, own in CLASSES.items()},
    "density": density_part,
    "constant": constant_part,
    "frequencies": frequencies,
}


def predictions(part: Part | DensityPart | ClassPart, rows: Rows) -> list[np.ndarray]:
    """What a part says of rows."""
    if isinstance(part, DensityPart):
        law = part.law(rows)
        return [law.probabilities, law.log_density(np.full(len(rows), 1.5))]
    if isinstance(part, ClassPart):
        return [part.probabilities(rows)]
    law = part.law(rows)
    return [law.location, law.scale, law.log_density(np.full(len(rows), 1.5))]
