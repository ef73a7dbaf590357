"""Models in the space of rows as named arrays and JSON, and back; on the way back every value is checked.

What can be made again at little cost is not stored: factors of exact processes and of landmarks are made when a model
first predicts.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, get_args

import numpy as np

from bochner.exact import stored_classes
from bochner.exact.classes import ClassPart, ClassProcesses
from bochner.exact.densities import DensityPart
from bochner.exact.kernels import AbstractKernel
from bochner.exact.kernels.stored import kernel_from_json, kernel_to_json
from bochner.exact.landmark_classes import LandmarkClassProcesses
from bochner.exact.landmarks import LandmarkProcess, Landmarks
from bochner.exact.parts import Kind, Part
from bochner.exact.process import Process
from bochner.exact.rows import Layout, Rows
from bochner.exact.stored_arrays import (
    StoredArrays,
    matrix_to_stored,
    numbers_from,
    object_of_kind,
    places_from,
    triangle_to_stored,
)
from bochner.exact.stored_density import FIELDS as _FIELDS_OF_DENSITIES
from bochner.exact.stored_density import density_from_stored, density_to_stored
from bochner.exact.stored_values import (
    number_from,
    tails_from_json,
    tails_to_json,
    transform_from_json,
    transform_to_json,
)
from bochner.exact.varying_noise import NoiseModel
from bochner.system.saving import ModelFileError
from bochner.system.taking import named, taken

_MOST_ROWS = 10_000
_MOST_ENTRIES = 1_000_000_000
_LARGEST_V, _LARGEST_NUMBER, _LARGEST_TARGET = 40.0, 1e3, 1e6
_LEAST_NOISE, _LARGEST_NOISE, _LARGEST_WEIGHT, _LARGEST_ENTRY = 1e-30, 1e12, 1e30, 1e30
# Whatever a check has let through ends as an error about the file, and never as a crash.
_BUILDING_ERRORS = (
    ValueError, TypeError, KeyError, IndexError, AttributeError, ArithmeticError, RecursionError,
    MemoryError,
)  # fmt: skip
_FIELDS_OF_PARTS = {
    "regression": {"name", "of", "transform", "process", "noise", "noise_model", "tails"},
    "classes": stored_classes.FIELDS_OF_CLASSES,
    "density": _FIELDS_OF_DENSITIES,
}
_KINDS = set(get_args(Kind)) - {"density"}
_FIELDS_OF_FUNCTIONS = {
    "exact": {"covariance", "rows", "targets", "noise"},
    "landmarks": {"landmarks"},
}
AnyPart = Part | DensityPart | ClassPart
_LISTS = ("rows", "covariances", "landmarks", "functions", "parts")


def parts_to_stored(
    parts: Sequence[AnyPart],
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Give all that models need to predict as named arrays and plain JSON; what several share is there once.

    Example:
        >>> import numpy as np
        >>> from bochner.exact import Columns, Regression
        >>> from bochner.exact.storing import parts_from_stored, parts_to_stored
        >>> x = np.linspace(0, 6, 40)
        >>> rows = Columns.learn([x])([x])
        >>> parts = Regression.fit(rows, np.sin(x)).parts
        >>> again = parts_from_stored(*parts_to_stored(parts))
        >>> np.array_equal(parts[-1].law(rows).location, again[-1].law(rows).location)
        True
    """
    writer = _Writer()
    writer.lists["parts"] = [writer.any_part(place, part) for place, part in enumerate(parts)]
    # A model that could not be read again is refused while it is still there.
    parts_from_stored(writer.arrays, writer.lists)
    return writer.arrays, writer.lists


def parts_from_stored(
    arrays: Mapping[str, np.ndarray],
    stored: Any,
    *,
    layout: Layout | None = None,
    n_classes: int | None = None,
) -> list[AnyPart]:
    """Make the models that `parts_to_stored` took apart, or raise a `ModelFileError` that says what does not fit.

    Args:
        arrays: the named arrays, and no others.
        stored: the JSON.
        layout: that of the rows that will be predicted; that of the first rows of the file where None.
        n_classes: how many classes there must be, where all are models of classes; 0 where all must be of regression.
    """
    try:
        reader = _Reader(StoredArrays(arrays), named(stored, set(_LISTS), "models"), layout)
        parts = [reader.part(place, one) for place, one in enumerate(reader.of("parts"))]
        if not parts:
            raise ModelFileError("it holds no models.")
        reader.arrays.check_all_taken()
    except ModelFileError:
        raise
    except _BUILDING_ERRORS as error:
        raise ModelFileError(f"it does not describe models ({str(error)[:200]}).") from error
    found = {len(part.frequencies) if isinstance(part, ClassPart) else 0 for part in parts}
    if len(found) > 1 or (n_classes is not None and found != {n_classes}):
        raise ModelFileError("its models do not have the same classes.")
    return parts


class _Writer:
    """Takes models apart, and remembers what it has seen."""

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}
        self.lists: dict[str, list[Any]] = {name: [] for name in _LISTS}
        self.places: dict[Any, int] = {}

    def any_part(self, place: int, part: AnyPart) -> dict[str, Any]:
        if isinstance(part, ClassPart):
            return self.class_part(part)
        if isinstance(part, Part):
            return self.part(part)
        landmarks = self.landmarks(part.landmarks)
        arrays, described = density_to_stored(f"model.{place}", part, landmarks)
        self.arrays |= arrays
        return described

    def part(self, part: Part) -> dict[str, Any]:
        process = None if part.process is None else self.functions([part.process])
        model = None
        if part.noise_model is not None:
            model = {
                "process": self.functions([part.noise_model.process]),
                "deviation": float(part.noise_model.deviation),
                "level": float(part.noise_model.level),
            }
            place = len(self.lists["functions"]) - 1
            self.arrays[f"function.{place}.parameters"] = np.asarray(
                part.noise_model.process_parameters, np.float64
            )
        return {
            "kind": "regression",
            "name": part.name,
            "of": part.kind,
            "transform": transform_to_json(part.transform),
            "process": process,
            "noise": float(part.noise),
            "noise_model": model,
            "tails": tails_to_json(part.tails),
        }

    def class_part(self, part: ClassPart) -> dict[str, Any]:
        functions: Any = part.functions
        return {
            "kind": "classes",
            "name": part.name,
            "of": part.kind,
            "functions": None if functions is None else self.functions(functions.processes),
            "offsets": None if functions is None else functions.offsets.tolist(),
            **stored_classes.values_to_json(part),
        }

    def functions(self, processes: Sequence[Any]) -> int:
        """Store one function or several, of the same kernel and rows."""
        place, first = len(self.lists["functions"]), processes[0]
        name = f"function.{place}"
        if isinstance(first, LandmarkProcess):
            self.lists["functions"].append(
                {"kind": "landmarks", "landmarks": self.landmarks(first.landmarks)}
            )
            weights = [process.weights for process in processes]
            self.arrays[f"{name}.weights"] = np.stack(weights, axis=1)
            factors = [triangle_to_stored(process.factor) for process in processes]
            for c, factor in enumerate(factors):
                self.arrays[f"{name}.factor.{c}"] = factor
            return place
        if not isinstance(first, Process):
            raise TypeError(f"functions of type {type(first).__name__} cannot be stored.")
        if len(first.rows) > _MOST_ROWS:
            raise ModelFileError(f"a model file can hold exact models of {_MOST_ROWS:,} rows.")
        described = {
            "kind": "exact",
            "covariance": self.covariance(first.kernel, first.v),
            "rows": self.rows(first.rows),
        }
        for field in ("targets", "noise"):
            matrix = np.stack([getattr(process, field) for process in processes], axis=1)
            arrays, described[field] = matrix_to_stored(f"{name}.{field}", matrix)
            self.arrays |= arrays
        self.lists["functions"].append(described)
        return place

    def landmarks(self, landmarks: Landmarks) -> int:
        covariance = self.covariance(landmarks.kernel, landmarks.v)
        described = {"covariance": covariance, "rows": self.rows(landmarks.rows)}
        return self._once(("landmarks", *described.values()), "landmarks", lambda place: described)

    def covariance(self, kernel: AbstractKernel, v: np.ndarray) -> int:
        def write(place: int) -> Any:
            self.arrays[f"covariance.{place}.v"] = np.asarray(v, np.float64)
            return kernel_to_json(kernel)

        return self._once(("covariance", kernel, v.tobytes()), "covariances", write)

    def rows(self, rows: Rows) -> int:
        def write(place: int) -> Any:
            described: dict[str, Any] = {
                "number_axes": list(rows.layout.number_axes),
                "rank_axes": list(rows.layout.rank_axes),
                "code_axes": list(rows.layout.code_axes),
                "columns": list(rows.layout.columns),
            }
            for field in ("numbers", "ranks"):
                arrays, counts = matrix_to_stored(f"row.{place}.{field}", getattr(rows, field))
                described[field] = counts
                self.arrays |= arrays
            self.arrays[f"row.{place}.codes"] = rows.codes.astype(rows.layout.type_of_codes)
            return described

        contents = (rows.numbers.tobytes(), rows.ranks.tobytes(), rows.codes.tobytes())
        return self._once(("rows", rows.layout, len(rows), *contents), "rows", write)

    def _once(self, key: Any, kind: str, write: Callable[[int], Any]) -> int:
        if key not in self.places:
            place = self.places[key] = len(self.lists[kind])
            self.lists[kind].append(None)
            self.lists[kind][place] = write(place)
        return self.places[key]


class _Reader:
    """Puts models together, from the shared things first."""

    def __init__(self, arrays: StoredArrays, stored: dict[str, Any], layout: Layout | None) -> None:
        self.arrays, self.stored, self.layout = arrays, stored, layout
        self.entries = 0
        self.rows = [self._rows(place, one) for place, one in enumerate(self.of("rows"))]
        kernels = [kernel_from_json(one) for one in self.of("covariances")]
        self.covariances = [
            (kernel, self._parameters(f"covariance.{place}.v", kernel))
            for place, kernel in enumerate(kernels)
        ]
        self.landmarks = [self._landmarks(one) for one in self.of("landmarks")]
        self.functions = [
            self._functions(place, one) for place, one in enumerate(self.of("functions"))
        ]

    def of(self, kind: str) -> list[Any]:
        return taken(self.stored, kind, list)

    def part(self, place: int, stored: Any) -> AnyPart:
        if isinstance(stored, dict) and stored.get("kind") == "classes":
            stored = {**stored_classes.ADDED_LATER, **stored}
        kind, stored = object_of_kind(stored, _FIELDS_OF_PARTS, "a model")
        name = taken(stored, "name", str, lambda v: len(v) <= 200, "short")
        if kind == "density":
            landmarks = self.landmarks[self._place(stored, "landmarks", len(self.landmarks))]
            return density_from_stored(
                self.arrays, f"model.{place}", name, stored["tails"], landmarks
            )
        of = taken(stored, "of", str, lambda v: v in _KINDS, "a kind of model")
        if kind == "classes":
            return self._class_part(name, of, stored)
        process = None
        if stored["process"] is not None:
            (process,) = self._several(stored, "process", 1)
        model = stored["noise_model"]
        return Part(
            name,
            of,
            transform_from_json(stored["transform"]),
            process,
            number_from(stored, "noise", _LEAST_NOISE, _LARGEST_NOISE),
            None if model is None else self._noise_model(model),
            tails_from_json(stored["tails"]),
        )

    def _noise_model(self, stored: Any) -> NoiseModel:
        named(stored, {"process", "deviation", "level"}, "a model of noise")
        (process,) = self._several(stored, "process", 1)
        if not isinstance(process, Process):
            raise ModelFileError("a model of noise is not exact.")
        return NoiseModel(
            process,
            self.arrays.floats(
                f"function.{stored['process']}.parameters", (len(process.v) + 1,), _LARGEST_V
            ),
            number_from(stored, "deviation", 0.0, 50.0),
            number_from(stored, "level", -150.0, 150.0),
        )

    def _class_part(self, name: str, of: Any, stored: dict[str, Any]) -> ClassPart:
        frequencies, temperature, strength = stored_classes.values_from_json(stored)
        n_classes = len(frequencies)
        functions = None
        if stored["functions"] is not None:
            processes = self._several(stored, "functions", n_classes)
            offsets = numbers_from(
                stored["offsets"], n_classes, -_LARGEST_TARGET, _LARGEST_TARGET, "offsets"
            )
            is_exact = isinstance(processes[0], Process)
            functions = (ClassProcesses if is_exact else LandmarkClassProcesses)(processes, offsets)
        elif stored["offsets"] is not None:
            raise ModelFileError("it holds offsets of functions that it has not.")
        left_out = np.zeros((0, n_classes))
        return ClassPart(name, of, functions, frequencies, temperature, left_out, strength)

    def _several(self, stored: dict[str, Any], name: str, n: int) -> tuple[Any, ...]:
        processes = self.functions[self._place(stored, name, len(self.functions))]
        if len(processes) != n:
            raise ModelFileError(f"it holds {len(processes)} functions where {n} were expected.")
        return processes

    def _functions(self, place: int, stored: Any) -> tuple[Any, ...]:
        kind, stored = object_of_kind(stored, _FIELDS_OF_FUNCTIONS, "a function")
        name = f"function.{place}"
        if kind == "landmarks":
            landmarks = self.landmarks[self._place(stored, "landmarks", len(self.landmarks))]
            size = len(landmarks.rows)
            shape = self.arrays.shape(f"{name}.weights")
            n = shape[1] if len(shape) == 2 else 0
            self._count(n * size**2, size)
            weights = self.arrays.floats(f"{name}.weights", (size, n), _LARGEST_WEIGHT)
            return tuple(
                LandmarkProcess(
                    landmarks,
                    self.arrays.triangle(f"{name}.factor.{c}", size, _LARGEST_ENTRY),
                    np.ascontiguousarray(weights[:, c]),
                )
                for c in range(n)
            )
        kernel, v = self.covariances[self._place(stored, "covariance", len(self.covariances))]
        rows = self.rows[self._place(stored, "rows", len(self.rows))]
        n_functions = len(taken(stored, "targets", list))
        self._count(n_functions * len(rows) ** 2, len(rows))
        targets = self.arrays.matrix(
            f"{name}.targets", stored["targets"], len(rows), _LARGEST_TARGET
        )
        noise = self.arrays.matrix(f"{name}.noise", stored["noise"], len(rows), _LARGEST_NOISE)
        if noise.shape != targets.shape or np.min(noise, initial=0) < 0:
            raise ModelFileError(f"{name}.noise holds what is no variance of each target.")
        return tuple(
            Process(kernel, v, rows, np.ascontiguousarray(t), np.ascontiguousarray(d))
            for t, d in zip(targets.T, noise.T, strict=True)
        )

    def _landmarks(self, stored: Any) -> Landmarks:
        named(stored, {"covariance", "rows"}, "landmarks")
        rows = self.rows[self._place(stored, "rows", len(self.rows))]
        self._count(len(rows) ** 2, len(rows))
        kernel, v = self.covariances[self._place(stored, "covariance", len(self.covariances))]
        return Landmarks(kernel, v, rows)

    def _parameters(self, name: str, kernel: AbstractKernel) -> np.ndarray:
        if self.layout is None:
            raise ModelFileError("it holds kernels without rows.")
        return self.arrays.floats(name, (kernel.n_parameters(self.layout),), _LARGEST_V)

    def _rows(self, place: int, stored: Any) -> Rows:
        axes = ("number_axes", "rank_axes", "code_axes")
        named(stored, {*axes, "columns", "numbers", "ranks"}, "rows")
        columns = places_from(stored["columns"], 2**31, "columns of axes")
        of_features = [places_from(stored[name], len(columns), name) for name in axes]
        layout = Layout(of_features[0], of_features[1], of_features[2], columns)
        self.layout = self.layout or layout
        if layout != self.layout:
            raise ModelFileError("its rows do not have the columns that its encoding gives.")
        name = f"row.{place}"
        shape = self.arrays.shape(f"{name}.codes")
        n = shape[0] if shape else 0
        self._count(0, n)
        codes = self.arrays.array(f"{name}.codes", layout.type_of_codes, (n, len(layout.code_axes)))
        if np.any(np.max(codes, axis=0, initial=0) > layout.largest_codes):
            raise ModelFileError(f"{name}.codes holds codes that no encoding gives.")
        found = {}
        for field, of_field in (("numbers", layout.number_axes), ("ranks", layout.rank_axes)):
            if not isinstance(stored[field], list) or len(stored[field]) != len(of_field):
                raise ModelFileError(f"{name}.{field} is not as wide as its axes.")
            found[field] = self.arrays.matrix(f"{name}.{field}", stored[field], n, _LARGEST_NUMBER)
        return Rows(found["numbers"], found["ranks"], codes.astype(np.int64), layout)

    def _count(self, entries: int, n_rows: int) -> None:
        """Refuse what would take much more memory once it predicts than the file does."""
        self.entries += entries
        if not 0 < n_rows <= _MOST_ROWS or self.entries > _MOST_ENTRIES:
            raise ModelFileError("it holds models of no rows, or of too many.")

    def _place(self, stored: dict[str, Any], name: str, n: int) -> int:
        return taken(stored, name, int, lambda v: 0 <= v < n, f"below {n}")
