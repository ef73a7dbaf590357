"""Models of equal structure that are trained together and predict as one mixture."""

from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from bochner.gp.layers import shape_of_one
from bochner.gp.model import DeepGP, FunctionDraw, Noise
from bochner.gp.reparameterization import AbstractReparameterization


def start_members(
    start: Callable[[PRNGKeyArray], DeepGP], n_members: int, *, key: PRNGKeyArray
) -> "DeepGP | Members":
    """Start one model, or several as members.

    Example:
        >>> import jax
        >>> from bochner.gp.layers import LayerSettings
        >>> from bochner.likelihoods import Gaussian
        >>> from bochner.gp.members import start_members
        >>> from bochner.gp.model import DeepGP
        >>> def start(key):
        ...     return DeepGP.start([LayerSettings(1)], Gaussian.start(1), d_in=2, feed_inputs=False, key=key)
        >>> [start_members(start, n, key=jax.random.key(0)).n_members for n in (1, 2)]
        [1, 2]
    """
    return start(key) if n_members == 1 else Members.start(start, n_members, key=key)


class Members(eqx.Module):
    """Deep Gaussian processes of equal structure; each array of `stacked` has the members as its first axis.

    Nothing connects the members: the gradient of a sum over them is that of each alone, and so is the update of an
    optimizer that works entry by entry. Their predictions form one mixture of equal parts.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from bochner.gp.layers import LayerSettings
        >>> from bochner.likelihoods import Gaussian
        >>> from bochner.gp.members import Members
        >>> from bochner.gp.model import DeepGP
        >>> def start(key):
        ...     return DeepGP.start([LayerSettings(1)], Gaussian.start(1), d_in=2, feed_inputs=False, key=key)
        >>> members = Members.start(start, 4, key=jax.random.key(0))
        >>> members.n_members, members.each()[0].layers[0].width
        (4, 1)
    """

    stacked: DeepGP
    n_members: int = eqx.field(static=True)

    @classmethod
    def of(cls, models: Sequence[DeepGP]) -> "Members":
        """Stack models whose arrays have equal shapes."""
        return cls(jax.tree.map(lambda *leaves: jnp.stack(leaves), *models), len(models))

    @classmethod
    def start(
        cls, start: Callable[[PRNGKeyArray], DeepGP], n_members: int, *, key: PRNGKeyArray
    ) -> "Members":
        """Start each member from a key of its own."""
        # Compiled as a whole, which takes less time than its many small parts would; one after another, since a batch
        # of the factorizations of orthogonal frequencies may never end (see there).
        keys = jax.random.split(key, n_members)
        return cls(eqx.filter_jit(lambda keys: jax.lax.map(start, keys))(keys), n_members)

    @property
    def n_layers(self) -> int:
        """The number of layers of each member."""
        return self.stacked.n_layers

    def each(self) -> list[DeepGP]:
        """Give the members one by one."""
        return [jax.tree.map(lambda leaf: leaf[i], self.stacked) for i in range(self.n_members)]  # noqa: B023

    def with_noise(self, noise: Noise) -> tuple[DeepGP, Noise]:
        """Give models and noise, both with the members as first axis; that of the noise comes after the draws'."""
        return self.stacked, jax.tree.map(lambda leaf: jnp.moveaxis(leaf, 1, 0), noise)

    def kl(self) -> Float[Array, ""]:
        """Compute the divergence of q(W) and q(Omega) from their priors, the mean over members."""
        return jnp.mean(jax.vmap(lambda model: model.kl())(self.stacked))

    def noise_shapes(self, reparameterization: AbstractReparameterization, batch: int) -> PyTree:
        """The shapes of the noise of one Monte Carlo sample of every member."""
        return jax.tree.map(
            lambda leaf: jax.ShapeDtypeStruct((self.n_members, *leaf.shape), leaf.dtype),
            shape_of_one(self.stacked).noise_shapes(reparameterization, batch),
        )

    def draw_noise(
        self,
        leading: tuple[int, ...] = (),
        *,
        reparameterization: AbstractReparameterization | None = None,
        batch: int = 0,
        key: PRNGKeyArray,
    ) -> Noise:
        """Draw noise of every member, with leading axes for samples or steps before that of the members."""
        return shape_of_one(self.stacked).draw_noise(
            (*leading, self.n_members), reparameterization=reparameterization, batch=batch, key=key
        )

    def draw_function(self, *, key: PRNGKeyArray) -> FunctionDraw:
        """Draw one function from the mixture: a function of one member, each with the same probability."""
        key_member, key_draw = jax.random.split(key)
        number = jax.random.randint(key_member, (), 0, self.n_members)
        member: DeepGP = jax.tree.map(lambda leaf: leaf[number], self.stacked)
        return member.draw_function(key=key_draw)
