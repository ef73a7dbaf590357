"""The predictive mixture over posterior draws: moments, quantiles, log density, in padded chunks of fixed size."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp, ndtri
from jaxtyping import Array, Float, PRNGKeyArray, PyTree, Shaped

from bochner.gp.members import Members
from bochner.gp.model import DeepGP, Noise
from bochner.gp.reparameterization import DrawWeights
from bochner.likelihoods import AbstractLikelihood
from bochner.ops.compiler_options import NO_SEARCH

CHUNK_ROWS = 512
"""Rows predicted at once. Inputs are padded to it, so that a new number of rows compiles nothing."""

_DRAWS_AT_ONCE = 10

Columns = Mapping[str, Array]
"""What goes along with the rows: targets as "Y", numbers of the rows as "row"."""


class Draws(eqx.Module):
    """Draws of the functions' values at some rows, each with the likelihood of the model that it comes from.

    Example:
        >>> import jax.numpy as jnp
        >>> from bochner.likelihoods import Gaussian
        >>> from bochner.prediction.statistics import Draws
        >>> draws = Draws.of(Gaussian.start(1), jnp.zeros((5, 2, 1)))
        >>> draws.map(lambda likelihood, F: F + 1).shape
        (5, 2, 1)
    """

    likelihoods: Any
    F: Float[Array, "draws batch d_out"]

    @classmethod
    def of(cls, likelihood: AbstractLikelihood, F: Float[Array, "draws batch d_out"]) -> "Draws":
        """Give all draws the same likelihood."""
        repeated = jax.tree.map(
            lambda leaf: jnp.broadcast_to(leaf, (F.shape[0], *leaf.shape)), likelihood
        )
        return cls(repeated, F)

    def map(self, function: Callable[[Any, Float[Array, "batch d_out"]], Any]) -> Any:
        """Compute `function(likelihood, F)` for each draw."""
        return jax.vmap(function)(self.likelihoods, self.F)


class AbstractStatistic(eqx.Module):
    """Something computed for each row from draws of the functions' values there."""

    @abstractmethod
    def __call__(self, draws: Draws, columns: Columns) -> PyTree[Array]:
        """Compute arrays whose first axis is the rows; `columns` holds what goes along with the rows."""


class Posterior(eqx.Module):
    """Draws from the posterior of a model, the same ones for every prediction.

    Example:
        >>> import jax, numpy as np
        >>> from bochner.gp.layers import LayerSettings
        >>> from bochner.likelihoods import Gaussian
        >>> from bochner.gp.model import DeepGP
        >>> from bochner.prediction.statistics import Moments, Posterior
        >>> model = DeepGP.start(
        ...     [LayerSettings(1)], Gaussian.start(1), d_in=1, feed_inputs=False, key=jax.random.key(0)
        ... )
        >>> posterior = Posterior.draw(model, n_draws=100, key=jax.random.key(1))
        >>> posterior.map_rows(Moments(), np.zeros((3, 1)))["mean"].shape
        (3, 1)
    """

    model: DeepGP | Members
    noise: Noise

    @classmethod
    def draw(cls, model: DeepGP | Members, *, n_draws: int, key: PRNGKeyArray) -> "Posterior":
        """Draw the noise of `n_draws` functions; of members each gives as many, so there may be a few more."""
        return cls(model, model.draw_noise((-(-n_draws // model.n_members),), key=key))

    def at(self, statistic: AbstractStatistic, X: Array, columns: Columns) -> PyTree[Array]:
        """Compute a statistic at rows that are all in memory at once, inside a compiled program."""
        return statistic(self._draws(X), columns)

    def _draws(self, X: Array) -> Draws:
        if isinstance(self.model, DeepGP):
            return _draws_of_one(self.model, X, self.noise)
        # One member after another: their draws fill a processor, and all at once would fill its memory.
        draws = jax.lax.map(
            lambda member: _draws_of_one(member[0], X, member[1]), self.model.with_noise(self.noise)
        )
        return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), draws)

    def map_rows(
        self, statistic: AbstractStatistic, X: Shaped[np.ndarray, "n d_in"], **columns: np.ndarray
    ) -> PyTree[np.ndarray]:
        """Compute a statistic for each row of X; `columns` go along with the rows."""
        columns = {"row": np.arange(len(X)), **columns}
        pieces = []
        for start in range(0, max(len(X), 1), CHUNK_ROWS):
            rows = slice(start, start + CHUNK_ROWS)
            size = len(X[rows])
            padded = {name: _padded(array[rows]) for name, array in columns.items()}
            piece = _chunk_statistic(self, statistic, _padded(X[rows]), padded)
            pieces.append(jax.tree.map(lambda leaf, size=size: np.asarray(leaf)[:size], piece))
        return jax.tree.map(lambda *leaves: np.concatenate(leaves), *pieces)


class Moments(AbstractStatistic):
    """Mean of the targets, and the two parts of their variance by the law of total variance.

    Epistemic is the variance over draws of the mean given f, aleatoric the mean of the variance given f.

    Example:
        >>> import jax.numpy as jnp
        >>> from bochner.likelihoods import Gaussian
        >>> from bochner.prediction.statistics import Draws, Moments
        >>> draws = jnp.array([[[1.0]], [[3.0]]])
        >>> moments = Moments()(Draws.of(Gaussian.start(1, noise_variance=0.5), draws), {})
        >>> [float(moments[name][0, 0]) for name in ("mean", "epistemic", "aleatoric")]
        [2.0, 1.0, 0.5]
    """

    def __call__(self, draws, columns):  # noqa: D102
        means, variances = draws.map(lambda likelihood, F: likelihood.moments(F))
        return {
            "mean": jnp.mean(means, axis=0),
            "epistemic": jnp.var(means, axis=0),
            "aleatoric": jnp.mean(variances, axis=0),
        }


class LogDensity(AbstractStatistic):
    """Log predictive density of the given targets: log-mean-exp over draws (section 4.1, MNLL).

    Example:
        >>> import jax.numpy as jnp
        >>> from bochner.likelihoods import Bernoulli
        >>> from bochner.prediction.statistics import Draws, LogDensity
        >>> draws = Draws.of(Bernoulli(), jnp.zeros((5, 1, 1)))
        >>> density = LogDensity()(draws, {"Y": jnp.array([[1]])})
        >>> round(float(density[0]), 4)
        -0.6931
    """

    def __call__(self, draws, columns):  # noqa: D102
        Y = columns["Y"]
        log_probs = draws.map(lambda likelihood, F: likelihood.log_prob(F, Y))
        return logsumexp(log_probs, axis=0) - jnp.log(len(log_probs))


class Distribution(AbstractStatistic):
    """Probability of targets up to the given ones: the mean over draws of the distribution function.

    Example:
        >>> import jax.numpy as jnp
        >>> from bochner.likelihoods import Gaussian
        >>> from bochner.prediction.statistics import Distribution, Draws
        >>> draws = Draws.of(Gaussian.start(1), jnp.zeros((5, 1, 1)))
        >>> Distribution()(draws, {"Y": jnp.zeros((1, 1))}).tolist()
        [[0.5]]
    """

    def __call__(self, draws, columns):  # noqa: D102
        Y = columns["Y"]
        return jnp.mean(draws.map(lambda likelihood, F: likelihood.cdf(F, Y)), axis=0)


class ExpectedLogLikelihood(AbstractStatistic):
    """Mean over draws of the log-likelihood: a row's part of the bound.

    Example:
        >>> import jax.numpy as jnp
        >>> from bochner.likelihoods import Bernoulli
        >>> from bochner.prediction.statistics import Draws, ExpectedLogLikelihood
        >>> draws = Draws.of(Bernoulli(), jnp.zeros((5, 1, 1)))
        >>> ExpectedLogLikelihood()(draws, {"Y": jnp.array([[1]])}).shape
        (1,)
    """

    def __call__(self, draws, columns):  # noqa: D102
        Y = columns["Y"]
        return jnp.mean(draws.map(lambda likelihood, F: likelihood.log_prob(F, Y)), axis=0)


class Probabilities(AbstractStatistic):
    """Predictive probability of each class.

    Example:
        >>> import jax.numpy as jnp
        >>> from bochner.likelihoods import Softmax
        >>> from bochner.prediction.statistics import Draws, Probabilities
        >>> Probabilities()(Draws.of(Softmax(), jnp.zeros((5, 1, 2))), {}).tolist()
        [[0.5, 0.5]]
    """

    def __call__(self, draws, columns):  # noqa: D102
        log_probabilities = draws.map(lambda likelihood, F: likelihood.log_probabilities(F))
        return jnp.mean(jnp.exp(log_probabilities), axis=0)


class Samples(AbstractStatistic):
    """One target from each draw, rows first.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from bochner.likelihoods import Gaussian
        >>> from bochner.prediction.statistics import Draws, Samples
        >>> samples = Samples(jax.random.key(0))
        >>> samples(Draws.of(Gaussian.start(1), jnp.zeros((5, 2, 1))), {"row": jnp.arange(2)}).shape
        (2, 5, 1)
    """

    key: PRNGKeyArray

    def __call__(self, draws, columns):  # noqa: D102
        # A key of its own for each row and draw, so that chunks never share their noise.
        keys = jax.vmap(lambda number: jax.random.fold_in(self.key, number))(columns["row"])

        def one_row(values, key):
            row_keys = jax.random.split(key, values.shape[0])

            def one_draw(likelihood, f, key):
                return likelihood.sample(f[None, :], key=key)[0]

            return jax.vmap(one_draw)(draws.likelihoods, values, row_keys)

        return jax.vmap(one_row)(jnp.swapaxes(draws.F, 0, 1), keys)


class Quantiles(AbstractStatistic):
    """Quantiles of the predictive mixture, found on its exact distribution function.

    Example:
        >>> import jax.numpy as jnp
        >>> from bochner.likelihoods import Gaussian
        >>> from bochner.prediction.statistics import Draws, Quantiles
        >>> quantiles = Quantiles(jnp.array([0.025, 0.975]))
        >>> draws = Draws.of(Gaussian.start(1, noise_variance=1.0), jnp.zeros((5, 1, 1)))
        >>> found = quantiles(draws, {})
        >>> [round(float(value), 2) for value in found[0, 0]]
        [-1.96, 1.96]
    """

    levels: Float[Array, " levels"]

    def __call__(self, draws, columns):  # noqa: D102
        solve = jax.vmap(lambda level: _mixture_quantile(draws, level), out_axes=-1)
        return solve(self.levels)


class Several(AbstractStatistic):
    """Several statistics of the same draws, computed together.

    Example:
        >>> import jax.numpy as jnp
        >>> from bochner.likelihoods import Gaussian
        >>> from bochner.prediction.statistics import Draws, Moments, Quantiles, Several
        >>> both = Several({"moments": Moments(), "median": Quantiles(jnp.array([0.5]))})
        >>> sorted(both(Draws.of(Gaussian.start(1), jnp.zeros((5, 1, 1))), {}))
        ['median', 'moments']
    """

    parts: dict[str, AbstractStatistic]

    def __call__(self, draws, columns):  # noqa: D102
        return {name: part(draws, columns) for name, part in self.parts.items()}


def _draws_of_one(model: DeepGP, X: Array, noise: Noise) -> Draws:
    def one_draw(noise: Noise) -> Array:
        return model(X, noise, DrawWeights())

    F = jax.lax.map(one_draw, noise, batch_size=_DRAWS_AT_ONCE)
    return Draws.of(model.likelihood, F)


def _mixture_quantile(draws: Draws, level: Float[Array, ""]) -> Float[Array, "batch targets"]:
    """Solve `mean over draws of cdf(y) = level` by Newton's method inside a shrinking bracket."""
    means, variances = draws.map(lambda likelihood, F: likelihood.moments(F))
    deviations, rounding = jnp.sqrt(variances), 4 * jnp.finfo(draws.F.dtype).eps
    discrete = draws.likelihoods.discrete
    # Modes may lie far apart, and then their spread says little.
    narrowest = jnp.min(deviations, axis=0)
    spread = jnp.sqrt(jnp.mean(variances, axis=0) + jnp.var(means, axis=0))
    low = jnp.min(means - 100 * deviations, axis=0) - 1.0
    high = jnp.max(means + 100 * deviations, axis=0) + 1.0

    def distance(y):
        return jnp.mean(draws.map(lambda likelihood, F: likelihood.cdf(F, y)), axis=0) - level

    def density(y):
        return jnp.mean(
            jnp.exp(draws.map(lambda likelihood, F: likelihood.log_density(F, y))), axis=0
        )

    def refine(carry):
        low, high, y, _, count = carry
        excess = distance(y)
        low, high = jnp.where(excess < 0, y, low), jnp.where(excess < 0, high, y)
        middle = 0.5 * (low + high)
        if discrete:
            proposal = middle
        else:
            newton = y - excess / jnp.maximum(density(y), 1e-30)
            proposal = jnp.where((newton >= low) & (newton <= high), newton, middle)
            # What rounding leaves of the distribution function cannot be resolved.
            proposal = jnp.where(jnp.abs(excess) <= rounding, y, proposal)
        return low, high, proposal, jnp.abs(proposal - y), count + 1

    def unfinished(carry):
        _, _, y, change, count = carry
        tolerance = 0.01 if discrete else 1e-6 * narrowest + rounding * jnp.abs(y)
        return jnp.any(change > tolerance) & (count < 100)

    start = jnp.clip(jnp.mean(means, axis=0) + ndtri(level) * spread, low, high)
    carry = (low, high, start, jnp.full_like(start, jnp.inf), jnp.asarray(0))
    _, high, y, _, _ = jax.lax.while_loop(unfinished, refine, carry)
    return jnp.round(high) if discrete else y


@eqx.filter_jit(compiler_options=NO_SEARCH)  # pyright: ignore[reportCallIssue]
def _chunk_statistic(
    posterior: Posterior, statistic: AbstractStatistic, X: Array, columns: Columns
) -> PyTree[Array]:
    return posterior.at(statistic, X, columns)


def _padded(array: np.ndarray) -> Array:
    missing = CHUNK_ROWS - len(array)
    widths = [(0, missing)] + [(0, 0)] * (array.ndim - 1)
    dtype = np.float32 if np.issubdtype(array.dtype, np.floating) else np.int32
    with np.errstate(over="ignore"):  # what float32 cannot hold becomes infinite, as it should
        return jnp.asarray(np.pad(array.astype(dtype), widths))
