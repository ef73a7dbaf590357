"""How far the variational answer of a fitted model is from the exact posterior over its weights."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from bochner.estimators.config import Config, check_whole_number
from bochner.estimators.rows import Rows
from bochner.gp.members import Members
from bochner.gp.model import DeepGP
from bochner.inference.calibration import uncalibrated
from bochner.inference.conditioning import unconditioned
from bochner.inference.objectives import OBJECTIVES
from bochner.likelihoods import AbstractClassificationLikelihood
from bochner.mcmc.weights import sample_weights
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
_TOO_WIDE, _TOO_NARROW = 1.1, 0.9
_RHAT_LIMIT = 1.1
LIMITS = (
    "This sees the error of q(W) only: theta and Omega are held at their fitted values on both sides, so what is "
    "wrong with them, and the uncertainty about them, is missing from both."
)


@dataclasses.dataclass(frozen=True)
class Predictions:
    """Predictions at the rows compared, in the units of y; for classes, of their probabilities.

    Attributes:
        mean: predictive mean.
        function_std: standard deviation over draws of what the function predicts, without noise.
        std: standard deviation of the target, noise included.
        interval: ends of the central 90 % intervals; None for classes.
        log_density: log density of the targets.
    """

    mean: Float[np.ndarray, "n targets"]
    function_std: Float[np.ndarray, "n targets"]
    std: Float[np.ndarray, "n targets"]
    interval: Float[np.ndarray, "n targets 2"] | None
    log_density: Float[np.ndarray, " n"]

    @property
    def width(self) -> Float[np.ndarray, "n targets"] | None:
        """The width of the intervals."""
        return None if self.interval is None else self.interval[..., 1] - self.interval[..., 0]

    def coverage(self, Y: np.ndarray) -> float | None:
        """The share of targets inside the intervals."""
        if self.interval is None:
            return None
        inside = (self.interval[..., 0] <= Y) & (self.interval[..., 1] >= Y)
        return float(np.mean(inside))


@dataclasses.dataclass(frozen=True)
class PosteriorCheck:
    """The variational predictions of a model beside those of NUTS on the same features.

    Attributes:
        variational: predictions with W from q(W).
        nuts: predictions with W from its exact posterior.
        Y: targets of the rows compared.
        n_rows: rows on which both are conditioned.
        refitted: whether q(W) was fitted again to these rows, theta and Omega held.
        new_rows: whether the rows compared are others than these.
        worst_rhat: largest split R-hat of the function's values.
        smallest_ess: smallest effective sample size of them.
        n_divergent: draws whose trajectory diverged.
    """

    variational: Predictions
    nuts: Predictions
    Y: np.ndarray
    n_rows: int
    refitted: bool
    new_rows: bool
    worst_rhat: float
    smallest_ess: float
    n_divergent: int

    @property
    def mean_difference(self) -> float:
        """Root mean square difference of the predictive means, in predictive standard deviations of NUTS."""
        difference = (self.variational.mean - self.nuts.mean) / self.nuts.std
        return float(np.sqrt(np.mean(difference**2)))

    @property
    def function_std_ratio(self) -> tuple[float, float, float]:
        """The variational standard deviation of the function over that of NUTS: 5 %, 50 % and 95 % of the rows."""
        return _range(self.variational.function_std / self.nuts.function_std)

    @property
    def std_ratio(self) -> tuple[float, float, float]:
        """The same with noise: the standard deviation of the target."""
        return _range(self.variational.std / self.nuts.std)

    @property
    def interval_ratio(self) -> tuple[float, float, float] | None:
        """The width of the variational 90 % intervals over those of NUTS; None for classes."""
        ours, theirs = self.variational.width, self.nuts.width
        return None if ours is None or theirs is None else _range(ours / theirs)

    @property
    def function_share(self) -> tuple[float, float]:
        """The mean share of the predictive variance that is the function's: variational, NUTS."""
        ours, theirs = (
            float(np.mean(p.function_std**2 / p.std**2)) for p in (self.variational, self.nuts)
        )
        return ours, theirs

    @property
    def log_density_gain(self) -> float:
        """The mean log density of the rows compared under NUTS minus that under q(W)."""
        return float(np.mean(self.nuts.log_density - self.variational.log_density))

    @property
    def verdict(self) -> str:
        """By how much the variational answer is too wide or too narrow, in words."""
        low, middle, high = self.function_std_ratio
        spread = f"(5 % to 95 % of the rows: {low:.2f} to {high:.2f})"
        if middle > _TOO_WIDE:
            found = f"too wide: its deviation of the function is {middle:.2f} times that of NUTS"
        elif middle < _TOO_NARROW:
            found = f"too narrow: its deviation of the function is {middle:.2f} times that of NUTS"
        else:
            found = f"about right: its deviation of the function is {middle:.2f} times that of NUTS"
        total = f"With noise the factor is {self.std_ratio[1]:.2f}"
        means = f"and means differ by {self.mean_difference:.2f} predictive deviations."
        text = f"The variational answer is {found} {spread}. {total}, {means}"
        if self.worst_rhat > _RHAT_LIMIT or self.n_divergent > 0:
            text += (
                f" Take it with care: R-hat is up to {self.worst_rhat:.2f}, and {self.n_divergent} draws diverged; "
                "use more warm-up steps and samples."
            )
        return text

    def numbers(self) -> dict[str, Any]:
        """Give the comparison as plain numbers."""
        names = ("5 %", "median", "95 %")
        interval = self.interval_ratio
        share = self.function_share
        return {
            "rows": self.n_rows,
            "refitted": self.refitted,
            "compared_on_new_rows": self.new_rows,
            "mean_difference": self.mean_difference,
            "function_std_ratio": dict(zip(names, self.function_std_ratio, strict=True)),
            "std_ratio": dict(zip(names, self.std_ratio, strict=True)),
            "interval_ratio": None if interval is None else dict(zip(names, interval, strict=True)),
            "coverage_90": _pair(self.variational.coverage(self.Y), self.nuts.coverage(self.Y)),
            "function_share_of_variance": _pair(*share),
            "log_density_gain_of_nuts": self.log_density_gain,
            "worst_rhat": self.worst_rhat,
            "smallest_ess": self.smallest_ess,
            "divergent_draws": self.n_divergent,
        }

    def __str__(self) -> str:
        return f"{self.verdict} {LIMITS}"

    def plot(self, axes: Any = None) -> Any:
        """Draw means and deviations of both, row by row; on the diagonal they agree.

        Args:
            axes: two matplotlib axes; new ones by default.
        """
        if axes is None:
            axes = _new_axes()
        pairs = (
            ("mean", self.nuts.mean, self.variational.mean),
            ("standard deviation of the function", self.nuts.function_std, self.variational.function_std),
        )  # fmt: skip
        for ax, (title, exact, ours) in zip(axes, pairs, strict=True):
            ends = [min(exact.min(), ours.min()), max(exact.max(), ours.max())]
            ax.plot(ends, ends, color="#8a8a8a", linewidth=1)
            ax.scatter(exact.ravel(), ours.ravel(), s=8, color="#1f5fa8", alpha=0.6, linewidths=0)
            ax.set_xlabel("NUTS")
            ax.set_ylabel("variational")
            ax.set_title(title)
        low, middle, high = self.function_std_ratio
        axes[1].annotate(
            f"ratio {middle:.2f}\n({low:.2f} to {high:.2f})", (0.04, 0.96), xycoords="axes fraction", va="top"
        )  # fmt: skip
        return axes


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
) -> PosteriorCheck:
    """Compare a fitted model's predictions with those of NUTS on the same features, theta and Omega held.

    Both sides must be conditioned on the same rows. With the very rows of the fit the fitted q(W) is compared as it is.
    With other rows, or with a random part of them where there are more than `n_rows`, q(W) is first fitted again to the
    rows that NUTS gets, since the posterior of a part is wider than that of the whole. The answer is then about
    the factorized family at that number of rows: with more rows the noise dominates more and the factors of
    the predictive deviation come nearer to one. Where rows are left over, predictions are compared on these (at
    most 1,000), otherwise on the rows themselves.

    It sees the error of q(W) only. Theta and Omega have the same, optimized, values on both sides.

    Args:
        model: a fitted `DeepGPRegressor` or `DeepGPClassifier` with fixed frequencies.
        X: rows, in any form that the model predicts from.
        y: their targets, or the name of their column.
        n_rows: rows to condition on at most.
        n_samples: draws to keep of each chain.
        n_warmup: steps of each chain before the first draw.
        n_chains: independent chains, started at draws from q(W).
        refit: fit q(W) again to the rows, or not; None does so unless their number is that of the fit.
        random_state: seed.

    Example:
        >>> import numpy as np
        >>> from bochner import DeepGPRegressor
        >>> from bochner.mcmc import check_posterior
        >>> x = np.linspace(-1, 1, 40)[:, None]
        >>> model = DeepGPRegressor(n_layers=1, n_random_features=5, max_steps=500, random_state=0)
        >>> model = model.fit(x, np.sin(3 * x[:, 0]))
        >>> found = check_posterior(model, x, np.sin(3 * x[:, 0]), n_samples=50, n_warmup=50)
        >>> found.refitted, found.n_rows
        (False, 40)
    """
    check_is_fitted(model)
    for name, number in (
        ("n_rows", n_rows), ("n_samples", n_samples), ("n_warmup", n_warmup), ("n_chains", n_chains),
    ):  # fmt: skip
        check_whole_number(name, number)
    X, Y = model._checked_rows(X, y)
    seed = check_random_state(random_state).randint(np.iinfo(np.int32).max)
    order = np.random.default_rng(seed).permutation(len(X))
    used, left_over = np.sort(order[:n_rows]), np.sort(order[n_rows : n_rows + _N_COMPARED])
    compared = left_over if len(left_over) else used
    rows = model._scaled(Rows(X, Y, np.ones(len(X))))
    if refit is None:
        refit = len(used) < len(X) or len(used) != model.trained_weight_
    key_refit, key_nuts, key_draws = jax.random.split(jax.random.key(seed), 3)
    with model._on_device():
        table = Table.of(rows.X[used], rows.Y[used])
        member, fitted = _first_member(model)
        if refit:
            fitted = _refitted(model, member, table, key_refit)
        draws = sample_weights(
            member, table.X, table.Y,
            n_samples=n_samples, n_warmup=n_warmup, n_chains=n_chains, key=key_nuts,
        )  # fmt: skip
        posteriors = (
            Posterior.draw(fitted, n_draws=n_samples * n_chains, key=key_draws),
            draws.posterior,
        )
        variational, nuts = (_predict(model, posterior, rows[compared]) for posterior in posteriors)
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


def _predict(model: Any, posterior: Posterior, rows: Rows) -> Predictions:
    parts: dict[str, AbstractStatistic] = {"moments": _FunctionMoments(), "density": LogDensity()}
    classes, scaling = hasattr(model, "classes_"), model._target_scaling
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


def _first_member(model: Any) -> tuple[DeepGP, DeepGP | Members]:
    """Give one member as a plain model, and as it predicts: NUTS knows one draw of the frequencies only."""
    fitted, config = model.model_, Config(**model.config_)
    if config.objective != "evidence":
        member = fitted.each()[0]
        return member, member
    # The draws of a member's hidden layers follow each other.
    n_draws = config.n_conditioned
    own = Members(jax.tree.map(lambda leaf: leaf[:n_draws], fitted.stacked), n_draws)
    return unconditioned(own.each()[0]), uncalibrated(own)


def _refitted(model: Any, member: DeepGP, table: Table, key: jax.Array) -> DeepGP | Members:
    """Fit q(W) again, to these rows."""
    config = Config(**model.config_)
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
    return model._conditioned(config, table, trained)


def _range(ratios: np.ndarray) -> tuple[float, float, float]:
    low, middle, high = np.quantile(ratios, [0.05, 0.5, 0.95])
    return float(low), float(middle), float(high)


def _pair(variational: float | None, nuts: float | None) -> dict[str, float] | None:
    return (
        None if variational is None or nuts is None else {"variational": variational, "NUTS": nuts}
    )


def _new_axes() -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            "plots need matplotlib: install it with `pip install bochner[plots]`."
        ) from error
    return plt.subplots(1, 2, figsize=(8, 3.6), layout="constrained")[1]
