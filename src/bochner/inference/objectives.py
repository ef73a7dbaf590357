"""What training maximizes: the bound, the predictive density, or the evidence with the last layer integrated out."""

import functools
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float, PRNGKeyArray

from bochner.features.spectra import SPECTRA, VarResampled
from bochner.gp.members import Members
from bochner.gp.model import DeepGP, Noise
from bochner.gp.reparameterization import AbstractReparameterization
from bochner.inference.bound import Bound, expected_log_likelihood
from bochner.inference.calibration import calibrate, uncalibrated
from bochner.inference.conditioning import condition_last_layer, unconditioned
from bochner.inference.evidence import draw_probes, log_evidence
from bochner.inference.last_layer import last_features, log_noise_variances, noise_weights
from bochner.likelihoods import GAUSSIAN_NOISE
from bochner.ops import sample_mean
from bochner.rows.table import Table, Tables


class AbstractObjective(eqx.Module):
    """An estimate from a mini-batch of what training maximizes: a fit to the data, and a KL.

    It also says what it asks of the settings, and which posterior a model predicts by that was trained on it: q itself,
    unless it says otherwise.
    """

    needs_all_rows: ClassVar[bool] = False
    """Whether each step must have all rows, in one process, and outputs of all rows from the same function."""

    has_own_posterior: ClassVar[bool] = False
    """Whether `posterior` gives another one than q, which belongs to the rows of one fit: training cannot go on."""

    leaves_rows_out: ClassVar[bool] = False
    """Whether rows can be left out of that posterior, for `calibrated`."""

    usual_n_mc: ClassVar[int] = 1
    """Monte Carlo samples in training, where nobody says."""

    def check(self, config: Any) -> None:
        """Refuse the settings of a deep model, a `Config`, that do not go with this."""

    def posterior(
        self, model: DeepGP | Members, data: Any, *, n_draws: int, key: PRNGKeyArray
    ) -> DeepGP | Members:
        """Give a model as it predicts that was trained on `TrainingData`; of draws that are held so many a member."""
        return model

    def calibrated(self, model: Any, data: Any) -> DeepGP | Members:
        """Choose the widths of the predictions of what `posterior` gave by rows left out of it."""
        return model

    def uncalibrated(self, model: Any) -> DeepGP | Members:
        """Give a model the widths of its posterior back."""
        return model

    def as_trained(self, model: DeepGP | Members, *, n_draws: int) -> list[DeepGP]:
        """Give each member of what `posterior` gave with the q that it was trained with."""
        return model.each()

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

    usual_n_mc: ClassVar[int] = 4

    def check(self, config):  # noqa: D102
        most = max(config.n_mc_train) if isinstance(config.n_mc_train, tuple) else config.n_mc_train
        if most < 2:
            raise ValueError(
                '`objective="predictive"` is the log of a mean over samples, which needs `n_mc_train` of at least 2; '
                f"got {config.n_mc_train!r}."
            )

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

    needs_all_rows: ClassVar[bool] = True
    has_own_posterior: ClassVar[bool] = True
    leaves_rows_out: ClassVar[bool] = True

    def check(self, config):  # noqa: D102
        if config.likelihood not in GAUSSIAN_NOISE:
            raise ValueError(
                '`objective="evidence"` integrates the last layer out, which needs Gaussian noise: '
                f"`likelihood` must be one of {', '.join(map(repr, GAUSSIAN_NOISE))}; got "
                f'{config.likelihood!r}. Use `objective="elbo"`.'
            )
        if SPECTRA[config.omega] is VarResampled:
            raise ValueError(
                '`objective="evidence"` needs frequencies that are held: use `omega="prior-fixed"` or '
                '"var-fixed", or `objective="elbo"`.'
            )
        if config.local_reparameterization:
            raise ValueError(
                '`objective="evidence"` draws functions, the same for all rows: use '
                '`local_reparameterization=False`, or `objective="elbo"`.'
            )

    def posterior(self, model, data, *, n_draws, key):  # noqa: D102
        assert isinstance(data, Table)  # as all rows go into each step
        return condition_last_layer(model, data, n_draws=n_draws, key=key)

    def calibrated(self, model, data):  # noqa: D102
        assert isinstance(data, Table)
        return calibrate(model, data)

    def uncalibrated(self, model):  # noqa: D102
        return uncalibrated(model)

    def as_trained(self, model, *, n_draws):  # noqa: D102
        # The draws of a member's hidden layers follow each other.
        return [unconditioned(one) for one in model.each()[::n_draws]]

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


def _mean_at_once(function: Callable[[Any, Any], Array], shared: Any, several: Any) -> Array:
    """Compute what `sample_mean` does, side by side."""
    return jnp.mean(jax.vmap(functools.partial(function, shared))(several))


OBJECTIVES: dict[str, type[AbstractObjective]] = {
    "elbo": Elbo,
    "predictive": Predictive,
    "evidence": Evidence,
}
"""Classes by the name used in configurations."""
