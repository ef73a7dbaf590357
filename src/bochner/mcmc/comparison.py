"""The predictions of a fitted member beside those of MCMC, with a verdict in words."""

import dataclasses
from typing import Any

import numpy as np
from jaxtyping import Float

COVERAGE = 0.9
_TOO_WIDE, _TOO_NARROW = 1.1, 0.9
_LARGEST_RHAT, _SMALLEST_ESS = 1.05, 100.0
LIMITS = {
    "weights": "This sees the error of q(W) only: theta and Omega are held at their fitted values on both sides, so "
    "what is wrong with them, and the uncertainty about them, is missing from both.",
    "hyper-parameters": "This sees what one value of each hyper-parameter leaves out: covariance, transform of the "
    "target, tails and varying noise are the same on both sides.",
}
"""What a check does not see, by what was sampled."""


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
    """The predictions of a fitted member beside those of MCMC, given the same rows.

    Attributes:
        fitted: predictions as fitted: with W from q(W), or with the best hyper-parameters.
        sampled: predictions with what was sampled from its exact posterior.
        what: was sampled, weights or hyper-parameters.
        refitted: whether the fitted side was fitted again to these rows.
        worst_rhat: largest split R-hat of what is predicted for the rows.
        smallest_ess: smallest effective sample size of it.
        n_divergent: draws whose trajectory diverged.
        Y: targets of the rows compared.
        n_rows: rows on which both are conditioned.
        new_rows: whether the rows compared are others than these.
        member: that is checked.
        weight: of it among the members that predict; 1 where it predicts alone.
    """

    fitted: Predictions
    sampled: Predictions
    what: str
    refitted: bool
    worst_rhat: float
    smallest_ess: float
    n_divergent: int
    Y: np.ndarray
    n_rows: int
    new_rows: bool
    member: str = "deep"
    weight: float = 1.0

    @property
    def converged(self) -> bool:
        """Whether the chains agree, and are worth enough independent draws for a verdict."""
        return self.worst_rhat < _LARGEST_RHAT and self.smallest_ess >= _SMALLEST_ESS

    @property
    def mean_difference(self) -> float:
        """Root mean square difference of the predictive means, in predictive standard deviations of MCMC."""
        difference = (self.fitted.mean - self.sampled.mean) / self.sampled.std
        return float(np.sqrt(np.mean(difference**2)))

    @property
    def function_std_ratio(self) -> tuple[float, float, float]:
        """The fitted standard deviation of the function over that of MCMC: 5 %, 50 % and 95 % of the rows."""
        return _range(self.fitted.function_std / self.sampled.function_std)

    @property
    def std_ratio(self) -> tuple[float, float, float]:
        """The same with noise: the standard deviation of the target."""
        return _range(self.fitted.std / self.sampled.std)

    @property
    def interval_ratio(self) -> tuple[float, float, float] | None:
        """The width of the fitted 90 % intervals over those of MCMC; None for classes."""
        ours, theirs = self.fitted.width, self.sampled.width
        return None if ours is None or theirs is None else _range(ours / theirs)

    @property
    def function_share(self) -> tuple[float, float]:
        """The mean share of the predictive variance that is the function's: fitted, sampled."""
        ours, theirs = (
            float(np.mean(p.function_std**2 / p.std**2)) for p in (self.fitted, self.sampled)
        )
        return ours, theirs

    @property
    def log_density_gain(self) -> float:
        """The mean log density of the rows compared under MCMC minus that as fitted."""
        return float(np.mean(self.sampled.log_density - self.fitted.log_density))

    @property
    def verdict(self) -> str:
        """By how much the fitted answer is too wide or too narrow, in words; none unless the chains converged."""
        if not self.converged:
            return (
                f"No verdict: the chains have not converged, with R-hat up to {self.worst_rhat:.2f} (below "
                f"{_LARGEST_RHAT:g} is needed) and an effective sample size of {self.smallest_ess:.0f} (at least "
                f"{_SMALLEST_ESS:g}). Give them more time (`--seconds`, `max_seconds`), or condition on fewer rows "
                "(`--rows`, `n_rows`); until then, judge the model by its intervals on rows left out."
            )
        low, middle, high = self.function_std_ratio
        spread = f"(5 % to 95 % of the rows: {low:.2f} to {high:.2f})"
        if middle > _TOO_WIDE:
            found = "too wide"
        elif middle < _TOO_NARROW:
            found = "too narrow"
        else:
            found = "about right"
        total = f"With noise the factor is {self.std_ratio[1]:.2f}"
        means = f"and means differ by {self.mean_difference:.2f} predictive deviations."
        text = (
            f"The fitted answer is {found}: its deviation of the function is {middle:.2f} times that of MCMC "
            f"{spread}. {total}, {means}"
        )
        if self.n_divergent > 0:
            text += f" Take it with care: {self.n_divergent} trajectories diverged."
        return text

    def numbers(self) -> dict[str, Any]:
        """Give the comparison as plain numbers; of chains that have not converged, only how far they are from it."""
        return {
            "member": self.member,
            "weight_of_checked_model": self.weight,
            "sampled": self.what,
            "rows": self.n_rows,
            "refitted": self.refitted,
            "compared_on_new_rows": self.new_rows,
            **(self._comparison() if self.converged else {}),
            "worst_rhat": self.worst_rhat,
            "smallest_ess": self.smallest_ess,
            "divergent_draws": self.n_divergent,
        }

    def _comparison(self) -> dict[str, Any]:
        names = ("5 %", "median", "95 %")
        interval = self.interval_ratio
        return {
            "mean_difference": self.mean_difference,
            "function_std_ratio": dict(zip(names, self.function_std_ratio, strict=True)),
            "std_ratio": dict(zip(names, self.std_ratio, strict=True)),
            "interval_ratio": None if interval is None else dict(zip(names, interval, strict=True)),
            "coverage_90": _pair(self.fitted.coverage(self.Y), self.sampled.coverage(self.Y)),
            "function_share_of_variance": _pair(*self.function_share),
            "log_density_gain_of_sampling": self.log_density_gain,
        }

    def __str__(self) -> str:
        return " ".join([*self._of_a_stack(), self.verdict, LIMITS[self.what]])

    def _of_a_stack(self) -> list[str]:
        if self.weight == 1.0:
            return []
        return [
            f"Several members predict together; checked is '{self.member}' alone, whose weight is {self.weight:.2f}."
        ]

    def plot(self, axes: Any = None) -> Any:
        """Draw means and deviations of both, row by row; on the diagonal they agree.

        Args:
            axes: two matplotlib axes; new ones by default.
        """
        if axes is None:
            axes = _new_axes()
        pairs = (
            ("mean", self.sampled.mean, self.fitted.mean),
            ("standard deviation of the function", self.sampled.function_std, self.fitted.function_std),
        )  # fmt: skip
        for ax, (title, exact, ours) in zip(axes, pairs, strict=True):
            ends = [min(exact.min(), ours.min()), max(exact.max(), ours.max())]
            ax.plot(ends, ends, color="#8a8a8a", linewidth=1)
            ax.scatter(exact.ravel(), ours.ravel(), s=8, color="#1f5fa8", alpha=0.6, linewidths=0)
            ax.set_xlabel("MCMC")
            ax.set_ylabel("fitted")
            ax.set_title(title)
        low, middle, high = self.function_std_ratio
        axes[1].annotate(
            f"ratio {middle:.2f}\n({low:.2f} to {high:.2f})", (0.04, 0.96), xycoords="axes fraction", va="top"
        )  # fmt: skip
        return axes


def _range(ratios: np.ndarray) -> tuple[float, float, float]:
    low, middle, high = np.quantile(ratios, [0.05, 0.5, 0.95])
    return float(low), float(middle), float(high)


def _pair(fitted: float | None, sampled: float | None) -> dict[str, float] | None:
    return None if fitted is None or sampled is None else {"fitted": fitted, "sampled": sampled}


def _new_axes() -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            "plots need matplotlib: install it with `pip install matplotlib`."
        ) from error
    return plt.subplots(1, 2, figsize=(8, 3.6), layout="constrained")[1]
