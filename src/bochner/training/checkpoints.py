"""Checkpoints of a training: the last two, atomic and checksummed, and the newest whole one to go on from."""

import contextlib
import re
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from bochner.system.destination import remove_partial_files
from bochner.system.locks import lock_now
from bochner.system.saving import ModelFileError, read_arrays, write_arrays

KIND = "checkpoint"
_KEPT = 2
_LOCK = "in-use"
_STORED_NAMES = {".features.": "."}
"""Of what an array's name in files lacks, or calls otherwise, that its path in the model has."""

_NAME = re.compile(r"step-(\d{10})\.checkpoint")


class CheckpointError(ValueError):
    """A folder of checkpoints that does not fit the training that asks for it."""


class TrainingStoppedError(RuntimeError):
    """A signal stopped the training; its checkpoint holds everything up to the last step.

    Attributes:
        signal: the signal's number.
    """

    def __init__(self, message: str, signal: int):
        super().__init__(message)
        self.signal = signal


class Checkpoints:
    """A folder with the newest states of one training.

    Args:
        folder: where they are; made when the first one is written.
        fingerprint: says which settings and data the training has; one with another fingerprint cannot go on from it.
        resume: go on from the newest checkpoint; otherwise the folder must not hold any.
        seconds_between: a crash loses at most the work of about this time.

    Example:
        >>> import numpy as np, tempfile
        >>> from bochner.training.checkpoints import Checkpoints
        >>> folder = tempfile.mkdtemp()
        >>> Checkpoints(folder, {"seed": 1}).write(5, {"a": np.ones(2)}, {"step": 5})
        >>> arrays, header = Checkpoints(folder, {"seed": 1}, resume=True).newest()
        >>> header["step"], arrays["a"].tolist()
        (5, [1.0, 1.0])
    """

    def __init__(
        self,
        folder: str | Path,
        fingerprint: dict[str, Any],
        *,
        resume: bool = False,
        seconds_between: float = 60.0,
    ):
        self.folder = Path(folder)
        self._fingerprint = fingerprint
        self._resume = resume
        self._seconds_between = seconds_between
        self._last = time.monotonic()
        if self.folder.exists() and not self.folder.is_dir():
            raise CheckpointError(f"`checkpoint` must be a folder; {self.folder} is a file.")
        self._check_unused()

    @contextlib.contextmanager
    def in_use(self) -> Iterator[None]:
        """Keep the folder for one training at a time; the system gives it free when the process ends, however."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / _LOCK).open("ab") as lock:
            if not lock_now(lock.fileno()):
                raise CheckpointError(
                    f"another training is under way with {self.folder}. Wait for its end, or choose another folder."
                )
            self._check_unused()
            remove_partial_files(self.folder)  # of a process that was killed while it wrote
            yield

    def _check_unused(self) -> None:
        if self._paths() and not self._resume:
            raise CheckpointError(
                f"{self.folder} holds the checkpoints of an earlier training. Go on from them with `resume`, or choose "
                "another folder."
            )

    @property
    def due(self) -> bool:
        """Whether it is time for the next one."""
        return time.monotonic() - self._last >= self._seconds_between

    def write(self, step: int, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        """Write a checkpoint and keep the one before it; a full disk is a warning, and training goes on."""
        self._last = time.monotonic()
        full = {**header, "kind": KIND, "fingerprint": self._fingerprint}
        try:
            path = self.folder / f"step-{step:010d}.checkpoint"
            write_arrays(path, arrays, full)
        except OSError as error:
            warnings.warn(
                f"the checkpoint at step {step:,} could not be written to {self.folder} ({error}): the one before is "
                "kept, and training goes on. Make room on the disk.",
                RuntimeWarning,
                stacklevel=2,
            )
            return
        # Those of later steps are left from before the training went back, or are damaged.
        later = [other for other in self._paths() if other.name > path.name]
        earlier = [other for other in self._paths() if other.name <= path.name]
        for old in (*later, *earlier[:-_KEPT]):
            old.unlink(missing_ok=True)

    def newest(self) -> tuple[dict[str, np.ndarray], dict[str, Any]] | None:
        """Read the newest checkpoint that is whole; None where there is none or none is asked for."""
        if not self._resume:
            return None
        paths = self._paths()
        for path in reversed(paths):
            try:
                arrays, header = read_arrays(path)
            except (ModelFileError, OSError) as error:
                warnings.warn(
                    f"a checkpoint cannot be used, so the one before it is: {error}",
                    RuntimeWarning,
                    stacklevel=2,
                )
                continue
            self._check(path, header)
            return arrays, header
        what = "no whole checkpoint" if paths else "no checkpoint"
        warnings.warn(
            f"there is {what} in {self.folder} yet: training starts anew.",
            RuntimeWarning,
            stacklevel=2,
        )
        return None

    def _paths(self) -> list[Path]:
        if not self.folder.is_dir():
            return []
        found = (path for path in self.folder.iterdir() if _NAME.fullmatch(path.name))
        return sorted(path for path in found if not path.is_dir())

    def _check(self, path: Path, header: dict[str, Any]) -> None:
        found = header.get("fingerprint") if header.get("kind") == KIND else None
        if not isinstance(found, dict):
            raise CheckpointError(f"{path} is not a checkpoint of a training.")
        names = [*self._fingerprint, *(name for name in found if name not in self._fingerprint)]
        for name in names:
            if (name in found) != (name in self._fingerprint):
                raise CheckpointError(
                    f"{path} was written by another version of bochner: only one of them has the setting {name!r}. Go "
                    "on with the version that wrote it, or start anew with another folder."
                )
            then, now = found[name], self._fingerprint[name]
            if then != now:
                raise CheckpointError(
                    f"{path} belongs to another training: {name} was {then!r} and is {now!r} now. Use the settings and "
                    "data of the first run, or another folder."
                )


def named_arrays(prefix: str, tree: PyTree) -> dict[str, np.ndarray]:
    """Give the leaves of a tree by their path in it.

    Example:
        >>> import numpy as np
        >>> from bochner.training.checkpoints import named_arrays
        >>> sorted(named_arrays("now", {"a": np.ones(1), "b": np.ones(2)}))
        ["now['a']", "now['b']"]
    """
    return {prefix + name: np.asarray(leaf) for name, leaf in named_leaves(tree)}


def named_leaves(tree: PyTree) -> list[tuple[str, Any]]:
    """Give the leaves of a tree, whatever they are, with their path in it."""
    paths, _ = jax.tree_util.tree_flatten_with_path(tree)
    return [(_name(path), leaf) for path, leaf in paths]


def _name(path: Any) -> str:
    """Give the name of an array in files, which stays where fields are named or nested otherwise."""
    name = jax.tree_util.keystr(path)
    for field, stored in _STORED_NAMES.items():
        name = name.replace(field, stored)
    return name


def filled(prefix: str, like: PyTree, arrays: dict[str, np.ndarray]) -> PyTree:
    """Give a tree of the form of `like` with the arrays of `named_arrays`.

    Example:
        >>> import numpy as np
        >>> from bochner.training.checkpoints import filled, named_arrays
        >>> tree = {"a": np.ones(1, np.float32)}
        >>> filled("x", tree, named_arrays("x", tree))["a"].tolist()
        [1.0]
    """
    paths, structure = jax.tree_util.tree_flatten_with_path(like)
    leaves = []
    for path, leaf in paths:
        name = prefix + _name(path)
        array = arrays.get(name)
        if array is None or array.shape != leaf.shape or array.dtype != leaf.dtype:
            raise CheckpointError(
                f"the checkpoint holds no fitting array {name}: it is of another model."
            )
        leaves.append(jnp.asarray(array))
    return jax.tree.unflatten(structure, leaves)
