"""What each term of a sum of covariances adds to the posterior mean, and its share of the mean's variance over rows.

The posterior mean of a sum is the sum of those of its terms: `k_term(x, X) (K + D)^-1 t` on exact rows and
`k_term(x, Z) L'^-1 w` on landmarks, with w the weights of the features `L^-1 k(Z, x)`. The share of a term is
`Cov(f_term, f) / Var(f)` over rows, so that shares add up to one; one that others work against can be negative.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.linalg
from jaxtyping import Float

from bochner.exact.classes import ClassPart
from bochner.exact.densities import DensityPart
from bochner.exact.kernels import AbstractKernel, Constant, Sum
from bochner.exact.landmarks import LandmarkProcess
from bochner.exact.process import Process
from bochner.exact.rows import Rows
from bochner.explaining.columns import TableColumn
from bochner.explaining.shares import variances
from bochner.members.parts import AbstractPart, RowsPart


def shares_of_terms(
    part: AbstractPart, X: Float[np.ndarray, "n d"], columns: Sequence[TableColumn]
) -> dict[str, float]:
    """Compute the share of each term in the variance of a part's function over rows, by the texts of terms.

    A constant has none. The function is that of the transformed target, or those of all classes less their mean. Empty
    where a part has no covariance.

    Example:
        >>> import numpy as np
        >>> from bochner import DeepGPRegressor, Linear
        >>> from bochner.explaining.columns import table_columns
        >>> from bochner.explaining.kernel_parts import shares_of_terms
        >>> X = np.linspace(0, 1, 30)[:, None]
        >>> model = DeepGPRegressor(Linear()).fit(X, 2 * X[:, 0])
        >>> part, columns = model.fitted_.predictor.parts[0], table_columns(model.fitted_)
        >>> {name: round(share, 3) for name, share in shares_of_terms(part, X, columns).items()}
        {'linear': 1.0}
    """
    processes = _processes(part)
    if not processes:
        return {}
    assert isinstance(part, RowsPart)
    rows = part.columns(X)
    places = {place: column.name for column in columns for place in column.places}
    names = [places[source[0]] for source in part.columns.sources]
    encodings = part.columns.columns
    of_outputs = [
        _means_of_terms(process, rows, lambda term: str(term.called(names, encodings)))
        for process in processes
    ]
    terms = {
        name: np.stack([means[name] for means in of_outputs], axis=1) for name in of_outputs[0]
    }
    if len(processes) > 1:  # what all classes have in common changes no probability
        terms = {name: f - f.mean(axis=1, keepdims=True) for name, f in terms.items()}
    whole = np.sum(list(terms.values()), axis=0)
    total = float(np.sum(variances(whole)))
    residual = (whole - whole.mean(axis=0)) / max(len(X) - 1, 1)
    return {
        name: float(np.sum(f * residual)) / total if total > 0 else 0.0
        for name, f in terms.items()
        if name
    }


def _processes(part: AbstractPart) -> list[Process | LandmarkProcess]:
    if not isinstance(part, RowsPart):
        return []
    model = part.part
    if isinstance(model, DensityPart):
        return []  # a density moves by more than one function
    if isinstance(model, ClassPart):
        return list(getattr(model.functions, "processes", ()))
    return [] if model.process is None else [model.process]


def _means_of_terms(
    process: Process | LandmarkProcess, rows: Rows, text: Callable[[AbstractKernel], str]
) -> dict[str, np.ndarray]:
    """Compute the posterior mean of each term, those of the same text together; a constant has none."""
    known: Any = process.landmarks if isinstance(process, LandmarkProcess) else process
    weights = process.weights
    if isinstance(process, LandmarkProcess):
        weights = scipy.linalg.solve_triangular(known.factor, weights, lower=True, trans=1)
    kernel, found = known.kernel, {}
    is_sum = isinstance(kernel, Sum)
    for term, v in kernel.terms(known.v, known.rows.layout) if is_sum else [(kernel, known.v)]:
        name = "" if isinstance(term, Constant) else text(term)
        mean = term.covariance(v, rows, known.rows) @ weights
        found[name] = found.get(name, 0.0) + mean
    return found
