"""A layer's outputs from its inputs, frequencies and weights: by XLA, or by kernels that keep the features on chip."""

import dataclasses
from abc import abstractmethod
from typing import Any, ClassVar, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from bochner.ops.current_device import current_device
from bochner.ops.fused_layer.activations import Activation, CosineSine, Sine
from bochner.ops.fused_layer.choice import NarrowTiles, Sizes, WideTiles, choose, is_faster
from bochner.ops.fused_layer.precision import Precision

Inputs = tuple[Float[Array, "_ batch"], ...]

_LEAST_CAPABILITY = 8.0


@runtime_checkable
class Features(Protocol):
    """What a backend needs to know about a kernel."""

    n_parts: ClassVar[int]

    def activate(self, Z: Array) -> tuple[Array, ...]:
        """Apply the activation, one array a part."""
        ...

    def features(self, Z: Array) -> Array:
        """Apply the activation, all parts one below the other."""
        ...

    def activation(self) -> Activation | None:
        """Name the activation, where kernels on a GPU know it."""
        ...


class AbstractBackend(eqx.Module):
    """A way to compute a layer; data are columns, and inputs count as one matrix, one below the other."""

    @abstractmethod
    def outputs(
        self,
        kernel: Features,
        inputs: Inputs,
        Omega: Float[Array, "d_in rf"],
        W: Float[Array, "feat d_out"],
    ) -> Float[Array, "d_out batch"]:
        """Compute `W.T @ features(Omega.T @ inputs)`."""

    @abstractmethod
    def moments(
        self,
        kernel: Features,
        inputs: Inputs,
        Omega: Float[Array, "d_in rf"],
        mean: Float[Array, "feat d_out"],
        variance: Float[Array, "feat d_out"],
    ) -> tuple[Float[Array, "d_out batch"], Float[Array, "d_out batch"]]:
        """Compute the mean and the variance of the outputs for weights with these means and variances."""

    def side_by_side(self, n_samples: int) -> "AbstractBackend":
        """Give the backend for a layer of which so many Monte Carlo samples run at once."""
        return self

    def of_shared_inputs(self) -> "AbstractBackend":
        """Give the backend for a layer whose inputs and frequencies all samples share, and with them the features."""
        return self

    def on_one_device(self) -> "AbstractBackend":
        """Give the backend for steps that run on one device, the one that JAX uses now."""
        return self


class XlaLayer(AbstractBackend):
    """Products and activations as XLA compiles them: the reference, which runs everywhere.

    Example:
        >>> import jax.numpy as jnp
        >>> from bochner.kernels import RBF
        >>> from bochner.ops import XlaLayer
        >>> kernel = RBF(jnp.zeros(()), jnp.zeros(()))
        >>> XlaLayer().outputs(kernel, (jnp.zeros((1, 2)),), jnp.ones((1, 3)), jnp.ones((6, 1))).tolist()
        [[3.0, 3.0]]
    """

    precision: Precision = eqx.field(static=True, default=Precision.FLOAT32)

    def outputs(self, kernel, inputs, Omega, W):  # noqa: D102
        # GPUs would round the factors of float32 products to ten bits, and those of the projection feed a sine.
        with jax.default_matmul_precision(self.precision.for_xla):
            return W.T @ kernel.features(project(inputs, Omega))

    def moments(self, kernel, inputs, Omega, mean, variance):  # noqa: D102
        with jax.default_matmul_precision(self.precision.for_xla):
            parts = kernel.activate(project(inputs, Omega))
            return _combine(parts, mean), _combine_squares(parts, variance)


class AutomaticLayer(AbstractBackend):
    """Kernels where one NVIDIA GPU runs the steps and they are the faster, and XLA everywhere else.

    Example:
        >>> import jax
        >>> from bochner.ops import AutomaticLayer, PallasLayer
        >>> backend = AutomaticLayer().on_one_device()
        >>> isinstance(backend, PallasLayer) == jax.devices()[0].device_kind.startswith("NVIDIA")
        True
    """

    precision: Precision = eqx.field(static=True, default=Precision.FLOAT32)

    def outputs(self, kernel, inputs, Omega, W):  # noqa: D102
        return self._plain.outputs(kernel, inputs, Omega, W)

    def moments(self, kernel, inputs, Omega, mean, variance):  # noqa: D102
        return self._plain.moments(kernel, inputs, Omega, mean, variance)

    def on_one_device(self):  # noqa: D102
        return (
            PallasLayer(self.precision, where_faster=True)
            if _has_kernels(current_device())
            else self
        )

    @property
    def _plain(self) -> XlaLayer:
        # Rounded products are what GPUs are fast at; elsewhere they cost accuracy and gain nothing.
        return XlaLayer(self.precision) if current_device().platform == "gpu" else XlaLayer()


class PallasLayer(AbstractBackend):
    """Kernels that make features tile by tile, and again in the backward pass, so that none goes to memory.

    `choose` says which kernels, by the layer's sizes; where there are none, as for double precision, XLA computes the
    layer. Derivatives are those of reverse mode, of first order.

    Attributes:
        precision: rounding of the factors of matrix products; products of few numbers are always exact.
        sine: how sines and cosines are computed.
        interpret: run kernels in Pallas's interpreter, on any device; for tests.
        n_samples: how many Monte Carlo samples run side by side, from which tiles follow.
        where_faster: leave to XLA what it was measured to do faster.

    Example:
        >>> import jax.numpy as jnp
        >>> from bochner.kernels import RBF
        >>> from bochner.ops import PallasLayer
        >>> kernel, backend = RBF(jnp.zeros(()), jnp.zeros(())), PallasLayer(interpret=True)
        >>> backend.outputs(kernel, (jnp.zeros((1, 2)),), jnp.ones((1, 3)), jnp.ones((6, 1))).tolist()
        [[3.0, 3.0]]
    """

    precision: Precision = eqx.field(static=True, default=Precision.FLOAT32)
    sine: Sine = eqx.field(static=True, default=Sine.HARDWARE)
    interpret: bool = eqx.field(static=True, default=False)
    n_samples: int = eqx.field(static=True, default=1)
    where_faster: bool = eqx.field(static=True, default=False)

    def outputs(self, kernel, inputs, Omega, W):  # noqa: D102
        fused = self._fused(kernel, inputs, Omega, (W,))
        if fused is None:
            return XlaLayer(self.precision).outputs(kernel, inputs, Omega, W)
        return fused[0]

    def moments(self, kernel, inputs, Omega, mean, variance):  # noqa: D102
        squares, constant = square_weights(variance, kernel.n_parts)
        fused = self._fused(kernel, inputs, Omega, (mean, squares))
        if fused is None:
            return XlaLayer(self.precision).moments(kernel, inputs, Omega, mean, variance)
        return fused[0], fused[1] + constant[:, None]

    def side_by_side(self, n_samples: int):  # noqa: D102
        return dataclasses.replace(self, n_samples=n_samples)

    def of_shared_inputs(self):  # noqa: D102
        # One wide product with the weights of all samples; a kernel would make the features once a sample.
        return XlaLayer(self.precision)

    def _fused(
        self, kernel: Features, inputs: Inputs, Omega: Array, weights: tuple[Array, ...]
    ) -> tuple[Array, ...] | None:
        activation, tiles = kernel.activation(), self._tiles(kernel, inputs, Omega, weights)
        if activation is None or tiles is None:
            return None
        if isinstance(activation, CosineSine):
            activation = CosineSine(self.sine)
        # Pallas is loaded where a kernel runs, and not with the library.
        if isinstance(tiles, NarrowTiles):
            from bochner.ops.fused_layer.narrow import Narrow, narrow_layer

            return narrow_layer(Narrow(activation, tiles, self.interpret), inputs, Omega, weights)
        from bochner.ops.fused_layer.wide import Wide, wide_layer

        with jax.default_matmul_precision(self._of_projection.for_xla):
            Z = project(inputs, Omega)
        return wide_layer(Wide(activation, tiles, self.precision, self.interpret), Z, weights)

    @property
    def _of_projection(self) -> Precision:
        # XLA has no split products on a CPU, where the interpreter is used.
        split = self.interpret and self.precision is Precision.TF32X3
        return Precision.FLOAT32 if split else self.precision

    def _tiles(
        self, kernel: Features, inputs: Inputs, Omega: Array, weights: tuple[Array, ...]
    ) -> NarrowTiles | WideTiles | None:
        arrays = (*inputs, Omega, *weights)
        if any(array.dtype != jnp.float32 for array in arrays):
            return None
        d_in, n_rf = Omega.shape
        d_out, batch = weights[0].shape[1], inputs[0].shape[1]
        sizes = Sizes(d_in, n_rf, d_out, batch, kernel.n_parts, len(weights), self.n_samples)
        tiles = choose(sizes)
        slower = self.where_faster and tiles is not None and not is_faster(tiles, self.precision)
        return None if slower else tiles


def _has_kernels(device: Any) -> bool:
    """Whether Triton compiles for the device: an NVIDIA GPU of compute capability 8 or more."""
    if not device.device_kind.startswith("NVIDIA"):
        return False
    return float(getattr(device, "compute_capability", 0)) >= _LEAST_CAPABILITY


def project(inputs: Inputs, Omega: Float[Array, "d_in rf"]) -> Float[Array, "rf batch"]:
    """Multiply inputs, one below the other, with the transpose of Omega.

    A product each lets fed inputs, which all Monte Carlo samples share, be multiplied once.

    Example:
        >>> import jax.numpy as jnp
        >>> from bochner.ops.fused_layer.layer import project
        >>> project((jnp.ones((1, 2)), jnp.ones((2, 2))), jnp.ones((3, 1))).tolist()
        [[3.0, 3.0]]
    """
    blocks, start = [], 0
    for matrix in inputs:
        blocks.append(Omega[start : start + matrix.shape[0]])
        start += matrix.shape[0]
    products = [block.T @ matrix for block, matrix in zip(blocks, inputs, strict=True)]
    return sum(products[1:], start=products[0])


def square_weights(
    weights: Float[Array, "feat d_out"], n_parts: int
) -> tuple[Float[Array, "rf d_out"], Float[Array, " d_out"]]:
    """Give D and c such that `D.T @ part**2 + c` of the first part alone is `weights.T @ features**2`.

    Two parts are a cosine and a sine, whose squares sum to one, so that one product is enough:
    `w_cos cos^2 + w_sin sin^2 = (w_cos - w_sin) cos^2 + w_sin`.

    Example:
        >>> import jax.numpy as jnp
        >>> from bochner.ops.fused_layer.layer import square_weights
        >>> [array.tolist() for array in square_weights(jnp.array([[3.0], [1.0]]), n_parts=2)]
        [[[2.0]], [1.0]]
    """
    if n_parts == 1:
        return weights, jnp.zeros(weights.shape[1], weights.dtype)
    w_cosine, w_sine = jnp.split(weights, 2)
    return w_cosine - w_sine, jnp.sum(w_sine, axis=0)


def _combine(parts: tuple[Array, ...], weights: Array) -> Array:
    """Compute `weights.T @ concatenate(parts)` as a sum of one product a part."""
    n_rf = parts[0].shape[0]
    products = [weights[i * n_rf : (i + 1) * n_rf].T @ part for i, part in enumerate(parts)]
    return sum(products[1:], start=products[0])


def _combine_squares(parts: tuple[Array, ...], weights: Array) -> Array:
    """Compute `weights.T @ concatenate(parts)**2`."""
    squares, constant = square_weights(weights, len(parts))
    product = squares.T @ parts[0] ** 2
    return product if len(parts) == 1 else product + constant[:, None]
