"""Three treatments of theta, the variance and lengthscales of a layer's kernel: free, with a prior, variational.

A kernel holds the values, or their means; a treatment says how they enter and what they add to the KL. Priors are
Gaussian on the logarithms, centered at the initial values. The noise of a likelihood is always free.
"""

import dataclasses
from abc import abstractmethod
from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from bochner.kernels import AbstractKernel

_Kernel = TypeVar("_Kernel", bound=AbstractKernel)


class AbstractTheta(eqx.Module):
    """A treatment of theta."""

    def noise_shapes(self, kernel: AbstractKernel) -> PyTree:
        """The shapes of the noise each Monte Carlo sample needs, shaped like the kernel; None where there is none."""
        return None

    def kernel(self, kernel: _Kernel, noise: PyTree) -> _Kernel:
        """Give the kernel that one Monte Carlo sample uses."""
        return kernel

    @abstractmethod
    def kl(self, kernel: AbstractKernel) -> Float[Array, ""]:
        """Compute what theta adds to the KL."""

    def trainable(self, learned: bool) -> PyTree[bool]:
        """Mark the leaves of a posterior where theta is learned; a prior never is."""
        return jax.tree.map(lambda _: False, self)

    def spread(self, kernel: AbstractKernel) -> Float[Array, "..."]:
        """Give the variances of the log-lengthscales, which the prior of the frequencies depends on."""
        return jnp.zeros_like(kernel.log_lengthscale)


class FreeTheta(AbstractTheta):
    """Theta maximizes the objective, with no prior, as in the paper.

    Example:
        >>> import jax.numpy as jnp
        >>> from bochner.posteriors.hyperparameters import FreeTheta
        >>> from bochner.kernels import RBF
        >>> float(FreeTheta().kl(RBF(jnp.zeros(()), jnp.ones(2))))
        0.0
    """

    @classmethod
    def start(cls, kernel: AbstractKernel, deviation: float) -> "FreeTheta":
        """Build the treatment; there is no prior."""
        return cls()

    def kl(self, kernel):  # noqa: D102
        return jnp.zeros(())


class PriorTheta(AbstractTheta):
    """Theta maximizes the objective times a prior: minus the log of the prior stands in for a KL, constants aside.

    Example:
        >>> import jax.numpy as jnp
        >>> from bochner.posteriors.hyperparameters import PriorTheta
        >>> from bochner.kernels import RBF
        >>> theta = PriorTheta.start(RBF(jnp.zeros(()), jnp.zeros(2)), deviation=1.0)
        >>> float(theta.kl(RBF(jnp.zeros(()), jnp.ones(2))))
        1.0
    """

    center: AbstractKernel
    deviation: float = eqx.field(static=True)

    @classmethod
    def start(cls, kernel: AbstractKernel, deviation: float) -> "PriorTheta":
        """Center the prior at the kernel's values."""
        return cls(_copied(kernel), deviation)

    def kl(self, kernel):  # noqa: D102
        return 0.5 * _total(
            lambda value, center: ((value - center) / self.deviation) ** 2, kernel, self.center
        )


class VariationalTheta(AbstractTheta):
    """Theta has a factorized Gaussian posterior, drawn anew for each Monte Carlo sample, at prediction too.

    The paper names it as the way against overfitting through theta (section 5).

    Example:
        >>> import jax.numpy as jnp
        >>> from bochner.posteriors.hyperparameters import VariationalTheta
        >>> from bochner.kernels import RBF
        >>> kernel = RBF(jnp.zeros(()), jnp.zeros(1))
        >>> theta = VariationalTheta.start(kernel, deviation=0.1)
        >>> round(float(theta.kl(kernel)), 6)  # q starts at the prior, where that is as narrow
        0.0
    """

    log_var: AbstractKernel
    center: AbstractKernel
    deviation: float = eqx.field(static=True)

    @classmethod
    def start(cls, kernel: AbstractKernel, deviation: float) -> "VariationalTheta":
        """Center the prior at the kernel's values, and start with a narrow posterior there."""
        narrow = 2.0 * jnp.log(min(0.1, deviation))
        log_var = jax.tree.map(lambda leaf: jnp.full_like(leaf, narrow), kernel)
        return cls(log_var, _copied(kernel), deviation)

    def noise_shapes(self, kernel):  # noqa: D102
        return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), kernel)

    def kernel(self, kernel, noise):  # noqa: D102
        if noise is None:
            raise ValueError("VariationalTheta needs noise for each draw of theta; got None.")
        return jax.tree.map(
            lambda mean, log_var, epsilon: mean + jnp.exp(0.5 * log_var) * epsilon,
            kernel,
            self.log_var,
            noise,
        )

    def kl(self, kernel):  # noqa: D102
        def of_entry(mean, log_var, center):
            log_ratio = log_var - 2.0 * jnp.log(self.deviation)
            return jnp.exp(log_ratio) - log_ratio - 1.0 + ((mean - center) / self.deviation) ** 2

        return 0.5 * _total(of_entry, kernel, self.log_var, self.center)

    def trainable(self, learned):  # noqa: D102
        marks = jax.tree.map(lambda _: False, self)
        return dataclasses.replace(marks, log_var=jax.tree.map(lambda _: learned, self.log_var))

    def spread(self, kernel):  # noqa: D102
        return jnp.exp(self.log_var.log_lengthscale)


class HeldTheta(AbstractTheta):
    """A variational posterior of theta of which one draw is held: every sample uses that one.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from bochner.posteriors.hyperparameters import HeldTheta, VariationalTheta
        >>> from bochner.kernels import RBF
        >>> kernel = RBF(jnp.zeros(()), jnp.zeros(1))
        >>> held = HeldTheta(VariationalTheta.start(kernel, 1.0), jax.tree.map(jnp.ones_like, kernel))
        >>> round(float(held.kernel(kernel, None).log_variance), 4)
        0.1
    """

    q: VariationalTheta
    epsilon: AbstractKernel

    def kernel(self, kernel, noise):  # noqa: D102
        return self.q.kernel(kernel, self.epsilon)

    def kl(self, kernel):  # noqa: D102
        return self.q.kl(kernel)

    def spread(self, kernel):  # noqa: D102
        return self.q.spread(kernel)


THETAS: dict[str, type[FreeTheta] | type[PriorTheta] | type[VariationalTheta]] = {
    "free": FreeTheta,
    "prior": PriorTheta,
    "variational": VariationalTheta,
}
"""Classes by the name used in configurations."""


def _copied(kernel: _Kernel) -> _Kernel:
    return jax.tree.map(jnp.copy, kernel)


def _total(function, *kernels: AbstractKernel) -> Float[Array, ""]:
    entries = jax.tree.leaves(jax.tree.map(function, *kernels))
    return sum((jnp.sum(entry) for entry in entries), start=jnp.zeros(()))
