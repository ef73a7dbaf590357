"""One layer of Gaussian processes in its weight-space view, and a stack of equal layers."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from bochner.features.frequencies import AbstractFrequencies, Independent
from bochner.features.spectra import AbstractSpectrum, VarFixed, VarResampled
from bochner.gp.reparameterization import AbstractReparameterization
from bochner.kernels import RBF, AbstractKernel
from bochner.posteriors.gaussians import AnyGaussian, FactorizedGaussian
from bochner.posteriors.hyperparameters import (
    AbstractTheta,
    FreeTheta,
    PriorTheta,
    VariationalTheta,
)


class LayerNoise(NamedTuple):
    """The standard normal noise of one layer and one Monte Carlo sample."""

    W: Float[Array, "..."]
    Omega: Float[Array, "..."] | None
    theta: Any = None


class LayerDraw(NamedTuple):
    """What one Monte Carlo sample of a layer is made of, before there are inputs."""

    kernel: AbstractKernel
    Omega: Float[Array, "..."]
    weights: Any


@dataclasses.dataclass(frozen=True)
class LayerSettings:
    """How to start a layer: its size, its kernel and initial values, and the treatment of Omega.

    Attributes:
        width: number of Gaussian processes, that is outputs.
        n_rf: number of random features (frequencies).
        kernel: constructor taking `log_variance` and `log_lengthscale`.
        omega: the treatment of Omega.
        frequencies: how epsilon is drawn.
        ard: one lengthscale an input, or one for all.
        variance: initial marginal variance.
        lengthscale: initial lengthscale; None means the square root of the number of inputs.
        log_var: initial log variance of q(W); zero starts q(W) at the prior.
        theta: the treatment of the kernel's variance and lengthscales.
        theta_deviation: deviation of the prior of their logarithms, where the treatment has one.
        residual: add the layer's first inputs, as many as outputs, to them: identity plus Gaussian process.
    """

    width: int
    n_rf: int = 100
    kernel: Callable[..., AbstractKernel] = RBF
    omega: type[AbstractSpectrum] = VarFixed
    frequencies: AbstractFrequencies = dataclasses.field(default_factory=Independent)
    ard: bool = True
    variance: float = 1.0
    lengthscale: float | None = None
    log_var: float = 0.0
    theta: type[FreeTheta] | type[PriorTheta] | type[VariationalTheta] = FreeTheta
    theta_deviation: float = 1.0
    residual: bool = False


class Layer(eqx.Module):
    """A layer `F -> Phi(F) @ W` of independent Gaussian processes that share a kernel (section 3).

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from bochner.gp.layers import Layer, LayerSettings
        >>> layer = Layer.start(LayerSettings(width=2, n_rf=10), d_in=3, key=jax.random.key(0))
        >>> layer.Phi(jnp.zeros((5, 3))).shape
        (5, 20)
    """

    kernel: AbstractKernel
    spectrum: AbstractSpectrum
    q_W: AnyGaussian
    theta: AbstractTheta = FreeTheta()
    residual: bool = eqx.field(static=True, default=False)

    @classmethod
    def start(cls, settings: LayerSettings, *, d_in: int, key: PRNGKeyArray) -> "Layer":
        """Draw the base frequencies and set initial values."""
        if settings.omega is VarResampled and not isinstance(settings.frequencies, Independent):
            raise ValueError(
                "`VarResampled` draws Omega from its factorized posterior, whose entries are independent: "
                "use it with independent frequencies, or hold others with `VarFixed`."
            )
        key_epsilon, key_scale = jax.random.split(key)
        lengthscale = math.sqrt(d_in) if settings.lengthscale is None else settings.lengthscale
        kernel = settings.kernel(
            log_variance=jnp.asarray(math.log(settings.variance)),
            log_lengthscale=jnp.full((d_in,) if settings.ard else (), math.log(lengthscale)),
        )
        epsilon = settings.frequencies.draw(d_in, settings.n_rf, key=key_epsilon)
        scale = kernel.draw_scales(settings.n_rf, key=key_scale)
        shape = (kernel.n_parts * settings.n_rf, settings.width)
        return cls(
            kernel=kernel,
            spectrum=settings.omega.start(kernel, epsilon, scale),
            q_W=FactorizedGaussian(jnp.zeros(shape), jnp.full(shape, float(settings.log_var))),
            theta=settings.theta.start(kernel, settings.theta_deviation),
            residual=settings.residual,
        )

    @property
    def width(self) -> int:
        """The number of outputs."""
        return self.q_W.shape[-1]

    @property
    def dtype(self) -> Any:
        """The type of the layer's numbers."""
        return self.spectrum.scale.dtype

    @property
    def n_rf(self) -> int:
        """The number of random features."""
        return self.spectrum.scale.shape[-1]

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
        kernel = self.theta.kernel(self.kernel, noise.theta)
        Omega = self.spectrum.Omega(kernel, noise.Omega)
        weights = reparameterization.weights(kernel, Omega, self.q_W, noise.W)
        return LayerDraw(kernel, Omega, weights)

    def apply(
        self,
        inputs: tuple[Float[Array, "_ batch"], ...],
        draw: LayerDraw,
        reparameterization: AbstractReparameterization,
    ) -> Float[Array, "d_out batch"]:
        """Compute the outputs of a draw."""

        def outputs(first, others):
            fed, draw = others
            F = reparameterization.outputs(draw.kernel, (first, *fed), draw.Omega, draw.weights)
            return F + first if self.residual else F

        first, *fed = inputs
        return reparameterization.through(outputs, first, (tuple(fed), draw))

    def Phi(
        self, F: Float[Array, "batch d_in"], noise: LayerNoise | None = None
    ) -> Float[Array, "batch feat"]:
        """Compute the feature matrix of the paper, scaled, whose inner products approximate the kernel.

        Noise is needed where frequencies or theta are drawn.
        """
        kernel = self.theta.kernel(self.kernel, None if noise is None else noise.theta)
        Omega = self.spectrum.Omega(kernel, None if noise is None else noise.Omega)
        parts = kernel.activate(F @ Omega)
        scale = jnp.sqrt(kernel.feature_variance(self.n_rf))
        return scale * jnp.concatenate(parts, axis=1)

    def kl(self) -> Float[Array, ""]:
        """Compute the divergence of q(W), q(Omega) and, where it has a posterior, q(theta) from their priors."""
        return self.q_W.kl(jnp.zeros((), self.dtype)) + self.kl_beside_W()

    def kl_beside_W(self) -> Float[Array, ""]:
        """Compute the same without the part of q(W)."""
        of_Omega = self.spectrum.kl(self.kernel, self.theta.spread(self.kernel))
        return of_Omega + self.theta.kl(self.kernel)

    def noise_shapes(
        self, reparameterization: AbstractReparameterization, batch: int
    ) -> LayerNoise:
        """The shapes of the noise that one Monte Carlo sample needs."""
        feat, d_out = self.q_W.shape[-2:]
        W = jax.ShapeDtypeStruct(reparameterization.noise_shape(feat, d_out, batch), self.dtype)
        shape = self.spectrum.noise_shape
        Omega = None if shape is None else jax.ShapeDtypeStruct(shape[-2:], self.dtype)
        theta = self.theta.noise_shapes(self.kernel)
        return LayerNoise(W=W, Omega=Omega, theta=theta)  # pyright: ignore[reportArgumentType]


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
