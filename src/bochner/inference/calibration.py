"""The widths of a mixture chosen anew from rows left out of the exact last layer.

Each draw of the hidden layers learns the noise that it needs alone. The mean of many draws errs less than each of
them, so the mixture has more noise than its errors call for, and its intervals cover too much. Leaving a row out of a
Bayesian linear regression has a closed form, so the density of each row under the mixture that never saw it (in the
last layer) costs no further fit.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float

from bochner.gp.members import Members
from bochner.gp.model import DeepGP
from bochner.inference.evidence import left_out
from bochner.inference.last_layer import last_features
from bochner.likelihoods.noise_laws import AbstractNoiseLaw, Normal, ScaleMixture
from bochner.posteriors.gaussians import JointGaussian, SideBySide
from bochner.rows.table import Table

_N_CANDIDATES, _NARROWEST, _WIDEST = 43, 0.2, 1.6
_ROWS_FOR_NO_CHANGE = 25
_MOST_KL_A_ROW = 0.5


class LeftOut(eqx.Module):
    """What a model says of each row of a table when its last layer has not seen that row.

    Attributes:
        residuals: the targets less the predicted means.
        spread: variance of the function there.
        noise: variance of the noise there.
    """

    residuals: Float[Array, "... n targets"]
    spread: Float[Array, "... n targets"]
    noise: Float[Array, "... n targets"]

    @classmethod
    def of(cls, model: DeepGP, table: Table) -> "LeftOut":
        """Leave out each row in turn, of a conditioned model that is not calibrated yet."""
        noise = model.draw_noise(key=jax.random.key(0))  # of which held layers use nothing
        Phi, q_W = last_features(model, table.X, noise), model.blocks[-1].q_W
        W = q_W.sample(jnp.zeros(q_W.shape, Phi.dtype))  # the mean, and what is held of the noise
        with jax.default_matmul_precision("float32"):
            mean, variance = model.likelihood.moments(Phi @ W)  # pyright: ignore[reportAttributeAccessIssue]
        residuals, spread = left_out(Phi, table.Y - mean, table.weights, variance, _exact(model))
        return cls(residuals, spread, variance)

    def log_density(self, factor: Float[Array, ""]) -> Float[Array, "... n"]:
        """Compute the log density of each row's targets with the function's deviation and most noise scaled."""
        spread = factor**2 * self.spread
        # A Gaussian function and noise of two scales add up to two scales again.
        kept, scaled = spread + self.noise, spread + factor**2 * self.noise
        law = ScaleMixture(jnp.sqrt(scaled / kept))
        return jnp.sum(law.log_density(self.residuals, jnp.log(kept)), axis=-1)


@eqx.filter_jit
def calibrate(members: Members, table: Table) -> Members:
    """Scale the deviations of a conditioned model by the factor under which rows left out are most probable.

    All of the function's deviation and three quarters of the noise are scaled, which makes a `ScaleMixture` of the
    noise. Few rows say little about it: the logarithm of the factor is taken as if 25 further rows had called for no
    change. Nothing is scaled where the hidden layers' KL is more than half a nat a
    row, as after too few steps: then they know the rows themselves, and to leave one out of the last layer says little.

    Example:
        >>> import jax, numpy as np
        >>> from bochner.inference.calibration import calibrate
        >>> from bochner.inference.conditioning import condition_last_layer
        >>> from bochner.rows.table import Table
        >>> from bochner.gp.layers import LayerSettings
        >>> from bochner.likelihoods import Gaussian
        >>> from bochner.gp.model import DeepGP
        >>> model = DeepGP.start(
        ...     [LayerSettings(2), LayerSettings(1)], Gaussian.start(1), d_in=1, feed_inputs=True,
        ...     key=jax.random.key(0),
        ... )
        >>> x = np.linspace(-1, 1, 50)[:, None]
        >>> table = Table.of(x, np.sin(3 * x))  # without the noise that the model starts with
        >>> members = condition_last_layer(model, table, n_draws=3, key=jax.random.key(1))
        >>> bool(calibrate(members, table).stacked.likelihood.law.factor[0] < 1)
        True
    """
    laws = jax.lax.map(lambda model: LeftOut.of(model, table), members.stacked)
    candidates = jnp.geomspace(_NARROWEST, _WIDEST, _N_CANDIDATES, dtype=table.Y.dtype)

    def score(factor: Float[Array, ""]) -> Float[Array, ""]:
        densities = logsumexp(laws.log_density(factor), axis=0)
        return jnp.sum(table.weights * jnp.where(table.weights > 0, densities, 0.0))

    scores = jax.lax.map(score, candidates)
    n_rows = jnp.sum(table.weights)
    factor = candidates[jnp.argmax(scores)] ** (n_rows / (n_rows + _ROWS_FOR_NO_CHANGE))
    hidden_kl = jnp.mean(jax.vmap(lambda model: model.hidden_kl())(members.stacked))
    tells = jnp.all(jnp.isfinite(scores)) & (hidden_kl <= _MOST_KL_A_ROW * n_rows)
    factors = jnp.full(members.n_members, jnp.where(tells, factor, 1.0), table.Y.dtype)
    return Members(_scaled(members.stacked, factors, ScaleMixture(factors)), members.n_members)


def uncalibrated(members: Members) -> Members:
    """Give a conditioned model the widths of its posterior back.

    Example:
        >>> import jax, numpy as np
        >>> from bochner.inference.calibration import calibrate, uncalibrated
        >>> from bochner.inference.conditioning import condition_last_layer
        >>> from bochner.rows.table import Table
        >>> from bochner.gp.layers import LayerSettings
        >>> from bochner.likelihoods import Gaussian
        >>> from bochner.gp.model import DeepGP
        >>> model = DeepGP.start(
        ...     [LayerSettings(1)], Gaussian.start(1), d_in=1, feed_inputs=False, key=jax.random.key(0)
        ... )
        >>> table = Table.of(np.ones((9, 1)), np.ones((9, 1)))
        >>> members = condition_last_layer(model, table, n_draws=1, key=jax.random.key(1))
        >>> uncalibrated(calibrate(members, table)).stacked.likelihood.law
        Normal()
    """
    law = members.stacked.likelihood.law  # pyright: ignore[reportAttributeAccessIssue]
    if isinstance(law, Normal):
        return members
    return Members(_scaled(members.stacked, 1 / law.factor, Normal()), members.n_members)


def _exact(model: DeepGP) -> JointGaussian:
    q_W = model.blocks[-1].q_W
    found = q_W.first if isinstance(q_W, SideBySide) else q_W
    assert isinstance(found, JointGaussian)  # as conditioning gave it
    return found


def _scaled(stacked: DeepGP, factors: Float[Array, " members"], law: AbstractNoiseLaw) -> DeepGP:
    factor = factors[:, None, None, None] * _exact(stacked).factor
    stacked = eqx.tree_at(lambda model: _exact(model).factor, stacked, factor)
    return eqx.tree_at(lambda model: model.likelihood.law, stacked, law)
