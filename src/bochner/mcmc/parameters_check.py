"""An exact process's predictions at the best hyper-parameters, and under their posterior."""

import dataclasses

import numpy as np
from jaxtyping import Float, Int

from bochner.fitting.rows import Rows
from bochner.mcmc.comparison import COVERAGE, PosteriorCheck, Predictions
from bochner.mcmc.parameters_target import ParametersTarget
from bochner.mcmc.rotations import Effort, Told, sample
from bochner.members.laws import LawInRows, Mixture
from bochner.members.parts import RowsPart
from bochner.system.threads import blas_on_one_thread

_N_DRAWS = 64


def check_parameters(
    member: RowsPart,
    given: Rows,
    used: Int[np.ndarray, " used"],
    compared: Int[np.ndarray, " compared"],
    effort: Effort,
    *,
    seed: int,
    told: Told,
) -> PosteriorCheck:
    """Compare one best value of each parameter with chains over them, given the used rows, on the rows compared."""
    told(0.0, "finding the mode of the hyper-parameters")
    rows = member.columns(given.X)
    y, own = given.Y[:, 0], rows[compared]
    with blas_on_one_thread():
        target = ParametersTarget(member.part, rows[used], y[used], until=effort.until)
        rng = np.random.default_rng(seed)
        starts = rng.standard_normal((effort.n_chains, target.n_parameters))
        first = dataclasses.replace(effort, rhat=np.inf, ess=0.0)
        found_first = sample(target, starts, first, seed=seed, told=told).positions
        target.moved_to(found_first.reshape(-1, target.n_parameters))
        starts = rng.standard_normal(starts.shape)
        chains = sample(target, starts, effort, seed=seed, told=told)
        told(1.0, "comparing predictions")
        drawn = chains.positions.reshape(-1, target.n_parameters)
        places = np.linspace(0, len(drawn) - 1, min(_N_DRAWS, len(drawn))).astype(int)
        found = []
        for parameters in ([target.mode], [target.v(z) for z in drawn[places]]):
            laws = [LawInRows(target.part_at(v).law(own), member.extent) for v in parameters]
            found.append(_predict(Mixture(np.full(len(laws), 1 / len(laws)), laws), y[compared]))
    return PosteriorCheck(
        *found,
        what="hyper-parameters",
        refitted=True,
        worst_rhat=chains.worst_rhat,
        smallest_ess=chains.smallest_ess,
        n_divergent=chains.n_divergent,
        Y=given.Y[compared],
        n_rows=len(used),
        new_rows=not np.array_equal(used, compared),
    )


def _predict(law: Mixture, y: Float[np.ndarray, " compared"]) -> Predictions:
    mean, epistemic, aleatoric = law.moments()
    ends = law.quantiles([(1 - COVERAGE) / 2, (1 + COVERAGE) / 2])
    return Predictions(
        mean[:, None],
        np.sqrt(epistemic)[:, None],
        np.sqrt(epistemic + aleatoric)[:, None],
        ends[:, None, :],
        law.log_density(y),
    )
