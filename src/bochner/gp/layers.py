"""One layer of Gaussian processes in its weight-space view, and a stack of equal layers."""

from typing import Any, NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from bochner.features.maps import AbstractDrawnFeatures, AbstractFeatureMap, LayerSettings
from bochner.features.random_features import RandomFeatures
from bochner.gp.reparameterization import AbstractReparameterization
from bochner.posteriors.gaussians import AnyGaussian, FactorizedGaussian


class LayerNoise(NamedTuple):
    """The standard normal noise of one layer and one Monte Carlo sample."""

    W: Float[Array, "..."]
    features: Any = None


class LayerDraw(NamedTuple):
    """What one Monte Carlo sample of a layer is made of, before there are inputs."""

    features: AbstractDrawnFeatures
    weights: Any


class Layer(eqx.Module):
    """A layer `F -> Phi(F) @ W` of independent Gaussian processes that share a kernel (section 3).

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from bochner.gp.layers import Layer, LayerSettings
        >>> layer = Layer.start(LayerSettings(width=2, n_rf=10), d_in=3, key=jax.random.key(0))
        >>> layer.Phi(jnp.zeros((5, 3))).shape
        (5, 20)
    """

    features: AbstractFeatureMap
    q_W: AnyGaussian
    residual: bool = eqx.field(static=True, default=False)

    @classmethod
    def start(cls, settings: LayerSettings, *, d_in: int, key: PRNGKeyArray) -> "Layer":
        """Start the feature map, and q(W) around zero."""
        features = (settings.features or RandomFeatures).start(settings, d_in=d_in, key=key)
        shape = (features.n_features, settings.width)
        return cls(
            features=features,
            q_W=FactorizedGaussian(jnp.zeros(shape), jnp.full(shape, float(settings.log_var))),
            residual=settings.residual,
        )

    @property
    def width(self) -> int:
        """The number of outputs."""
        return self.q_W.shape[-1]

    @property
    def dtype(self) -> Any:
        """The type of the layer's numbers."""
        return jax.tree.leaves(self.q_W)[0].dtype

    def __call__(
        self,
        inputs: tuple[Float[Array, "batch _"], ...],
        noise: LayerNoise,
        reparameterization: AbstractReparameterization,
    ) -> Float[Array, "batch d_out"]:
        """Compute one draw of the outputs; the columns of the inputs count as one matrix, side by side."""
        return self.transposed(tuple(F.T for F in inputs), noise, reparameterization).T

    def transposed(
        self,
        inputs: tuple[Float[Array, "_ batch"], ...],
        noise: LayerNoise,
        reparameterization: AbstractReparameterization,
    ) -> Float[Array, "d_out batch"]:
        """Compute one draw with the data as columns, which is how the products and activations are fastest."""
        return self.apply(inputs, self.draw(noise, reparameterization), reparameterization)

    def draw(self, noise: LayerNoise, reparameterization: AbstractReparameterization) -> LayerDraw:
        """Compute what the noise decides before there are inputs."""
        features = self.features.draw(noise.features)
        return LayerDraw(features, reparameterization.weights(features, self.q_W, noise.W))

    def apply(
        self,
        inputs: tuple[Float[Array, "_ batch"], ...],
        draw: LayerDraw,
        reparameterization: AbstractReparameterization,
    ) -> Float[Array, "d_out batch"]:
        """Compute the outputs of a draw."""

        def outputs(first, others):
            fed, draw = others
            F = reparameterization.outputs(draw.features, (first, *fed), draw.weights)
            return F + first if self.residual else F

        first, *fed = inputs
        return reparameterization.through(outputs, first, (tuple(fed), draw))

    def Phi(
        self, F: Float[Array, "batch d_in"], noise: LayerNoise | None = None
    ) -> Float[Array, "batch feat"]:
        """Compute the feature matrix of the paper, scaled, whose inner products approximate the kernel.

        Noise is needed where frequencies or theta are drawn.
        """
        return self.features.draw(None if noise is None else noise.features).matrix(F)

    def kl(self) -> Float[Array, ""]:
        """Compute the divergence of q(W), q(Omega) and, where it has a posterior, q(theta) from their priors."""
        return self.q_W.kl(jnp.zeros((), self.dtype)) + self.features.kl()

    def trainable(self, *, theta: bool, omega: bool) -> "Layer":
        """Mark the leaves that a stage learns: q(W) always."""
        return Layer(
            features=self.features.trainable(theta=theta, omega=omega),
            q_W=jax.tree.map(lambda _: True, self.q_W),
            residual=self.residual,
        )

    def noise_shapes(
        self, reparameterization: AbstractReparameterization, batch: int
    ) -> LayerNoise:
        """The shapes of the noise that one Monte Carlo sample needs."""
        feat, d_out = self.q_W.shape[-2:]
        W = jax.ShapeDtypeStruct(reparameterization.noise_shape(feat, d_out, batch), self.dtype)
        return LayerNoise(W, self.features.noise_shapes())  # pyright: ignore[reportArgumentType]


class Stack(eqx.Module):
    """Layers of equal shape with a leading axis, run by a scan, so that depth does not cost compile time.

    Example:
        >>> import jax
        >>> from bochner.gp.layers import Layer, LayerSettings, Stack
        >>> keys = jax.random.split(jax.random.key(0), 4)
        >>> Stack.of([Layer.start(LayerSettings(2), d_in=2, key=key) for key in keys]).n_layers
        4
    """

    layers: Layer
    n_layers: int = eqx.field(static=True)

    @classmethod
    def of(cls, layers: list[Layer]) -> "Stack":
        """Stack layers whose arrays have equal shapes."""
        stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *layers)
        return cls(layers=stacked, n_layers=len(layers))

    def unstacked(self) -> list[Layer]:
        """Give the layers back one by one."""
        return [jax.tree.map(lambda leaf: leaf[i], self.layers) for i in range(self.n_layers)]  # noqa: B023

    def __call__(
        self,
        inputs: tuple[Float[Array, "batch _"], ...],
        noise: LayerNoise,
        reparameterization: AbstractReparameterization,
    ) -> Float[Array, "batch d_out"]:
        """Run the layers one after another; inputs after the first are fed to each of them."""
        first, *fed = (F.T for F in inputs)
        # All layers at once draw what needs no inputs, which leaves little to do for one after another.
        draws = jax.vmap(lambda layer, noise: layer.draw(noise, reparameterization))(
            self.layers, noise
        )

        def step(F, draw):
            return self.layers.apply((F, *fed), draw, reparameterization), None

        F, _ = jax.lax.scan(step, first, draws)
        return F.T

    def kl(self) -> Float[Array, ""]:
        """Compute the divergence summed over the layers."""
        return jnp.sum(jax.vmap(lambda layer: layer.kl())(self.layers))

    def noise_shapes(
        self, reparameterization: AbstractReparameterization, batch: int
    ) -> LayerNoise:
        """The shapes of the noise that one Monte Carlo sample needs, with the leading axis of layers."""
        return jax.tree.map(
            lambda leaf: jax.ShapeDtypeStruct((self.n_layers, *leaf.shape), leaf.dtype),
            shape_of_one(self.layers).noise_shapes(reparameterization, batch),
        )


_Stacked = TypeVar("_Stacked")


def shape_of_one(stacked: _Stacked) -> _Stacked:
    """Give what has a leading axis in all its arrays without it, shapes in the place of arrays."""
    return jax.eval_shape(lambda tree: jax.tree.map(lambda leaf: leaf[0], tree), stacked)


def group_equal(layers: list[Layer]) -> tuple[Layer | Stack, ...]:
    """Stack each run of two or more neighboring layers that have the same structure and shapes."""
    runs: list[list[Layer]] = []
    for layer in layers:
        if runs and _signature(runs[-1][0]) == _signature(layer):
            runs[-1].append(layer)
        else:
            runs.append([layer])
    return tuple(run[0] if len(run) == 1 else Stack.of(run) for run in runs)


def _signature(layer: Layer):
    leaves, structure = jax.tree.flatten(layer)
    return structure, [(leaf.shape, leaf.dtype) for leaf in leaves], layer.width
