"""NUTS on the random-feature model: the posterior over W, and theta if asked, that q(W) approximates."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import blackjax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray, Shaped

from bochner.fitting.config import check_whole_number
from bochner.gp.layers import Layer, LayerNoise
from bochner.gp.model import DeepGP, Noise
from bochner.gp.reparameterization import DrawWeights
from bochner.mcmc.diagnostics import effective_sample_size, split_rhat
from bochner.posteriors.gaussians import FactorizedGaussian
from bochner.prediction.statistics import Posterior
from bochner.training import Stage, trainable


@dataclasses.dataclass(frozen=True)
class WeightDraws:
    """Draws of W, and of theta where it was sampled, by several chains of NUTS.

    Attributes:
        model: the model with q(W) at its prior N(0, 1), so that what counts as noise elsewhere is W itself.
        W: the draws in the form of the model's noise; arrays start with the axes of chains and samples.
        theta: the model's arrays that hold theta, with the same axes, and None elsewhere; None where theta was held.
        F: values of the last layer's functions at the data.
        rhat: split R-hat of F at each data point.
        ess: effective sample size of F at each data point.
        n_divergent: draws after warm-up whose trajectory diverged; more than a few mean a biased answer.
        step_sizes: step size of each chain.
        leapfrog_steps: mean number of leapfrog steps a draw.
    """

    model: DeepGP
    W: Noise
    theta: DeepGP | None
    F: Float[np.ndarray, "chains samples n d_out"]
    rhat: Float[np.ndarray, "n d_out"]
    ess: Float[np.ndarray, "n d_out"]
    n_divergent: int
    step_sizes: Float[np.ndarray, " chains"]
    leapfrog_steps: float

    @property
    def posterior(self) -> Posterior:
        """All draws as a posterior that computes predictive statistics as for a fitted model."""
        if self.theta is not None:
            raise ValueError(
                "each draw has a theta of its own, and a `Posterior` has one model: use `functions`, or hold theta."
            )
        return Posterior(self.model, jax.tree.map(_chains_joined, self.W))

    def functions(self, X: Float[Array, "n d_in"]) -> Float[Array, "chains samples n d_out"]:
        """Evaluate every drawn function at the rows of X, scaled as the model takes them."""
        return _evaluate(self.model, self.W, self.theta, X)


def sample_weights(
    model: DeepGP,
    X: Float[Array, "n d_in"],
    Y: Shaped[Array, "n targets"],
    *,
    n_samples: int = 500,
    n_warmup: int = 500,
    n_chains: int = 4,
    theta_center: DeepGP | None = None,
    theta_deviation: float = 1.0,
    max_doublings: int = 10,
    key: PRNGKeyArray,
) -> WeightDraws:
    """Draw W from `p(W | X, Y, Omega, theta)` with NUTS, whatever the depth and the likelihood.

    The density is `N(W | 0, I) prod_i p(y_i | f(x_i; W))`. Omega is held where the model has it. Chains start at draws
    from q(W), and window adaptation finds a step size and a diagonal mass matrix for each.

    Theta, the kernels' and the likelihood's parameters, is held too unless `theta_center` gives its prior: each
    parameter, in the form in which the model learns it (logarithms, mostly), has the prior `N(center, deviation^2)`.
    Learned frequencies then count with their own prior given theta, `p(Omega | theta)`.

    Args:
        model: a model with fixed frequencies (PRIOR-FIXED or VAR-FIXED).
        X: rows, scaled as the model takes them.
        Y: their targets, likewise; class indices for classification.
        n_samples: draws to keep of each chain.
        n_warmup: steps of each chain in which step size and mass matrix are adapted.
        n_chains: independent chains.
        theta_center: model whose theta is the center of theta's prior, such as the one that training started from.
        theta_deviation: standard deviation of theta's prior.
        max_doublings: a trajectory has at most two to this power leapfrog steps.
        key: random key.

    Returns:
        All draws with diagnostics: arrays begin with the axes of chains and samples; see `WeightDraws`.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from bochner.gp.layers import LayerSettings
        >>> from bochner.likelihoods import Gaussian
        >>> from bochner.mcmc import sample_weights
        >>> from bochner.gp.model import DeepGP
        >>> model = DeepGP.start(
        ...     [LayerSettings(1, n_rf=3)], Gaussian.start(1), d_in=1, feed_inputs=False, key=jax.random.key(0)
        ... )
        >>> x = jnp.linspace(-1, 1, 5)[:, None]
        >>> draws = sample_weights(
        ...     model, x, jnp.sin(x), n_samples=50, n_warmup=50, n_chains=2, key=jax.random.key(1)
        ... )
        >>> draws.F.shape
        (2, 50, 5, 1)
    """
    for name, number in (
        ("n_samples", n_samples), ("n_warmup", n_warmup), ("n_chains", n_chains),
    ):  # fmt: skip
        check_whole_number(name, number)
    check_fixed_frequencies(model)
    X, Y = jnp.asarray(X), jnp.asarray(Y)
    key_start, key_run = jax.random.split(key)
    W = draws_of_q(model, model.draw_noise((n_chains,), key=key_start))
    theta = None if theta_center is None else _theta_of(model)
    center = None if theta_center is None else _theta_of(theta_center)
    target = Target(at_prior(model), X, Y, center, jnp.asarray(theta_deviation, jnp.float32))
    start = (W, jax.tree.map(lambda leaf: jnp.repeat(leaf[None], n_chains, axis=0), theta))
    with jax.numpy_rank_promotion("allow"):
        (W, theta), info = _run_chains(
            target, start, jax.random.split(key_run, n_chains), n_samples, n_warmup, max_doublings
        )
    F = np.asarray(_evaluate(target.model, W, theta, X))
    return WeightDraws(
        model=target.model,
        W=W,
        theta=theta,
        F=F,
        rhat=split_rhat(F),
        ess=effective_sample_size(F),
        n_divergent=int(jnp.sum(info.divergent)),
        step_sizes=np.asarray(info.step_size),
        leapfrog_steps=float(jnp.mean(info.leapfrog_steps)),
    )


class Target(eqx.Module):
    """The unnormalized log posterior of W, and of theta where a prior is given."""

    model: DeepGP
    X: Float[Array, "n d_in"]
    Y: Shaped[Array, "n targets"]
    theta_center: DeepGP | None
    theta_deviation: Float[Array, ""]

    def __call__(self, position: tuple[Noise, DeepGP | None]) -> Float[Array, ""]:
        """Compute the log density up to a constant."""
        W, theta = position
        model = _with_theta(self.model, theta)
        F = model(self.X, W, DrawWeights())
        total = jnp.sum(model.likelihood.log_prob(F, self.Y)) - 0.5 * _sum_of_squares(W)
        if theta is None:
            return total
        deviations = jax.tree.map(
            lambda value, center: (value - center) / self.theta_deviation, theta, self.theta_center
        )
        return total - 0.5 * _sum_of_squares(deviations) + _log_prior_of_features(model)


def at_prior(model: DeepGP) -> DeepGP:
    """Set q(W) to N(0, 1) in every layer, so that noise is W."""

    def reset(layer: Layer) -> Layer:
        q_W = FactorizedGaussian(*(jnp.zeros_like(layer.q_W.mean) for _ in range(2)))
        return eqx.tree_at(lambda layer: layer.q_W, layer, q_W)

    return map_layers(reset, model)


class _Info(NamedTuple):
    divergent: Array
    leapfrog_steps: Array
    step_size: Array


@functools.partial(jax.jit, static_argnames=("n_samples", "n_warmup", "max_doublings"))
def _run_chains(target, start, keys, n_samples, n_warmup, max_doublings):
    settings = {"max_num_doublings": max_doublings}

    def one_chain(position, key):
        key_warmup, key_samples = jax.random.split(key)
        adaptation: Any = blackjax.window_adaptation(
            blackjax.nuts, target, adaptation_info_fn=_keep_nothing, **settings
        )
        (state, parameters), _ = adaptation.run(key_warmup, position, n_warmup)
        nuts: Any = blackjax.nuts(target, **{**settings, **parameters})

        def step(state, key):
            state, info = nuts.step(key, state)
            return state, (state.position, info.is_divergent, info.num_integration_steps)

        keys = jax.random.split(key_samples, n_samples)
        _, (positions, divergent, steps) = jax.lax.scan(step, state, keys)
        return positions, _Info(divergent, steps, parameters["step_size"])

    return jax.vmap(one_chain)(start, keys)


def _keep_nothing(*_: Any) -> Any:
    return None


@jax.jit
def _evaluate(model: DeepGP, W: Noise, theta: DeepGP | None, X: Array) -> Array:
    def one(draw):
        W, theta = draw
        return _with_theta(model, theta)(X, W, DrawWeights())

    return jax.lax.map(lambda chain: jax.lax.map(one, chain, batch_size=20), (W, theta))


def _with_theta(model: DeepGP, theta: DeepGP | None) -> DeepGP:
    return model if theta is None else eqx.combine(theta, model)


def _theta_of(model: DeepGP) -> DeepGP:
    """Keep the arrays of theta: what a stage that learns theta learns, q(W) aside."""
    learned = trainable(model, Stage(theta=True, omega=False, n_mc=1))
    held = trainable(model, Stage(theta=False, omega=False, n_mc=1))
    marks = jax.tree.map(lambda with_theta, without: with_theta and not without, learned, held)
    return eqx.filter(model, marks)


def draws_of_q(model: DeepGP, noise: Noise) -> Noise:
    """Map noise to W, block by block."""

    def sample(layer: Layer, noise: LayerNoise) -> LayerNoise:
        return LayerNoise(W=jax.vmap(layer.q_W.sample)(noise.W))

    layers = jax.tree.leaves(model.blocks, is_leaf=_is_layer)
    return tuple(sample(layer, part) for layer, part in zip(layers, noise, strict=True))


def _log_prior_of_features(model: DeepGP) -> Array:
    """Compute `log p(Omega | theta)` of learned frequencies; those that follow theta have none."""
    return sum((layer.features.log_prior() for layer in model.layers), start=jnp.zeros(()))


def map_layers(function: Callable[[Layer], Layer], model: DeepGP) -> DeepGP:
    """Change each layer, or each stack of equal ones."""
    blocks = jax.tree.map(function, model.blocks, is_leaf=_is_layer)
    return eqx.tree_at(lambda model: model.blocks, model, blocks)


def _is_layer(node) -> bool:
    return isinstance(node, Layer)


def check_fixed_frequencies(model: DeepGP) -> None:
    """Refuse a model that draws its frequencies anew each time."""
    if not all(layer.features.is_shared for layer in model.layers):
        raise ValueError(
            "chains need fixed frequencies, and this model draws Omega anew each time (VAR-RESAMPLED): fit it with "
            '`omega="prior-fixed"` or `omega="var-fixed"`.'
        )


def _sum_of_squares(tree) -> Array:
    return sum((jnp.sum(leaf**2) for leaf in jax.tree.leaves(tree)), start=jnp.zeros(()))


def _chains_joined(leaf: Array) -> Array:
    return leaf.reshape(-1, *leaf.shape[2:])
