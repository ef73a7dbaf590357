"""What training maximizes: the bound, the predictive density, or the evidence with the last layer integrated out."""

import functools
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float

from bochner.gp.members import Members
from bochner.gp.model import DeepGP, Noise
from bochner.gp.reparameterization import AbstractReparameterization, DrawWeights
from bochner.inference.bound import Bound, expected_log_likelihood
from bochner.inference.evidence import draw_probes, log_evidence
from bochner.ops import AutomaticLayer, sample_mean
from bochner.posteriors.gaussians import FactorizedGaussian
from bochner.rows.table import Table, Tables


class AbstractObjective(eqx.Module):
    """An estimate from a mini-batch of what training maximizes: a fit to the data, and a KL."""

    def __call__(
        self,
        model: DeepGP | Members,
        batch: Table,
        noise: Noise,
        reparameterization: AbstractReparameterization,
        *,
        scale: Float[Array, ""] | float,
        one_at_a_time: bool = False,
    ) -> Bound:
        """Estimate both parts and their difference; of members, the mean.

        Args:
            model: the model, or members of which each has its own noise.
            batch: rows with targets and weights; of several tables, each has as many of the members.
            noise: with a leading axis of samples.
            reparameterization: how the noise enters.
            scale: rows of the data over rows of the batch, n / m.
            one_at_a_time: whether samples and members follow each other, which is best in the cache of a CPU.
        """

        def fit(model: DeepGP, noise: Noise, rows: Table) -> Array:
            return self.fit(model, rows, noise, reparameterization, one_at_a_time=one_at_a_time)

        def of_member(rows: Table, member: tuple[DeepGP, Noise]) -> Array:
            return fit(*member, rows)

        def of_member_with_table(_: None, member: tuple[DeepGP, Noise, Tables]) -> Array:
            return fit(*member[:2], member[2].one())

        if isinstance(model, DeepGP):
            ell, kl = scale * fit(model, noise, batch), self.kl(model)
        else:
            members, mean = model.with_noise(noise), sample_mean if one_at_a_time else _mean_at_once
            if isinstance(batch, Tables):
                tables = batch.of_members(model.n_members)
                ell = scale * mean(of_member_with_table, None, (*members, tables))
            else:
                ell = scale * mean(of_member, batch, members)
            kl = jnp.mean(jax.vmap(self.kl)(model.stacked))
        return Bound(elbo=ell - kl, ell=ell, kl=kl)

    @abstractmethod
    def fit(
        self,
        model: DeepGP,
        batch: Table,
        noise: Noise,
        reparameterization: AbstractReparameterization,
        *,
        one_at_a_time: bool,
    ) -> Float[Array, ""]:
        """Estimate how well the model fits the batch, summed over its rows."""

    def kl(self, model: DeepGP) -> Float[Array, ""]:
        """Compute the divergence that the fit is weighed against."""
        return model.kl()


class Elbo(AbstractObjective):
    """The variational lower bound: the mean over samples of the log-likelihood (section 3.2).

    Example:
        >>> import jax, jax.numpy as jnp, numpy as np
        >>> from bochner.rows.table import Table
        >>> from bochner.gp.layers import LayerSettings
        >>> from bochner.likelihoods import Gaussian
        >>> from bochner.gp.model import DeepGP
        >>> from bochner.inference.objectives import Elbo
        >>> from bochner.gp.reparameterization import DrawWeights
        >>> model = DeepGP.start(
        ...     [LayerSettings(1)], Gaussian.start(1), d_in=1, feed_inputs=False, key=jax.random.key(0)
        ... )
        >>> noise = model.draw_noise((5,), key=jax.random.key(1))
        >>> bound = Elbo()(model, Table.of(np.zeros((4, 1)), np.zeros((4, 1))), noise, DrawWeights(), scale=1.0)
        >>> bool(bound.elbo == bound.ell)  # q starts at the prior
        True
    """

    def fit(self, model, batch, noise, reparameterization, *, one_at_a_time):  # noqa: D102
        return expected_log_likelihood(
            model, batch.X, batch.Y, batch.weights, noise, reparameterization, one_at_a_time=one_at_a_time
        )  # fmt: skip


class Predictive(AbstractObjective):
    """The log of the mean over samples of the likelihood: what predictions are judged by (Jankowiak et al., 2020).

    The spread of the functions then describes noise that varies with the inputs, which the bound leaves to the
    likelihood. It needs several samples (with one it is the bound) and many rows: it is no bound on the evidence, and
    small tables overfit.

    Example:
        >>> import jax, jax.numpy as jnp, numpy as np
        >>> from bochner.rows.table import Table
        >>> from bochner.gp.layers import LayerSettings
        >>> from bochner.likelihoods import Gaussian
        >>> from bochner.gp.model import DeepGP
        >>> from bochner.inference.objectives import Elbo, Predictive
        >>> from bochner.gp.reparameterization import DrawWeights
        >>> model = DeepGP.start(
        ...     [LayerSettings(1)], Gaussian.start(1), d_in=1, feed_inputs=False, key=jax.random.key(0)
        ... )
        >>> noise = model.draw_noise((5,), key=jax.random.key(1))
        >>> table = Table.of(np.zeros((4, 1)), np.zeros((4, 1)))
        >>> of_bound, predictive = (
        ...     objective(model, table, noise, DrawWeights(), scale=1.0) for objective in (Elbo(), Predictive())
        ... )
        >>> bool(predictive.ell > of_bound.ell)  # by Jensen's inequality
        True
    """

    def fit(self, model, batch, noise, reparameterization, *, one_at_a_time):  # noqa: D102
        def one_sample(sample_noise: Noise) -> Array:
            return model.likelihood.log_prob(
                model(batch.X, sample_noise, reparameterization), batch.Y
            )

        log_probs = jax.vmap(one_sample)(noise)
        log_means = logsumexp(log_probs, axis=0) - jnp.log(len(log_probs))
        return jnp.sum(batch.weights * log_means)


class Evidence(AbstractObjective):
    """The bound with the last layer integrated out: Bayesian linear regression on features of the hidden layers.

    Exact in the last layer, so with a single layer it is the log evidence itself. It wants Gaussian noise and all rows
    in each step, and draws of the hidden layers that are functions, the same for all rows. Functions that decide the
    noise stay variational.

    Example:
        >>> import jax, jax.numpy as jnp, numpy as np
        >>> from bochner.rows.table import Table
        >>> from bochner.gp.layers import LayerSettings
        >>> from bochner.likelihoods import Gaussian
        >>> from bochner.gp.model import DeepGP
        >>> from bochner.inference.objectives import Evidence
        >>> from bochner.gp.reparameterization import DrawWeights
        >>> model = DeepGP.start(
        ...     [LayerSettings(1)], Gaussian.start(1, noise_variance=1.0), d_in=1, feed_inputs=False,
        ...     key=jax.random.key(0),
        ... )
        >>> noise = model.draw_noise((1,), key=jax.random.key(1))
        >>> one_row = Table.of(np.zeros((1, 1)), np.ones((1, 1)))  # y ~ N(0, 1 + 1)
        >>> round(float(Evidence()(model, one_row, noise, DrawWeights(), scale=1.0).elbo), 4)
        -1.5155
    """

    def fit(self, model, batch, noise, reparameterization, *, one_at_a_time):  # noqa: D102
        def one_sample(shared: tuple[DeepGP, Table], sample_noise: Noise) -> Array:
            model, batch = shared
            Phi = last_features(model, batch.X, sample_noise, reparameterization)
            log_v = log_noise_variances(model, Phi, sample_noise, batch.Y.shape[1])
            # The weights that are integrated out leave their noise unused.
            probes = draw_probes(sample_noise[-1].W[:, : batch.Y.shape[1]])
            return log_evidence(Phi, batch.Y, batch.weights, log_v, probes)

        mean = sample_mean if one_at_a_time else _mean_at_once
        return mean(one_sample, (model, batch), noise)

    def kl(self, model):  # noqa: D102
        last = model.blocks[-1]
        of_noise = noise_weights(model).kl(jnp.zeros((), last.dtype))
        return model.hidden_kl() + last.features.kl() + of_noise


def last_features(
    model: DeepGP,
    X: Float[Array, "batch d_in"],
    noise: Noise,
    reparameterization: AbstractReparameterization = DrawWeights(),  # noqa: B008
) -> Float[Array, "batch feat"]:
    """Compute the features of the last layer at one draw of the hidden layers, in float32 whatever the path says."""
    inputs = model.inputs_of_last(X, noise, reparameterization.on(AutomaticLayer()))
    with jax.default_matmul_precision("float32"):
        return model.blocks[-1].Phi(jnp.concatenate(inputs, axis=1), noise[-1])


def noise_weights(model: DeepGP) -> FactorizedGaussian:
    """Give q(W) of the last layer's functions that decide the noise, which come after those of the targets' means."""
    q_W, n_functions = model.blocks[-1].q_W, model.blocks[-1].width
    n_targets = n_functions // model.likelihood.n_functions(1)
    return jax.tree.map(lambda leaf: leaf[:, n_targets:], q_W)


def log_noise_variances(
    model: DeepGP, Phi: Float[Array, "batch feat"], noise: Noise, n_targets: int
) -> Float[Array, "batch targets"]:
    """Compute the log noise variance of each row and target at one draw of the functions that decide it."""
    W = noise_weights(model).sample(noise[-1].W[:, n_targets:])
    F = jnp.concatenate([jnp.zeros((len(Phi), n_targets), Phi.dtype), Phi @ W], axis=1)
    _, variances = model.likelihood.moments(F)  # pyright: ignore[reportAttributeAccessIssue]
    return jnp.log(variances)


def _mean_at_once(function: Callable[[Any, Any], Array], shared: Any, several: Any) -> Array:
    """Compute what `sample_mean` does, side by side."""
    return jnp.mean(jax.vmap(functools.partial(function, shared))(several))


OBJECTIVES: dict[str, type[AbstractObjective]] = {
    "elbo": Elbo,
    "predictive": Predictive,
    "evidence": Evidence,
}
"""Classes by the name used in configurations."""
