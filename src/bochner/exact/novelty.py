"""How much of what is local in a function the training rows leave open at other rows."""

from typing import Any

import numpy as np
from jaxtyping import Float

from bochner.exact.kernels import AbstractKernel, Constant, Linear
from bochner.exact.kernels.combined import Product, Sum
from bochner.exact.landmarks import LandmarkProcess, Landmarks
from bochner.exact.linear_algebra import half_solve
from bochner.exact.process import Process
from bochner.exact.rows import Rows

_BLOCK = 2048


def open_share(
    process: Process | LandmarkProcess | Landmarks, rows: Rows
) -> Float[np.ndarray, " n"] | None:
    """Compute the share of the prior variance that the sum of local terms has left, given the training rows.

    A term is local if it has a lengthscale, a period or categories; planes and constants are not, since a few rows
    decide them everywhere. With `k` the sum of local terms, `Z` the training rows or landmarks and `M` the covariance
    of what is known there it is `1 - k(x, Z) M^-1 k(Z, x) / k(x, x)`: one far from all rows. None where no term is
    local. What landmarks alone know is taken to be without noise.

    Example:
        >>> import numpy as np
        >>> from bochner.exact.columns import Columns
        >>> from bochner.exact.kernels import RBF, Linear
        >>> from bochner.exact.novelty import open_share
        >>> from bochner.exact.process import Process
        >>> x = np.array([-1.0, 1.0])
        >>> columns = Columns.learn([x])
        >>> process = Process.condition(RBF() + Linear(), np.zeros(3), columns([x]), x, np.full(2, 1e-6))
        >>> open_share(process, columns([np.array([1.0, 100.0])])).round(2).tolist()
        [0.3, 1.0]
    """
    known: Any = process.landmarks if isinstance(process, LandmarkProcess) else process
    kernel, layout = known.kernel, known.rows.layout
    terms = kernel.terms(known.v, layout) if isinstance(kernel, Sum) else [(kernel, known.v)]
    local = [(term, v) for term, v in terms if _is_local(term)]
    if not local:
        return None
    found = [np.zeros(0)]
    for start in range(0, len(rows), _BLOCK):
        block = rows[start : start + _BLOCK]
        across = np.sum([term.covariance(v, known.rows, block) for term, v in local], axis=0)
        prior = np.sum([term.diagonal(v, block) for term, v in local], axis=0)
        whitened = half_solve(known.factor, across)
        explained = np.sum(whitened**2, axis=0)
        if isinstance(process, LandmarkProcess):
            explained -= np.sum(half_solve(process.factor, whitened) ** 2, axis=0)
        found.append(np.clip(1 - explained / prior, 0.0, 1.0))
    return np.concatenate(found)


def _is_local(kernel: AbstractKernel) -> bool:
    if isinstance(kernel, Sum | Product):
        return any(map(_is_local, kernel.parts))
    return not isinstance(kernel, Linear | Constant)
