"""The three treatments of the spectral frequencies Omega (section 3.3).

A frequency is `scale * g`, where `g` has prior `N(0, 1 / lengthscale^2)` and `scale` is held: ones, but for kernels
that mix lengthscales, as Matern ones do. Treatments differ in what they do with `g`; their KL covers `g` given scales.
"""

from abc import abstractmethod

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from bochner.kernels import AbstractKernel
from bochner.posteriors.gaussians import FactorizedGaussian


class AbstractSpectrum(eqx.Module):
    """A treatment of Omega: how it is computed, and what it adds to the KL."""

    scale: eqx.AbstractVar[Float[Array, "..."]]

    @classmethod
    @abstractmethod
    def start(cls, kernel: AbstractKernel, epsilon: Array, scale: Array) -> "AbstractSpectrum":
        """Build the treatment from its base frequencies, with q at the prior where it has one."""

    @property
    @abstractmethod
    def learned(self) -> eqx.Module | None:
        """The part that training learns where Omega takes part; epsilon and the scales are never learned."""

    @property
    @abstractmethod
    def noise_shape(self) -> tuple[int, ...] | None:
        """The shape of the fresh noise each Monte Carlo sample needs, or None where epsilon is held."""

    @abstractmethod
    def Omega(
        self, kernel: AbstractKernel, noise: Float[Array, "d_in rf"] | None = None
    ) -> Float[Array, "d_in rf"]:
        """Compute the frequencies."""

    @abstractmethod
    def kl(
        self, kernel: AbstractKernel, spread: Float[Array, "..."] | float = 0.0
    ) -> Float[Array, ""]:
        """Compute the divergence of q(Omega) from its prior given the kernel's lengthscales.

        Where their logarithms are Gaussian, with variances `spread`, it is the mean over them.
        """

    def log_prior(self, kernel: AbstractKernel) -> Float[Array, ""]:
        """Compute `log p(Omega | theta)`, constants aside, of learned frequencies that are held."""
        return jnp.zeros(())


class PriorFixed(AbstractSpectrum):
    """PRIOR-FIXED: Omega follows the prior, `scale * epsilon / lengthscale`, with epsilon held from the outset.

    Example:
        >>> import jax.numpy as jnp
        >>> from bochner.kernels import RBF
        >>> from bochner.features.spectra import PriorFixed
        >>> kernel = RBF(jnp.zeros(()), jnp.log(jnp.array([2.0])))
        >>> spectrum = PriorFixed.start(kernel, jnp.ones((1, 3)), jnp.ones(3))
        >>> spectrum.Omega(kernel).tolist()
        [[0.5, 0.5, 0.5]]
    """

    epsilon: Float[Array, "..."]
    scale: Float[Array, "..."]

    @classmethod
    def start(cls, kernel: AbstractKernel, epsilon: Array, scale: Array) -> "PriorFixed":  # noqa: D102
        return cls(epsilon=epsilon, scale=scale)

    @property
    def learned(self):  # noqa: D102
        return None

    @property
    def noise_shape(self):  # noqa: D102
        return None

    def Omega(self, kernel, noise=None):  # noqa: D102
        return self.scale[None, :] * self.epsilon * _inverse_lengthscale(kernel, self.epsilon)

    def kl(self, kernel, spread=0.0):  # noqa: D102
        return jnp.zeros((), self.epsilon.dtype)


class VarFixed(AbstractSpectrum):
    """VAR-FIXED: `scale * (mu + beta * epsilon)` with q = N(mu, beta^2) learned and epsilon held.

    Since epsilon acts as a parameter, the objective is not strictly a bound on the evidence; keep this in mind when it
    is used to choose between models.

    Example:
        >>> import jax.numpy as jnp
        >>> from bochner.kernels import RBF
        >>> from bochner.features.spectra import VarFixed
        >>> kernel = RBF(jnp.zeros(()), jnp.zeros(1))
        >>> spectrum = VarFixed.start(kernel, jnp.ones((1, 3)), jnp.ones(3))
        >>> float(spectrum.kl(kernel))  # q starts at the prior
        0.0
    """

    q_Omega: FactorizedGaussian
    epsilon: Float[Array, "..."]
    scale: Float[Array, "..."]

    @classmethod
    def start(cls, kernel: AbstractKernel, epsilon: Array, scale: Array) -> "VarFixed":  # noqa: D102
        return cls(q_Omega=_prior(kernel, epsilon), epsilon=epsilon, scale=scale)

    @property
    def learned(self):  # noqa: D102
        return self.q_Omega

    @property
    def noise_shape(self):  # noqa: D102
        return None

    def Omega(self, kernel, noise=None):  # noqa: D102
        return self.scale[None, :] * self.q_Omega.sample(self.epsilon)

    def kl(self, kernel, spread=0.0):  # noqa: D102
        return _expected_kl(self.q_Omega, kernel, spread)

    def log_prior(self, kernel):  # noqa: D102
        g = self.q_Omega.sample(self.epsilon)
        log_inverse = -jnp.broadcast_to(kernel.log_lengthscale, g.shape[:1])[:, None]
        return jnp.sum(-0.5 * (g * jnp.exp(-log_inverse)) ** 2 - log_inverse)


class VarResampled(AbstractSpectrum):
    """VAR-RESAMPLED: as VAR-FIXED, with epsilon drawn anew for each Monte Carlo sample, at prediction too.

    Example:
        >>> import jax.numpy as jnp
        >>> from bochner.kernels import RBF
        >>> from bochner.features.spectra import VarResampled
        >>> kernel = RBF(jnp.zeros(()), jnp.zeros(1))
        >>> spectrum = VarResampled.start(kernel, jnp.ones((1, 3)), jnp.ones(3))
        >>> spectrum.Omega(kernel, jnp.zeros((1, 3))).tolist()
        [[0.0, 0.0, 0.0]]
    """

    q_Omega: FactorizedGaussian
    scale: Float[Array, "..."]

    @classmethod
    def start(cls, kernel: AbstractKernel, epsilon: Array, scale: Array) -> "VarResampled":  # noqa: D102
        return cls(q_Omega=_prior(kernel, epsilon), scale=scale)

    @property
    def learned(self):  # noqa: D102
        return self.q_Omega

    @property
    def noise_shape(self):  # noqa: D102
        return self.q_Omega.mean.shape

    def Omega(self, kernel, noise=None):  # noqa: D102
        if noise is None:
            raise ValueError("VarResampled needs fresh noise for each draw of Omega; got None.")
        return self.scale[None, :] * self.q_Omega.sample(noise)

    def kl(self, kernel, spread=0.0):  # noqa: D102
        return _expected_kl(self.q_Omega, kernel, spread)


SPECTRA: dict[str, type[AbstractSpectrum]] = {
    "prior-fixed": PriorFixed,
    "var-fixed": VarFixed,
    "var-resampled": VarResampled,
}
"""Classes by the name used in configurations."""


def _inverse_lengthscale(kernel: AbstractKernel, like: Array) -> Array:
    return jnp.broadcast_to(jnp.exp(-kernel.log_lengthscale), (like.shape[0],))[:, None]


def _prior_log_var(kernel: AbstractKernel, like: Array) -> Array:
    return jnp.broadcast_to(-2.0 * kernel.log_lengthscale, (like.shape[0],))[:, None]


def _expected_kl(q: FactorizedGaussian, kernel: AbstractKernel, spread: Array | float) -> Array:
    """Compute the mean over Gaussian log-lengthscales of the divergence from N(0, 1 / lengthscale^2).

    The squares in it are multiplied by lengthscale^2, whose mean is `exp(2 mean + 2 spread)`; the logarithms keep the
    mean. So the narrower prior variance of the squares is taken out of the logarithms again.
    """
    column = jnp.broadcast_to(spread, (q.mean.shape[0],))[:, None]
    return q.kl(_prior_log_var(kernel, q.mean) - 2.0 * column) + jnp.sum(column) * q.mean.shape[1]


def _prior(kernel: AbstractKernel, epsilon: Array) -> FactorizedGaussian:
    log_var = jnp.broadcast_to(_prior_log_var(kernel, epsilon), epsilon.shape)
    return FactorizedGaussian(mean=jnp.zeros_like(epsilon), log_var=log_var)
