"""How the base frequencies epsilon are drawn: independently, or in orthogonal blocks."""

from abc import abstractmethod

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray


class AbstractFrequencies(eqx.Module):
    """A way to draw base frequencies whose columns are each standard normal vectors."""

    @abstractmethod
    def draw(self, d_in: int, n_rf: int, *, key: PRNGKeyArray) -> Float[Array, "d_in rf"]:
        """Draw epsilon, one column a frequency."""


class Independent(AbstractFrequencies):
    """Independent frequencies, as in the paper.

    Example:
        >>> import jax
        >>> from bochner.frequencies import Independent
        >>> Independent().draw(3, 10, key=jax.random.key(0)).shape
        (3, 10)
    """

    def draw(self, d_in: int, n_rf: int, *, key: PRNGKeyArray):  # noqa: D102
        return jax.random.normal(key, (d_in, n_rf))


class Orthogonal(AbstractFrequencies):
    """Frequencies orthogonal to each other within blocks of `d_in` (Yu et al., 2016).

    Directions are the columns of random orthogonal matrices, and lengths follow the law of a Gaussian vector's
    length, so each column alone is standard normal while features err less together. This sets epsilon only:
    the KL of q(Omega) stays the one to the independent prior.

    Example:
        >>> import jax
        >>> from bochner.frequencies import Orthogonal
        >>> epsilon = Orthogonal().draw(2, 2, key=jax.random.key(0))
        >>> abs(float(epsilon[:, 0] @ epsilon[:, 1])) < 1e-5
        True
    """

    def draw(self, d_in: int, n_rf: int, *, key: PRNGKeyArray):  # noqa: D102
        n_blocks = -(-n_rf // d_in)
        # One draw for both, since a generator takes long to compile.
        drawn = jax.random.normal(key, (n_blocks * d_in + n_rf, d_in))
        # One after another: XLA's batches of large factorizations wait for each other forever where a program has
        # several of them and few threads.
        Q, R = jax.lax.map(jnp.linalg.qr, drawn[:-n_rf].reshape(n_blocks, d_in, d_in))
        # Without this sign QR's result is not uniformly distributed over rotations.
        Q = Q * jnp.sign(jnp.diagonal(R, axis1=1, axis2=2))[:, None, :]
        directions = jnp.swapaxes(Q, 0, 1).reshape(d_in, n_blocks * d_in)[:, :n_rf]
        lengths = jnp.linalg.norm(drawn[-n_rf:], axis=1)
        return directions * lengths[None, :]


FREQUENCIES: dict[str, type[AbstractFrequencies]] = {
    "independent": Independent,
    "orthogonal": Orthogonal,
}
"""Classes by the name used in configurations."""
