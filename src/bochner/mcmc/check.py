"""How far the variational answer of a fitted model is from the exact posterior over its weights."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from bochner.fitting.config import check_whole_number
from bochner.fitting.deep_fit import DeepFit
from bochner.fitting.rows import Rows
from bochner.gp.members import Members
from bochner.gp.model import DeepGP
from bochner.inference.calibration import uncalibrated
from bochner.inference.conditioning import unconditioned
from bochner.inference.objectives import OBJECTIVES
from bochner.likelihoods import AbstractClassificationLikelihood
from bochner.mcmc.comparison import PosteriorCheck, Predictions
from bochner.mcmc.weights import sample_weights, silent
from bochner.members.parts import DeepPart
from bochner.members.predictors import SideBySide, StackClassifier, StackRegressor
from bochner.prediction.statistics import (
    AbstractStatistic,
    LogDensity,
    Posterior,
    Quantiles,
    Several,
)
from bochner.rows.table import Table
from bochner.training import Budget, Cosine, Plan, train

_COVERAGE = 0.9
_N_REFIT_STEPS = 3000
_N_COMPARED = 1000


def check_posterior(
    model: Any,
    X: Any,
    y: Any,
    *,
    n_rows: int = 200,
    n_samples: int = 300,
    n_warmup: int = 300,
    n_chains: int = 2,
    refit: bool | None = None,
    random_state: Any = 0,
    tell: Callable[[str], object] = silent,
) -> PosteriorCheck:
    """Compare a fitted model's predictions with those of NUTS on the same features, theta and Omega held.

    Both sides must be conditioned on the same rows. With the very rows of the fit the fitted q(W) is compared as it is.
    With other rows, or with a random part of them where there are more than `n_rows`, q(W) is first fitted again to the
    rows that NUTS gets, since the posterior of a part is wider than that of the whole. The answer is then about
    the factorized family at that number of rows: with more rows the noise dominates more and the factors of
    the predictive deviation come nearer to one. Where rows are left over, predictions are compared on these (at
    most 1,000), otherwise on the rows themselves.

    It sees the error of q(W) only. Theta and Omega have the same, optimized, values on both sides.

    Of several members that predict together the deep one is checked, and q(W) is always fitted again, since no member
    of a stack has seen all rows.

    Args:
        model: a fitted `DeepGPRegressor` or `DeepGPClassifier` whose deep model, alone or in a stack, has fixed
            frequencies.
        X: rows, in any form that the model predicts from.
        y: their targets, or the name of their column.
        n_rows: rows to condition on at most.
        n_samples: draws to keep of each chain.
        n_warmup: steps of each chain before the first draw.
        n_chains: independent chains, started at draws from q(W).
        refit: fit q(W) again to the rows, or not; None does so unless a deep model alone was fitted to as many.
        random_state: seed.
        tell: is given lines of progress, such as `print`.

    Example:
        >>> import numpy as np
        >>> from bochner import Deep, DeepGPRegressor
        >>> from bochner.mcmc import check_posterior
        >>> x = np.linspace(-1, 1, 40)[:, None]
        >>> deep = Deep(n_layers=1, n_random_features=5, max_steps=500)
        >>> model = DeepGPRegressor(deep, random_state=0).fit(x, np.sin(3 * x[:, 0]))
        >>> found = check_posterior(model, x, np.sin(3 * x[:, 0]), n_samples=50, n_warmup=50)
        >>> found.refitted, found.n_rows
        (False, 40)
    """
    check_is_fitted(model)
    for name, number in (
        ("n_rows", n_rows), ("n_samples", n_samples), ("n_warmup", n_warmup), ("n_chains", n_chains),
    ):  # fmt: skip
        check_whole_number(name, number)
    fit, weight = _deep_of(model)
    given = model.checked_rows(X, y)
    X, Y = given.X, given.Y
    seed = check_random_state(random_state).randint(np.iinfo(np.int32).max)
    order = np.random.default_rng(seed).permutation(len(X))
    used, left_over = np.sort(order[:n_rows]), np.sort(order[n_rows : n_rows + _N_COMPARED])
    compared = left_over if len(left_over) else used
    rows = fit.scaled(given)
    if refit is None:
        same_rows = len(used) == len(X) == fit.trained_weight
        refit = model.fitted_.alone is None or not same_rows
    key_refit, key_nuts, key_draws = jax.random.split(jax.random.key(seed), 3)
    with model.on_device():
        table = Table.of(rows.X[used], rows.Y[used])
        member, fitted = _first_member(fit)
        if refit:
            tell(f"Fitting q(W) again to {len(used):,} rows.")
            fitted = _refitted(fit, member, table, key_refit)
        draws = sample_weights(
            member, table.X, table.Y,
            n_samples=n_samples, n_warmup=n_warmup, n_chains=n_chains, tell=tell, key=key_nuts,
        )  # fmt: skip
        tell(f"Comparing predictions for {len(compared):,} rows.")
        posteriors = (
            Posterior.draw(fitted, n_draws=n_samples * n_chains, key=key_draws),
            draws.posterior,
        )
        variational, nuts = (_predict(fit, posterior, rows[compared]) for posterior in posteriors)
    return PosteriorCheck(
        variational=variational,
        nuts=nuts,
        Y=Y[compared],
        n_rows=len(used),
        refitted=bool(refit),
        new_rows=len(left_over) > 0,
        worst_rhat=float(np.max(draws.rhat)),
        smallest_ess=float(np.min(draws.ess)),
        n_divergent=draws.n_divergent,
        weight=weight,
    )


class _FunctionMoments(AbstractStatistic):
    """Mean and deviation over draws of what the function predicts, and the deviation of the target itself."""

    def __call__(self, draws, columns):
        if isinstance(draws.likelihoods, AbstractClassificationLikelihood):
            means = jnp.exp(draws.map(lambda likelihood, F: likelihood.log_probabilities(F)))
            variances = means * (1 - means)
        else:
            means, variances = draws.map(lambda likelihood, F: likelihood.moments(F))
        function_variance = jnp.var(means, axis=0)
        return {
            "mean": jnp.mean(means, axis=0),
            "function_std": jnp.sqrt(function_variance),
            "std": jnp.sqrt(function_variance + jnp.mean(variances, axis=0)),
        }


def _predict(fit: DeepFit, posterior: Posterior, rows: Rows) -> Predictions:
    parts: dict[str, AbstractStatistic] = {"moments": _FunctionMoments(), "density": LogDensity()}
    classes, scaling = fit.task.classification, fit.target_scaling
    if not classes:
        parts["ends"] = Quantiles(jnp.array([(1 - _COVERAGE) / 2, (1 + _COVERAGE) / 2]))
    found = posterior.map_rows(Several(parts), rows.X, Y=rows.Y)
    moments = {name: values.astype(np.float64) for name, values in found["moments"].items()}
    interval = None
    if not classes:
        ends = (scaling.inverse(found["ends"][..., i].astype(np.float64)) for i in range(2))
        moments = {
            "mean": scaling.inverse(moments["mean"]),
            "function_std": moments["function_std"] * scaling.scale,
            "std": moments["std"] * scaling.scale,
        }
        interval = np.stack(list(ends), axis=-1)
    return Predictions(
        **moments, interval=interval, log_density=found["density"] - scaling.log_jacobian
    )


def _deep_of(model: Any) -> tuple[DeepFit, float]:
    """Give the deep model that is checked, and its weight."""
    predictor = model.fitted_.predictor
    if isinstance(predictor, SideBySide):
        raise ValueError(
            "each target has members of its own: check a model of one target, or a deep model of all of them, "
            "`members=Deep()`."
        )
    if isinstance(predictor, StackRegressor | StackClassifier):
        for part, weight in zip(predictor.parts, predictor.weights, strict=True):
            if isinstance(part, DeepPart):
                return part.fit, float(weight)
        raise ValueError(
            "no deep model takes part in these predictions, and the posteriors of the other members are exact given "
            "their parameters, so there is nothing to compare with NUTS. Fit a deep model alone to check it: "
            "`members=Deep()`, or `bochner fit --members deep`."
        )
    return model.fitted_.deep, 1.0


def _first_member(fit: DeepFit) -> tuple[DeepGP, DeepGP | Members]:
    """Give one member as a plain model, and as it predicts: NUTS knows one draw of the frequencies only."""
    fitted, config = fit.model, fit.config
    if config.objective != "evidence":
        member = fitted.each()[0]
        return member, member
    assert isinstance(fitted, Members)  # of draws of the hidden layers
    # The draws of a member's hidden layers follow each other.
    n_draws = config.n_conditioned
    own = Members(jax.tree.map(lambda leaf: leaf[:n_draws], fitted.stacked), n_draws)
    return unconditioned(own.each()[0]), uncalibrated(own)


def _refitted(fit: DeepFit, member: DeepGP, table: Table, key: jax.Array) -> DeepGP | Members:
    """Fit q(W) again, to these rows."""
    config = fit.config
    trained = train(
        member,
        table,
        plan=Plan(theta_from=None, omega_from=None, n_mc=2, n_mc_final=2),
        budget=Budget(max_steps=_N_REFIT_STEPS),
        batch_size=table.n_rows,
        learning_rate=0.02,
        schedule=Cosine(),
        objective=OBJECTIVES[config.objective](),
        reparameterization=config.reparameterization,
        key=key,
    ).model
    spec = dataclasses.replace(fit.spec, config=config)
    return spec.conditioned(table, trained, key=fit.key("condition"))
