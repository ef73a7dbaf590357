"""The deep Gaussian process: layers in sequence, inputs fed forward, and draws of whole functions."""

from collections.abc import Sequence
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from bochner.features.random_features import RandomFeatures
from bochner.gp.layers import Layer, LayerNoise, LayerSettings, Stack, group_equal
from bochner.gp.reparameterization import AbstractReparameterization, DrawWeights
from bochner.likelihoods import AbstractLikelihood

Noise = tuple[LayerNoise, ...]
"""Standard normal noise, one entry a block of layers."""


class DeepGP(eqx.Module):
    """A composition of Gaussian process layers with a likelihood (sections 2 and 3).

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from bochner.gp.layers import LayerSettings
        >>> from bochner.likelihoods import Gaussian
        >>> from bochner.gp.model import DeepGP
        >>> model = DeepGP.start(
        ...     [LayerSettings(width=3), LayerSettings(width=1)],
        ...     Gaussian.start(1), d_in=2, feed_inputs=True, key=jax.random.key(0),
        ... )
        >>> f = model.draw_function(key=jax.random.key(1))
        >>> f(jnp.zeros((4, 2))).shape
        (4, 1)
    """

    blocks: tuple[Any, ...]  # layers, or stacks of them; the last is a layer
    likelihood: AbstractLikelihood
    feed_inputs: bool = eqx.field(static=True)
    n_members: ClassVar[int] = 1

    @classmethod
    def start(
        cls,
        settings: Sequence[LayerSettings],
        likelihood: AbstractLikelihood,
        *,
        d_in: int,
        feed_inputs: bool,
        key: PRNGKeyArray,
    ) -> "DeepGP":
        """Build a model, one entry of `settings` a layer; the last gives the likelihood's inputs."""
        layers, width = [], d_in
        for number, (setting, layer_key) in enumerate(
            zip(settings, jax.random.split(key, len(settings)), strict=True)
        ):
            fed = d_in if feed_inputs and number > 0 else 0
            if setting.residual and setting.width != width:
                raise ValueError(
                    f"layer {number} adds its {width} inputs to its {setting.width} outputs: make them equal in "
                    "number, or set `residual=False`."
                )
            layer = Layer.start(setting, d_in=width + fed, key=layer_key)
            layer.features.check_learnable(number)
            layers.append(layer)
            width = setting.width
        # The last layer stands alone, whatever its shape: its weights can be treated apart.
        blocks = (*group_equal(layers[:-1]), layers[-1])
        return cls(blocks=blocks, likelihood=likelihood, feed_inputs=feed_inputs)

    def each(self) -> "list[DeepGP]":
        """Give the members one by one; a model is its own only one."""
        return [self]

    @property
    def n_layers(self) -> int:
        """The number of layers."""
        return sum(block.n_layers if isinstance(block, Stack) else 1 for block in self.blocks)

    @property
    def layers(self) -> list[Layer]:
        """The layers one by one, stacks taken apart."""
        single: list[Layer] = []
        for block in self.blocks:
            single.extend(block.unstacked() if isinstance(block, Stack) else [block])
        return single

    def __call__(
        self,
        X: Float[Array, "batch d_in"],
        noise: Noise,
        reparameterization: AbstractReparameterization,
    ) -> Float[Array, "batch d_out"]:
        """Compute one draw of the last layer's outputs; all randomness is in `noise`."""
        inputs = self.inputs_of_last(X, noise, reparameterization)
        return self.blocks[-1](inputs, noise[-1], reparameterization)

    def inputs_of_last(
        self,
        X: Float[Array, "batch d_in"],
        noise: Noise,
        reparameterization: AbstractReparameterization,
    ) -> tuple[Float[Array, "batch _"], ...]:
        """Compute one draw of what enters the last layer: the hidden outputs, and the inputs where they are fed."""
        fed = (X,) if self.feed_inputs else ()
        inputs: tuple[Array, ...] = (X,)
        for number, (block, block_noise) in enumerate(
            zip(self.blocks[:-1], noise[:-1], strict=True)
        ):
            # No gradient goes back to data.
            of_data = number == 0 and not isinstance(block, Stack)
            own = reparameterization.exact() if of_data else reparameterization
            inputs = (block(inputs, block_noise, own), *fed)
        return inputs

    def after_first_block(
        self,
        F: Float[Array, "batch _"],
        X: Float[Array, "batch d_in"],
        noise: Noise,
        reparameterization: AbstractReparameterization,
    ) -> Float[Array, "batch d_out"]:
        """Go on from the outputs of the first block of layers, with the noise of the others."""
        fed = (X,) if self.feed_inputs else ()
        for block, block_noise in zip(self.blocks[1:], noise, strict=True):
            F = block((F, *fed), block_noise, reparameterization)
        return F

    def kl(self) -> Float[Array, ""]:
        """Compute the divergence of q(W) and q(Omega) from their priors, over all layers."""
        return self.hidden_kl() + self.blocks[-1].kl()

    def hidden_kl(self) -> Float[Array, ""]:
        """Compute the same without the last layer."""
        return sum((block.kl() for block in self.blocks[:-1]), start=jnp.zeros(()))

    def noise_shapes(self, reparameterization: AbstractReparameterization, batch: int) -> PyTree:
        """The shapes of the noise of one Monte Carlo sample."""
        return tuple(block.noise_shapes(reparameterization, batch) for block in self.blocks)

    def draw_noise(
        self,
        leading: tuple[int, ...] = (),
        *,
        reparameterization: AbstractReparameterization | None = None,
        batch: int = 0,
        key: PRNGKeyArray,
    ) -> Noise:
        """Draw noise with leading axes for samples or steps; by default such that a draw is a function."""
        shapes = self.noise_shapes(reparameterization or DrawWeights(), batch)
        leaves, structure = jax.tree.flatten(shapes)
        # One draw for all of it: a generator takes about a second to compile for each shape.
        sizes = [leaf.size for leaf in leaves]
        drawn = jax.random.normal(key, (*leading, sum(sizes)), leaves[0].dtype)
        pieces = jnp.split(drawn, np.cumsum(sizes)[:-1], axis=-1)
        shaped = [
            piece.reshape(*leading, *leaf.shape) for piece, leaf in zip(pieces, leaves, strict=True)
        ]
        return jax.tree.unflatten(structure, shaped)

    def draw_function(self, *, key: PRNGKeyArray) -> "FunctionDraw":
        """Draw one function from the posterior: the same wherever it is evaluated."""
        return FunctionDraw(self, self.draw_noise(key=key))


class FunctionDraw(eqx.Module):
    """One function drawn from the posterior: a callable that can be reused, compiled and differentiated.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from bochner.gp.layers import LayerSettings
        >>> from bochner.likelihoods import Gaussian
        >>> from bochner.gp.model import DeepGP
        >>> model = DeepGP.start(
        ...     [LayerSettings(1)], Gaussian.start(1), d_in=1, feed_inputs=False, key=jax.random.key(0)
        ... )
        >>> f = model.draw_function(key=jax.random.key(1))
        >>> x = jnp.zeros((1, 1))
        >>> bool(f(x) == f(x))
        True
    """

    model: DeepGP
    noise: Noise

    def __call__(self, X: Float[Array, "batch d_in"]) -> Float[Array, "batch d_out"]:
        """Evaluate the function at the rows of X."""
        return self.model(X, self.noise, DrawWeights())


def collapsed_weights(
    model: DeepGP, index: int, noise: Float[Array, "d_in rf"] | None = None
) -> Float[Array, "feat rf"]:
    """Compute `Xi = W^(l) Omega^(l+1)` of neighboring layers: the low-rank weights of section 3.1.

    W is the mean of q(W). With fed inputs only the rows of Omega that meet the hidden layer enter.

    Returns:
        A matrix with a row for each feature of the layer and a column for each frequency of the next.

    Example:
        >>> import jax
        >>> from bochner.gp.layers import LayerSettings
        >>> from bochner.likelihoods import Gaussian
        >>> from bochner.gp.model import DeepGP, collapsed_weights
        >>> model = DeepGP.start(
        ...     [LayerSettings(3, n_rf=10), LayerSettings(1, n_rf=20)],
        ...     Gaussian.start(1), d_in=2, feed_inputs=True, key=jax.random.key(0),
        ... )
        >>> collapsed_weights(model, 0).shape
        (20, 20)
    """
    layers = model.layers
    if not 0 <= index < len(layers) - 1:
        raise ValueError(
            f"`index` must name a layer with a next one, 0 to {len(layers) - 2}; got {index}."
        )
    layer, following = layers[index], layers[index + 1].features
    if not isinstance(following, RandomFeatures):
        raise TypeError(
            f"layer {index + 1} must have frequencies; got {type(following).__name__}: use a layer of `RandomFeatures`."
        )
    return layer.q_W.mean @ following.Omega(noise)[: layer.width]
