"""The predictions of two posteriors side by side, with a verdict in words."""

import dataclasses
from typing import Any

import numpy as np
from jaxtyping import Float

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
        weight: of the deep model that is checked among the members that predict; 1 where it predicts alone.
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
    weight: float = 1.0

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
            "weight_of_checked_model": self.weight,
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
        return " ".join([*self._of_a_stack(), self.verdict, LIMITS])

    def _of_a_stack(self) -> list[str]:
        if self.weight == 1.0:
            return []
        return [
            f"Several members predict together, and the deep one alone is checked, whose weight is {self.weight:.2f}; "
            "the posteriors of the others are exact given their parameters."
        ]

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
            "plots need matplotlib: install it with `pip install matplotlib`."
        ) from error
    return plt.subplots(1, 2, figsize=(8, 3.6), layout="constrained")[1]
