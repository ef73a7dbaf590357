"""How far the predictions of a fitted model are from those of the exact posterior, of weights or hyper-parameters."""

import dataclasses
import time
from typing import Any

import numpy as np
from jaxtyping import Int
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from bochner.fitting.config import check_whole_number
from bochner.fitting.deep_fit import DeepFit
from bochner.mcmc.comparison import PosteriorCheck
from bochner.mcmc.deep_check import check_deep
from bochner.mcmc.parameters_check import check_parameters
from bochner.mcmc.rotations import Effort, Told
from bochner.members.parts import DeepPart, RowsPart
from bochner.members.predictors import SideBySide, StackClassifier, StackRegressor

_N_COMPARED = 1000
_SHARE_OF_CHAINS = 0.8


def check_posterior(
    model: Any,
    X: Any,
    y: Any,
    *,
    n_rows: int = 100,
    n_warmup: int = 200,
    n_chains: int = 2,
    max_seconds: float = 170.0,
    member: str | None = None,
    refit: bool | None = None,
    progress: Told | None = None,
    random_state: Any = 0,
) -> PosteriorCheck:
    """Compare what a fitted member predicts with what the exact posterior given its rows predicts, drawn by MCMC.

    Of a deep model the weights W are drawn, theta and Omega held: it shows the error of q(W). All its replicates are
    checked, each by chains of its own that start at draws from its q(W); with Gaussian noise the last layer is
    integrated out. Of an exact Gaussian process the hyper-parameters are drawn, under the prior with which they were
    learned: it shows what one best value of each leaves out. Noise that varies with the row is held as fitted.

    Both sides are conditioned on the same rows. With the very rows of the fit, q(W) of a deep model alone is compared
    as it is. With other rows, or with a random part of them where there are more than `n_rows`, the fitted side is
    first fitted again to the rows that the chains get, since the posterior of a part is wider than that of the whole.
    Where rows are left over, predictions are compared on these (at most 1,000), otherwise on the rows themselves.

    Chains go on until they agree, or until time is up. Without convergence there is no verdict. Runs with the same
    seed are the same where time was enough.

    Args:
        model: a fitted `DeepGPRegressor` or `DeepGPClassifier`.
        X: rows, in any form that the model predicts from.
        y: their targets, or the name of their column.
        n_rows: rows to condition on at most.
        n_warmup: steps of each chain before the first draw.
        n_chains: chains of each replicate of a deep model, and twice as many of an exact one.
        max_seconds: after which everything ends.
        member: name of the member to check, as in `model.members_`; the one with the largest weight by default.
        refit: fit q(W) again to the rows, or not; None does so unless a deep model alone was fitted to as many.
        progress: called with the share of the time that is used, and what is being done.
        random_state: seed.

    Returns:
        Both predictions with a verdict in words; `numbers()` gives them as plain values, `plot()` draws them.

    Example:
        >>> import numpy as np
        >>> from bochner import DeepGPRegressor, Linear
        >>> from bochner.mcmc import check_posterior
        >>> x = np.linspace(-1, 1, 40)[:, None]
        >>> y = x[:, 0] + 0.1 * np.random.default_rng(0).normal(size=40)
        >>> found = check_posterior(DeepGPRegressor(Linear()).fit(x, y), x, y)
        >>> found.what, found.n_rows, found.converged
        ('hyper-parameters', 40, True)
    """
    check_is_fitted(model)
    for name, number in (("n_rows", n_rows), ("n_warmup", n_warmup), ("n_chains", n_chains)):
        check_whole_number(name, number)
    if not max_seconds > 0:
        raise ValueError(f"`max_seconds` must be above 0; got {max_seconds!r}.")
    begun = time.monotonic()
    chosen = _chosen(model, member)
    given = model.checked_rows(X, y)
    if np.isnan(given.X).any():
        raise ValueError("rows to check on must not lack values: leave out those that do.")
    seed = int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
    used, left_over = _split(len(given), n_rows, seed)
    compared = left_over if len(left_over) else used
    effort = Effort(n_chains, n_warmup, until=begun + _SHARE_OF_CHAINS * max_seconds)
    told = progress or (lambda share, text: None)
    with model.on_device():
        if isinstance(chosen.part, DeepFit):
            same_rows = len(used) == len(given) == chosen.part.trained_weight
            again = model.fitted_.alone is None or not same_rows if refit is None else refit
            found = check_deep(
                chosen.part, given, used, compared, effort, refit=bool(again), seed=seed, told=told
            )
        else:
            effort = dataclasses.replace(effort, n_chains=2 * n_chains)
            found = check_parameters(
                chosen.part, given, used, compared, effort, seed=seed, told=told
            )
    return dataclasses.replace(found, member=chosen.name, weight=chosen.weight)


def _split(n: int, n_rows: int, seed: int) -> tuple[Int[np.ndarray, " n"], Int[np.ndarray, " m"]]:
    """Give the numbers of the rows to condition on, and of those left over."""
    order = np.random.default_rng(seed).permutation(n)
    return np.sort(order[:n_rows]), np.sort(order[n_rows : n_rows + _N_COMPARED])


@dataclasses.dataclass(frozen=True)
class _Chosen:
    """The member to check."""

    name: str
    part: Any
    weight: float


def _chosen(model: Any, name: str | None) -> _Chosen:
    predictor = model.fitted_.predictor
    if isinstance(predictor, SideBySide):
        raise ValueError(
            "each target has members of its own: check a model of one target, or a deep model of all of them, "
            "`members=Deep()`."
        )
    if not isinstance(predictor, StackRegressor | StackClassifier):
        return _Chosen("deep", model.fitted_.deep, 1.0)
    names = [standing.name for standing in model.fitted_.standings if standing.weight]
    found = [
        _Chosen(own, part.fit if isinstance(part, DeepPart) else part, float(weight))
        for own, part, weight in zip(names, predictor.parts, predictor.weights, strict=True)
        if _can_be_checked(part)
    ]
    if not found:
        raise ValueError(
            "no member that predicts can be checked: deep models can, and exact processes of numbers. Fit a deep "
            "model alone to check it: `members=Deep()`, or `bochner fit --members deep`."
        )
    if name is None:
        return max(found, key=lambda one: one.weight)
    named = [one for one in found if one.name == name]
    if not named:
        known = ", ".join(repr(one.name) for one in found)
        raise ValueError(
            f"`member` must be one of those that can be checked, {known}; got {name!r}."
        )
    return named[0]


def _can_be_checked(part: Any) -> bool:
    return isinstance(part, DeepPart) or (
        isinstance(part, RowsPart) and getattr(part.part, "process", None) is not None
    )
