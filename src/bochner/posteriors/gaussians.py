"""Gaussian posteriors over a matrix of weights: sampling and their divergence from the prior."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float


class FactorizedGaussian(eqx.Module):
    """A Gaussian over a matrix with independent entries, `N(mean, exp(log_var))` (section 3.2).

    Example:
        >>> import jax.numpy as jnp
        >>> from bochner.posteriors.gaussians import FactorizedGaussian
        >>> q = FactorizedGaussian(mean=jnp.zeros((2, 3)), log_var=jnp.zeros((2, 3)))
        >>> float(q.kl(jnp.zeros(())))
        0.0
    """

    mean: Float[Array, "..."]
    log_var: Float[Array, "..."]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the matrix, with leading axes where several are stacked."""
        return self.mean.shape

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


class HeldGaussian(eqx.Module):
    """A factorized Gaussian of which one draw is held: every sample is that one.

    Hidden layers are held where the last layer's posterior is exact, since that posterior belongs to one draw of them.

    Example:
        >>> import jax.numpy as jnp
        >>> from bochner.posteriors.gaussians import FactorizedGaussian, HeldGaussian
        >>> q = FactorizedGaussian(mean=jnp.zeros((1, 1)), log_var=jnp.zeros((1, 1)))
        >>> HeldGaussian(q, jnp.ones((1, 1))).sample(jnp.zeros((1, 1))).tolist()
        [[1.0]]
    """

    q: FactorizedGaussian
    epsilon: Float[Array, "..."]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the matrix, with leading axes where several are stacked."""
        return self.q.shape

    @property
    def mean(self) -> Float[Array, "..."]:
        """The mean of each entry, before one draw was held."""
        return self.q.mean

    def sample(self, epsilon: Float[Array, "..."]) -> Float[Array, "..."]:
        """Give the held draw, whatever the noise."""
        return self.q.sample(self.epsilon)

    def kl(self, prior_log_var: Float[Array, "..."]) -> Float[Array, ""]:
        """Compute the divergence of the Gaussian that the draw comes from."""
        return self.q.kl(prior_log_var)


class JointGaussian(eqx.Module):
    """A Gaussian over a matrix whose columns are independent, each `N(mean, factor @ factor.T)`.

    Example:
        >>> import jax.numpy as jnp
        >>> from bochner.posteriors.gaussians import JointGaussian
        >>> q = JointGaussian(mean=jnp.zeros((3, 2)), factor=jnp.broadcast_to(jnp.eye(3), (2, 3, 3)))
        >>> float(q.kl(jnp.zeros(())))
        0.0
    """

    mean: Float[Array, "... rows columns"]
    factor: Float[Array, "... columns rows rows"]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the matrix, with leading axes where several are stacked."""
        return self.mean.shape

    def sample(self, epsilon: Float[Array, "rows columns"]) -> Float[Array, "rows columns"]:
        """Map standard normal noise to a draw."""
        return self.mean + jnp.einsum("cij,jc->ic", self.factor, epsilon)

    def kl(self, prior_log_var: Float[Array, ""]) -> Float[Array, ""]:
        """Compute the divergence from `N(0, exp(prior_log_var))`, summed over columns; the factor is triangular."""
        diagonal = jnp.diagonal(self.factor, axis1=-2, axis2=-1)
        log_ratio = 2.0 * jnp.log(jnp.abs(diagonal)) - prior_log_var
        squares = (jnp.sum(self.factor**2) + jnp.sum(self.mean**2)) * jnp.exp(-prior_log_var)
        return 0.5 * (squares - jnp.sum(log_ratio) - self.mean.size)


class SideBySide(eqx.Module):
    """A joint Gaussian for the first columns of a matrix, and a held one for the others.

    Example:
        >>> import jax.numpy as jnp
        >>> from bochner.posteriors.gaussians import FactorizedGaussian, HeldGaussian, JointGaussian, SideBySide
        >>> zeros = jnp.zeros((3, 1))
        >>> joint = JointGaussian(mean=zeros, factor=jnp.eye(3)[None])
        >>> held = HeldGaussian(FactorizedGaussian(zeros, zeros), epsilon=zeros)
        >>> SideBySide(joint, held).sample(jnp.ones((3, 2))).tolist()
        [[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]]
    """

    first: JointGaussian
    others: HeldGaussian

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the matrix, with leading axes where several are stacked."""
        *leading, n_first = self.first.shape
        return *leading, n_first + self.others.shape[-1]

    @property
    def mean(self) -> Float[Array, "..."]:
        """The mean of each entry."""
        return jnp.concatenate([self.first.mean, self.others.mean], axis=-1)

    def sample(self, epsilon: Float[Array, "rows columns"]) -> Float[Array, "rows columns"]:
        """Map standard normal noise to a draw."""
        n_first = self.first.shape[-1]
        parts = (self.first.sample(epsilon[:, :n_first]), self.others.sample(epsilon[:, n_first:]))
        return jnp.concatenate(parts, axis=1)

    def kl(self, prior_log_var: Float[Array, ""]) -> Float[Array, ""]:
        """Compute the divergence, summed over both parts."""
        return self.first.kl(prior_log_var) + self.others.kl(prior_log_var)


AnyGaussian = FactorizedGaussian | HeldGaussian | JointGaussian | SideBySide
"""What a layer's weights can follow."""
