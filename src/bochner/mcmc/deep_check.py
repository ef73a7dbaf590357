"""A deep model's predictions under q(W), and under the exact posterior of its weights."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Int

from bochner.fitting.deep_fit import DeepFit
from bochner.fitting.rows import Rows
from bochner.gp.members import Members
from bochner.gp.model import DeepGP
from bochner.likelihoods import AbstractClassificationLikelihood
from bochner.mcmc.comparison import COVERAGE, PosteriorCheck, Predictions
from bochner.mcmc.deep_target import DeepTarget
from bochner.mcmc.rotations import Effort, Told, sample
from bochner.mcmc.weights import check_fixed_frequencies
from bochner.prediction.statistics import (
    AbstractStatistic,
    LogDensity,
    Posterior,
    Quantiles,
    Several,
)
from bochner.rows.table import Table
from bochner.training import Budget, Cosine, Plan, train

_N_REFIT_STEPS = 200
_N_DRAWS = 400


def check_deep(
    fit: DeepFit,
    given: Rows,
    used: Int[np.ndarray, " used"],
    compared: Int[np.ndarray, " compared"],
    effort: Effort,
    *,
    refit: bool,
    seed: int,
    told: Told,
) -> PosteriorCheck:
    """Compare q(W) with chains over W, given the used rows, on the rows compared."""
    rows = fit.scaled(given)
    table = Table.of(rows.X[used], rows.Y[used])
    key_refit, key_start, key_last, key_draws = jax.random.split(jax.random.key(seed), 4)
    # Each with its own q(W), of which draws may be held in the model that predicts.
    replicates = fit.config.maximized.as_trained(fit.model, n_draws=fit.config.n_conditioned)
    fitted = fit.model
    check_fixed_frequencies(replicates[0])
    if refit:
        told(0.0, "fitting q(W) to these rows")
        replicates, fitted = _refitted(fit, replicates, table, key_refit)
    else:
        fitted = fit.config.maximized.uncalibrated(fitted)
    target = DeepTarget(replicates, table)
    starts = target.starts(replicates, effort.n_chains, key=key_start)
    chains = sample(target, starts, effort, seed=seed, told=told)
    told(1.0, "comparing predictions")
    positions = chains.positions.reshape(len(replicates), -1, chains.positions.shape[-1])
    n_each = min(-(-_N_DRAWS // len(replicates)), positions.shape[1])
    places = np.linspace(0, positions.shape[1] - 1, n_each).astype(int)
    sampled = target.posterior(positions[:, places], key=key_last)
    variational = Posterior.draw(fitted, n_draws=_N_DRAWS, key=key_draws)
    return PosteriorCheck(
        *(_predict(fit, posterior, rows[compared]) for posterior in (variational, sampled)),
        what="weights",
        refitted=refit,
        worst_rhat=chains.worst_rhat,
        smallest_ess=chains.smallest_ess,
        n_divergent=chains.n_divergent,
        Y=given.Y[compared],
        n_rows=len(used),
        new_rows=not np.array_equal(used, compared),
    )


def _refitted(
    fit: DeepFit, replicates: list[DeepGP], table: Table, key: jax.Array
) -> tuple[list[DeepGP], DeepGP | Members]:
    """Fit q(W) of all replicates again, to these rows; give them as trained and as they predict."""
    trained = train(
        Members.of(replicates) if len(replicates) > 1 else replicates[0],
        table,
        plan=Plan(theta_from=None, omega_from=None, n_mc=1, n_mc_final=1),
        budget=Budget(max_steps=_N_REFIT_STEPS),
        batch_size=table.n_rows,
        learning_rate=0.1,
        schedule=Cosine(),
        objective=fit.config.maximized,
        reparameterization=fit.config.reparameterization,
        key=key,
    ).model
    return trained.each(), fit.spec.conditioned(table, trained, key=fit.key("condition"))


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
        parts["ends"] = Quantiles(jnp.array([(1 - COVERAGE) / 2, (1 + COVERAGE) / 2]))
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
