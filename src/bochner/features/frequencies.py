"""How the base frequencies epsilon are drawn: independently, in orthogonal blocks, or most of them for few inputs."""

from abc import abstractmethod

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray


class AbstractFrequencies(eqx.Module):
    """A way to draw base frequencies, whose columns have the mean squared length of standard normal vectors."""

    @abstractmethod
    def draw(self, d_in: int, n_rf: int, *, key: PRNGKeyArray) -> Float[Array, "d_in rf"]:
        """Draw epsilon, one column a frequency."""


class Independent(AbstractFrequencies):
    """Independent frequencies, as in the paper.

    Example:
        >>> import jax
        >>> from bochner.features.frequencies import Independent
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
        >>> from bochner.features.frequencies import Orthogonal
        >>> epsilon = Orthogonal().draw(2, 2, key=jax.random.key(0))
        >>> abs(float(epsilon[:, 0] @ epsilon[:, 1])) < 1e-5
        True
    """

    def draw(self, d_in: int, n_rf: int, *, key: PRNGKeyArray):  # noqa: D102
        # Of a block that is not filled only the columns in use: of many inputs the others would take long.
        n_blocks, width = -(-n_rf // d_in), min(d_in, n_rf)
        # One draw for both, since a generator takes long to compile.
        drawn = jax.random.normal(key, (n_blocks * width + n_rf, d_in))
        # One after another: XLA's batches of large factorizations wait for each other forever where a program has
        # several of them and few threads.
        Q, R = jax.lax.map(jnp.linalg.qr, drawn[:-n_rf].reshape(n_blocks, d_in, width))
        # Without this sign QR's result is not uniformly distributed over rotations.
        Q = Q * jnp.sign(jnp.diagonal(R, axis1=1, axis2=2))[:, None, :]
        directions = jnp.swapaxes(Q, 0, 1).reshape(d_in, n_blocks * width)[:, :n_rf]
        lengths = jnp.linalg.norm(drawn[-n_rf:], axis=1)
        return directions * lengths[None, :]


class Sparse(AbstractFrequencies):
    r"""Frequencies that by turns look at all inputs, and at one, two or four of them.

    Columns for all inputs are orthogonal ones. Each of the others is zero but for a set S of inputs, each set as likely
    as another, where it is normal with the variance d_in / |S|: all columns have the same mean squared length. Features
    of the RBF kernel then approximate the mean of one of all inputs and of additive ones (Duvenaud et al., 2011); with
    lengthscales of one,

        k(x, x') = E_S exp(-d_in / (2 |S|) sum_{i in S} (x_i - x'_i)^2).

    Functions of few inputs, of which much of a table's target is made, then need few features; what takes more inputs
    is left to the others. Free frequencies may leave their zeros.

    Example:
        >>> import jax
        >>> from bochner.features.frequencies import Sparse
        >>> epsilon = Sparse().draw(8, 8, key=jax.random.key(0))
        >>> (epsilon != 0).sum(axis=0).tolist()
        [8, 1, 2, 4, 8, 1, 2, 4]
    """

    def draw(self, d_in: int, n_rf: int, *, key: PRNGKeyArray):  # noqa: D102
        key_all, key_values, key_inputs = jax.random.split(key, 3)
        active = jnp.minimum(jnp.array([d_in, 1, 2, 4])[jnp.arange(n_rf) % 4], d_in)
        # Of a random order of the inputs, another one for each column, the first.
        order = jnp.argsort(jax.random.uniform(key_inputs, (d_in, n_rf)), axis=0)
        chosen = order < active[None, :]
        values = jax.random.normal(key_values, (d_in, n_rf)) * jnp.sqrt(d_in / active)[None, :]
        of_all = Orthogonal().draw(d_in, -(-n_rf // 4), key=key_all)
        return jnp.where(chosen, values, 0.0).at[:, ::4].set(of_all)


FREQUENCIES: dict[str, type[AbstractFrequencies]] = {
    "independent": Independent,
    "orthogonal": Orthogonal,
    "sparse": Sparse,
}
"""Classes by the name used in configurations."""
