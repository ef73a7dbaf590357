"""Constant and linear models in closed form: what a fit is compared with, and what takes its place where it is worse.

Inputs and targets are scaled ones. As part of an estimator, a baseline is a deep Gaussian process of one layer whose
held frequencies are zero, of which the cosine is one, or so small that the sine of a projection is the projection.
"""

import dataclasses
import math
import warnings
from abc import ABC, abstractmethod

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy.special import gammaln, log_softmax, logsumexp
from sklearn.linear_model import LogisticRegression

from bochner.estimators.config import Config
from bochner.estimators.rows import Rows
from bochner.features.spectra import PriorFixed
from bochner.gp.layers import Layer
from bochner.gp.members import Members
from bochner.gp.model import DeepGP
from bochner.kernels import RBF
from bochner.likelihoods import AbstractLikelihood, Gaussian, Softmax
from bochner.posteriors.gaussians import AnyGaussian, FactorizedGaussian, JointGaussian

_MOST_ROWS, _FEWEST_ROWS, _MOST_PRODUCTS = 20_000, 2_000, 2e10
_MOST_COLUMNS = 2_000
_LEAST_VARIANCE = 1e-6  # of the noise, as in a heteroscedastic likelihood
_STRENGTHS = np.geomspace(1e-6, 1e2, 17)  # of the penalty, per row
_INVERSE_STRENGTHS = (1e-3, 1e-2, 1e-1, 1.0, 10.0)
_MOST_LOGISTIC_PRODUCTS = 2e7
_UNSEEN = 0.5  # rows that each class is given beside those seen
_SMALL_FREQUENCY = 1e-3  # sin(z) is z to 1e-5 of it up to eight deviations
_SURE = -30.0  # log variance
_LEAST_RELEVANCE = 1e-4


class AbstractBaseline(ABC):
    """A model that is constant, or linear in the inputs."""

    @abstractmethod
    def log_density(self, rows: Rows) -> Float[np.ndarray, " n"]:
        """Compute each row's log predictive density or probability."""


class AbstractReplacement(AbstractBaseline):
    """A baseline that can take the place of a fitted model."""

    @abstractmethod
    def config(self, config: Config, d_in: int) -> Config:
        """Say in a configuration what the model is; what concerns training stays."""

    @abstractmethod
    def model(self, d_in: int) -> DeepGP | Members:
        """Give the model."""


@dataclasses.dataclass(frozen=True)
class GaussianBaseline(AbstractReplacement):
    """Bayesian linear regression; without columns, a constant.

    The strength of the prior and the noise are those under which rows are most probable that are left out.

    Example:
        >>> import numpy as np
        >>> from bochner.estimators.baselines import GaussianBaseline
        >>> from bochner.estimators.rows import Rows
        >>> x = np.linspace(-1, 1, 50)[:, None]
        >>> rows = Rows(x, 2 * x + 1, np.ones(50))
        >>> linear, constant = (GaussianBaseline.fit(rows, linear=linear) for linear in (True, False))
        >>> linear.slopes.round(2).tolist(), constant.slopes.shape
        ([[2.0]], (0, 1))

    Attributes:
        center: means of the columns.
        offset: predictions there, one a target.
        slopes: columns by targets.
        noise: variances, one a target.
        offset_variance: of each target, for a noise variance of one.
        slope_covariance: the same for slopes.
    """

    center: Float[np.ndarray, " d"]
    offset: Float[np.ndarray, " targets"]
    slopes: Float[np.ndarray, "d targets"]
    noise: Float[np.ndarray, " targets"]
    offset_variance: float
    slope_covariance: Float[np.ndarray, "targets d d"]

    @classmethod
    def fit(cls, rows: Rows, *, linear: bool) -> "GaussianBaseline":
        """Fit to rows, or to some of very many."""
        rows = _some(rows, _most_rows(rows.X.shape[1]))
        X = rows.X if linear else rows.X[:, :0]
        Y, weights = rows.Y, rows.weights
        total = weights.sum()
        center, offset = (weights @ X) / total, (weights @ Y) / total
        deviations = X - center
        values, vectors = np.linalg.eigh((deviations.T * weights) @ deviations)
        values, projected = np.maximum(values, 0.0), deviations @ vectors
        found = [
            _best_ridge(projected, Y[:, target] - offset[target], weights, values)
            for target in range(Y.shape[1])
        ]
        penalties, noise, rotated = (np.array(part) for part in zip(*found, strict=True))
        covariance = [(vectors / (values + penalty)) @ vectors.T for penalty in penalties]
        slopes = vectors @ rotated.T
        return cls(center, offset, slopes, noise, 1.0 / total, np.array(covariance))

    def log_density(self, rows: Rows) -> np.ndarray:  # noqa: D102
        deviations = rows.X[:, : len(self.center)] - self.center
        means = self.offset + deviations @ self.slopes
        spread = np.stack(
            [np.sum((deviations @ part) * deviations, axis=1) for part in self.slope_covariance],
            axis=1,
        )
        variances = self.noise * (1.0 + self.offset_variance + spread)
        squares = (rows.Y - means) ** 2 / variances
        return -0.5 * np.sum(squares + np.log(2 * np.pi * variances), axis=1)

    def config(self, config: Config, d_in: int) -> Config:  # noqa: D102
        settings = {"likelihood": "gaussian", "objective": "evidence"}
        return _config(config, len(self.slopes), **settings)

    def model(self, d_in: int) -> Members:
        """Give the exact posterior."""
        frequencies = _Frequencies.of(d_in, self.slopes)
        at_zero = self.offset - self.center @ self.slopes
        mean = frequencies.weights(at_zero, self.slopes)
        factors = []
        for target in range(len(self.offset)):
            deviation = math.sqrt(self.noise[target])
            slopes = deviation * np.linalg.cholesky(self.slope_covariance[target])
            # The offset at zero moves with the slopes, and is known at the center.
            factor = frequencies.narrow()
            ones, others = frequencies.of_one, frequencies.of_columns
            factor[np.ix_(others, others)] = slopes / frequencies.slope
            factor[ones, others] = -(self.center @ slopes) / frequencies.height
            factor[ones, ones] = deviation * math.sqrt(self.offset_variance) / frequencies.height
            factors.append(factor)
        q_W = JointGaussian(jnp.asarray(mean), jnp.asarray(np.array(factors, np.float32)))
        likelihood = Gaussian(jnp.asarray(np.log(self.noise), jnp.float32))
        return Members.of([frequencies.model(q_W, likelihood)])


@dataclasses.dataclass(frozen=True)
class ClassBaseline(AbstractReplacement):
    """Logistic regression, its penalty chosen on a quarter of the rows; without columns, how frequent classes are.

    Example:
        >>> import numpy as np
        >>> from bochner.estimators.baselines import ClassBaseline
        >>> from bochner.estimators.rows import Rows
        >>> x = np.linspace(-1, 1, 50)[:, None]
        >>> rows = Rows(x, (x > 0).astype(np.int32), np.ones(50))
        >>> linear = ClassBaseline.fit(rows, 2, linear=True)
        >>> bool(linear.log_density(rows).mean() > np.log(0.9))
        True

    Attributes:
        offsets: one a class.
        slopes: columns by classes.
        deviations: of offsets, and below them of slopes.
    """

    offsets: Float[np.ndarray, " classes"]
    slopes: Float[np.ndarray, "d classes"]
    deviations: Float[np.ndarray, "d_plus_one classes"]

    @classmethod
    def fit(cls, rows: Rows, n_classes: int, *, linear: bool) -> "ClassBaseline":
        """Fit to rows, or to some of very many."""
        rows = rows[rows.weights > 0]
        if not linear:
            counts = np.bincount(rows.Y[:, 0], rows.weights, n_classes) + _UNSEEN
            offsets = np.log(counts / counts.sum())
            deviations = 1 / np.sqrt(counts)
            return cls(offsets, np.zeros((0, n_classes)), deviations[None, :])
        most = int(_MOST_LOGISTIC_PRODUCTS / (rows.X.shape[1] * n_classes))
        rows = _some(rows, max(_FEWEST_ROWS, min(most, _MOST_ROWS)))
        order = np.random.default_rng(0).permutation(len(rows))
        n_judged = -(-len(rows) // 4)
        kept, judged = rows[order[n_judged:]], rows[order[:n_judged]]
        scores = [
            judged.weights @ cls._fit(kept, n_classes, C).log_density(judged)
            for C in _INVERSE_STRENGTHS
        ]
        return cls._fit(rows, n_classes, _INVERSE_STRENGTHS[int(np.argmax(scores))])

    @classmethod
    def _fit(cls, rows: Rows, n_classes: int, C: float) -> "ClassBaseline":
        X, labels, weights = rows.X, rows.Y[:, 0], rows.weights
        offsets, slopes = np.zeros(n_classes), np.zeros((X.shape[1], n_classes))
        seen = np.unique(labels)
        if len(seen) > 1:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # not to converge to the last digit is no matter
                found = LogisticRegression(C=C, max_iter=200).fit(X, labels, weights)
            if len(seen) == 2:
                offsets[seen] = np.array([-0.5, 0.5]) * found.intercept_[0]
                slopes[:, seen] = np.outer(found.coef_[0], [-0.5, 0.5])
            else:
                offsets[seen], slopes[:, seen] = found.intercept_, found.coef_.T
        unseen = np.setdiff1d(np.arange(n_classes), seen)
        F = offsets + X @ slopes
        level = np.mean(logsumexp(F[:, seen], axis=1))
        offsets[unseen] = level + math.log(_UNSEEN / weights.sum())
        probabilities = np.exp(log_softmax(offsets + X @ slopes, axis=1))
        curvature = weights[:, None] * probabilities * (1 - probabilities)
        precisions = np.concatenate(
            [np.sum(curvature, axis=0)[None] + _UNSEEN, (X**2).T @ curvature + 1 / C]
        )
        return cls(offsets, slopes, 1 / np.sqrt(precisions))

    def log_density(self, rows: Rows) -> np.ndarray:  # noqa: D102
        F = self.offsets + rows.X[:, : len(self.slopes)] @ self.slopes
        return np.take_along_axis(log_softmax(F, axis=1), rows.Y, axis=1)[:, 0]

    def config(self, config: Config, d_in: int) -> Config:  # noqa: D102
        settings = {"likelihood": "softmax", "objective": "elbo"}
        return _config(config, len(self.slopes), **settings)

    def model(self, d_in: int) -> DeepGP:
        """Give the posterior as each weight has it alone."""
        frequencies = _Frequencies.of(d_in, self.slopes)
        mean = frequencies.weights(self.offsets, self.slopes)
        deviations = frequencies.weights(self.deviations[0], self.deviations[1:])
        log_var = np.full(mean.shape, _SURE, np.float32)
        log_var[deviations > 0] = 2 * np.log(deviations[deviations > 0])
        q_W = FactorizedGaussian(jnp.asarray(mean), jnp.asarray(log_var))
        return frequencies.model(q_W, Softmax())


@dataclasses.dataclass(frozen=True)
class PoissonConstant(AbstractBaseline):
    """Counts of one mean, to compare with.

    Example:
        >>> import numpy as np
        >>> from bochner.estimators.baselines import PoissonConstant
        >>> from bochner.estimators.rows import Rows
        >>> rows = Rows(np.zeros((2, 1)), np.array([[1.0], [3.0]]), np.ones(2))
        >>> PoissonConstant.fit(rows).means.tolist()
        [2.0]
    """

    means: Float[np.ndarray, " targets"]

    @classmethod
    def fit(cls, rows: Rows) -> "PoissonConstant":
        """Fit to rows."""
        return cls(np.maximum(np.average(rows.Y, axis=0, weights=rows.weights), 1e-12))

    def log_density(self, rows: Rows) -> np.ndarray:  # noqa: D102
        logs = rows.Y * np.log(self.means) - self.means - gammaln(rows.Y + 1)
        return np.sum(logs, axis=1)


def fit_baselines(rows: Rows, likelihood: str, n_classes: int) -> dict[str, AbstractBaseline]:
    """Fit those baselines by name that fit a likelihood; `n_classes` is for classification."""
    if likelihood == "poisson":
        return {"constant": PoissonConstant.fit(rows)}
    names = {"constant": False, "linear": True}
    if rows.X.shape[1] > _MOST_COLUMNS:
        del names["linear"]
    if np.issubdtype(rows.Y.dtype, np.integer):
        return {name: ClassBaseline.fit(rows, n_classes, linear=v) for name, v in names.items()}
    return {name: GaussianBaseline.fit(rows, linear=v) for name, v in names.items()}


@dataclasses.dataclass(frozen=True)
class _Frequencies:
    """One zero frequency, and a small one for each column that enters; the layer's features are those of an RBF kernel.

    Attributes:
        epsilon: base frequencies.
        log_lengthscale: such that the relevance of a column is the size of its slope.
        height: the feature that is constant.
        slope: that of each column's feature.
    """

    epsilon: Float[np.ndarray, "d_in rf"]
    log_lengthscale: Float[np.ndarray, " d_in"]
    height: float
    slope: float

    @classmethod
    def of(cls, d_in: int, slopes: np.ndarray) -> "_Frequencies":
        sizes = np.sqrt(np.mean(slopes**2, axis=1)) if len(slopes) else np.ones(d_in)
        largest = max(float(sizes.max(initial=0.0)), _LEAST_VARIANCE)
        relevances = np.maximum(sizes / largest, _LEAST_RELEVANCE)
        columns = np.diag(_SMALL_FREQUENCY / relevances)[:, : len(slopes)]
        epsilon = np.concatenate([np.zeros((d_in, 1)), columns], axis=1)
        # Weights of about one give the largest slope.
        return cls(epsilon, -np.log(relevances), largest / _SMALL_FREQUENCY, largest)

    @property
    def n_rf(self) -> int:
        return self.epsilon.shape[1]

    @property
    def of_one(self) -> int:
        """Where the constant feature is: the first of the cosines."""
        return 0

    @property
    def of_columns(self) -> np.ndarray:
        """Where the features of the columns are: the sines but for the first."""
        return np.arange(self.n_rf + 1, 2 * self.n_rf)

    def weights(self, at_zero: np.ndarray, slopes: np.ndarray) -> np.ndarray:
        """Give the weights of all features under which the layer gives a linear function."""
        found = np.zeros((2 * self.n_rf, slopes.shape[1]), np.float32)
        found[self.of_one], found[self.of_columns] = at_zero / self.height, slopes / self.slope
        return found

    def narrow(self) -> np.ndarray:
        """Give a factor of a covariance under which no feature but those two kinds has any part."""
        return np.eye(2 * self.n_rf) * math.exp(0.5 * _SURE)

    def model(self, q_W: AnyGaussian, likelihood: AbstractLikelihood) -> DeepGP:
        """Give the model of one layer."""
        log_variance = 2 * math.log(self.height) + math.log(self.n_rf)
        kernel = RBF(jnp.asarray(log_variance), jnp.asarray(self.log_lengthscale, jnp.float32))
        spectrum = PriorFixed(jnp.asarray(self.epsilon, jnp.float32), jnp.ones(self.n_rf))
        layer = Layer(kernel=kernel, spectrum=spectrum, q_W=q_W)
        return DeepGP(blocks=(layer,), likelihood=likelihood, feed_inputs=False)


def _config(config: Config, n_slopes: int, *, likelihood: str, objective: str) -> Config:
    return dataclasses.replace(
        config,
        n_layers=1,
        width=1,  # of hidden layers, of which there are none
        n_random_features=n_slopes + 1,
        kernel="rbf",
        ard=True,
        frequencies="independent",
        omega="prior-fixed",
        feed_inputs=False,
        residual=False,
        likelihood=likelihood,
        objective=objective,
        calibration="none",
        n_members=1,
        theta="free",
        local_reparameterization=False,
    )


def _best_ridge(
    projected: np.ndarray, y: np.ndarray, weights: np.ndarray, values: np.ndarray
) -> tuple[float, float, np.ndarray]:
    """Choose penalty and noise under which rows left out are most probable; give slopes along the projections too.

    A row left out of a linear regression is predicted in closed form.
    """
    total, products = weights.sum(), (weights * y) @ projected
    best = (-math.inf, math.inf, 0.0, np.zeros(len(values)))
    for penalty in total * _STRENGTHS if len(values) else [1.0]:
        slopes = products / (values + penalty)
        leverage = weights * (1 / total + projected**2 @ (1 / (values + penalty)))
        others = np.maximum(1 - leverage, _LEAST_VARIANCE)
        # The variance of a row that is left out, for a noise variance of one.
        variances = 1 + leverage / others / np.maximum(weights, np.finfo(float).tiny)
        squares = ((y - projected @ slopes) / others) ** 2 / variances
        noise = max(np.average(squares, weights=weights), _LEAST_VARIANCE)
        score = -np.average(squares / noise + np.log(noise * variances), weights=weights)
        if score > best[0]:
            best = (score, penalty, noise, slopes)
    return best[1:]


def _some(rows: Rows, most: int) -> Rows:
    if len(rows) <= most:
        return rows
    return rows[np.random.default_rng(0).permutation(len(rows))[:most]]


def _most_rows(d_in: int) -> int:
    return max(_FEWEST_ROWS, min(_MOST_ROWS, int(_MOST_PRODUCTS / d_in**2)))
