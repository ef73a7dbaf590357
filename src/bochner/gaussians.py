"""The factorized Gaussian posterior: sampling and its divergence from the prior."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float


class FactorizedGaussian(eqx.Module):
    """A Gaussian over a matrix with independent entries, `N(mean, exp(log_var))` (section 3.2).

    Example:
        >>> import jax.numpy as jnp
        >>> from bochner.gaussians import FactorizedGaussian
        >>> q = FactorizedGaussian(mean=jnp.zeros((2, 3)), log_var=jnp.zeros((2, 3)))
        >>> float(q.kl(jnp.zeros(())))
        0.0
    """

    mean: Float[Array, "..."]
    log_var: Float[Array, "..."]

    @property
    def variance(self) -> Float[Array, "..."]:
        """The variance of each entry."""
        return jnp.exp(self.log_var)

    def sample(self, epsilon: Float[Array, "..."]) -> Float[Array, "..."]:
        """Map standard normal noise to a draw: mean plus standard deviation times noise."""
        return self.mean + jnp.exp(0.5 * self.log_var) * epsilon

    def kl(self, prior_log_var: Float[Array, "..."]) -> Float[Array, ""]:
        """Compute the divergence `DKL[q || N(0, exp(prior_log_var))]`, summed over entries (supplement, section E).

        With prior variance v: `sum(log(v / s^2) - 1 + (s^2 + m^2) / v) / 2`.
        """
        prior_log_var = jnp.broadcast_to(prior_log_var, self.log_var.shape)
        log_ratio = self.log_var - prior_log_var
        scaled_mean = self.mean**2 * jnp.exp(-prior_log_var)
        return 0.5 * jnp.sum(jnp.exp(log_ratio) - log_ratio - 1.0 + scaled_mean)
