"""Random features of a kernel: an activation of inputs projected on frequencies (section 3)."""

import dataclasses
import math
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from bochner.features.frequencies import Independent
from bochner.features.maps import AbstractDrawnFeatures, AbstractFeatureMap, LayerSettings
from bochner.features.spectra import AbstractSpectrum, VarResampled
from bochner.kernels import AbstractKernel
from bochner.ops.fused_layer import project
from bochner.posteriors.hyperparameters import (
    AbstractTheta,
    FreeTheta,
    HeldTheta,
    VariationalTheta,
)


class FeatureNoise(NamedTuple):
    """The standard normal noise of one layer's random features."""

    Omega: Float[Array, "..."] | None = None
    theta: Any = None


class ProjectedFeatures(AbstractDrawnFeatures):
    """The activation of `Omega.T @ inputs`, as fast as a backend computes it."""

    kernel: AbstractKernel
    Omega: Float[Array, "..."]

    def variance(self):  # noqa: D102
        return self.kernel.feature_variance(self.Omega.shape[1])

    def columns(self, inputs):  # noqa: D102
        return self.kernel.features(project(inputs, self.Omega))

    def outputs(self, backend, inputs, W):  # noqa: D102
        return backend.outputs(self.kernel, inputs, self.Omega, W)

    def moments(self, backend, inputs, mean, variance):  # noqa: D102
        return backend.moments(self.kernel, inputs, self.Omega, mean, variance)

    def matrix(self, F):  # noqa: D102
        parts = self.kernel.activate(F @ self.Omega)
        return jnp.sqrt(self.variance()) * jnp.concatenate(parts, axis=1)


class RandomFeatures(AbstractFeatureMap):
    """Random features of a kernel, with a treatment of its frequencies and one of its parameters.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from bochner.features.maps import LayerSettings
        >>> from bochner.features.random_features import RandomFeatures
        >>> features = RandomFeatures.start(LayerSettings(1, n_rf=10), d_in=3, key=jax.random.key(0))
        >>> features.draw(None).matrix(jnp.zeros((5, 3))).shape
        (5, 20)
    """

    kernel: AbstractKernel
    spectrum: AbstractSpectrum
    theta: AbstractTheta = FreeTheta()

    @classmethod
    def start(cls, settings: LayerSettings, *, d_in: int, key: PRNGKeyArray) -> "RandomFeatures":
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
        return cls(
            kernel=kernel,
            spectrum=settings.omega.start(kernel, epsilon, scale),
            theta=settings.theta.start(kernel, settings.theta_deviation),
        )

    @property
    def d_in(self):  # noqa: D102
        matrix = next(leaf for leaf in jax.tree.leaves(self.spectrum) if leaf.ndim == 2)
        return matrix.shape[0]

    @property
    def n_rf(self):  # noqa: D102
        return self.spectrum.scale.shape[-1]

    @property
    def n_features(self):  # noqa: D102
        return self.kernel.n_parts * self.n_rf

    def covariance(self, X, X2):  # noqa: D102
        return self.kernel.covariance(X, X2)

    def draw(self, noise):  # noqa: D102
        noise = FeatureNoise() if noise is None else noise
        kernel = self.theta.kernel(self.kernel, noise.theta)
        return ProjectedFeatures(kernel, self.spectrum.Omega(kernel, noise.Omega))

    def Omega(self, noise: Float[Array, "d_in rf"] | None = None) -> Float[Array, "d_in rf"]:
        """Compute the frequencies; with noise where they are drawn anew for each sample."""
        return self.spectrum.Omega(self.kernel, noise)

    def noise_shapes(self):  # noqa: D102
        shape, dtype = self.spectrum.noise_shape, self.spectrum.scale.dtype
        Omega: Any = None if shape is None else jax.ShapeDtypeStruct(shape[-2:], dtype)
        return FeatureNoise(Omega, self.theta.noise_shapes(self.kernel))

    @property
    def is_shared(self):  # noqa: D102
        return self.spectrum.noise_shape is None

    @property
    def has_posterior(self):  # noqa: D102
        return self.spectrum.learned is not None

    def kl(self):  # noqa: D102
        of_Omega = self.spectrum.kl(self.kernel, self.theta.spread(self.kernel))
        return of_Omega + self.theta.kl(self.kernel)

    def log_prior(self):  # noqa: D102
        return self.spectrum.log_prior(self.kernel)

    def trainable(self, *, theta, omega):  # noqa: D102
        spectrum = jax.tree.map(lambda _: False, self.spectrum)
        if self.spectrum.learned is not None:
            spectrum = eqx.tree_at(
                lambda s: jax.tree.leaves(s.learned),
                spectrum,
                [omega] * len(jax.tree.leaves(self.spectrum.learned)),
            )
        return RandomFeatures(
            kernel=jax.tree.map(lambda _: theta, self.kernel),
            spectrum=spectrum,
            theta=self.theta.trainable(theta),
        )

    def check_learnable(self, number):  # noqa: D102
        if not self.kernel.gradients_vanish():
            return
        remedy = "use degree 1 or 2, or a single layer with `PriorFixed` and a shared lengthscale"
        if number > 0:
            blocked = "the layers before it"
        elif self.has_posterior:
            blocked = "q(Omega)"
        elif self.kernel.log_lengthscale.ndim > 0:
            blocked = "its ARD lengthscales"
        else:
            return
        raise ValueError(
            "the arc-cosine kernel of degree 0 has zero gradients almost everywhere, so in layer "
            f"{number} {blocked} cannot be learned: {remedy}."
        )

    def held(self, noise):  # noqa: D102
        if not isinstance(self.theta, VariationalTheta):
            return self
        return dataclasses.replace(self, theta=HeldTheta(self.theta, noise.theta))

    def released(self):  # noqa: D102
        if not isinstance(self.theta, HeldTheta):
            return self
        return dataclasses.replace(self, theta=self.theta.q)

    def at_mean(self):  # noqa: D102
        return dataclasses.replace(self, theta=FreeTheta())
