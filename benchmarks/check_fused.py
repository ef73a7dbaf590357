"""The kernels of a layer on this device, beside the formula in double precision, over random shapes.

Before each comparison a kernel runs with an output that starts as NaN, so that what it leaves unwritten shows.
"""

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl

from bochner.kernels import KERNELS
from bochner.ops import PallasLayer
from bochner.ops.fused_layer import Precision, Sine
from bochner.ops.fused_layer.choice import NarrowTiles, Sizes, choose

# Relative distance from double precision that rounding explains, for each way to multiply.
_TOLERANCES = {
    Precision.FLOAT32: 1e-5,
    Precision.TF32X3: 2e-5,
    Precision.TF32: 3e-3,
    Precision.BFLOAT16: 1e-1,
}
_KERNELS = ("rbf", "arccos1", "arccos2", "arccos0")


def run(n_shapes: int, seed: int) -> bool:
    """Check so many shapes; print a line for each, and tell whether all are right."""
    interpret = jax.default_backend() == "cpu"
    generator = np.random.default_rng(seed)
    worst: dict[str, float] = {}
    wrong = 0
    for number in range(n_shapes):
        shape = _draw_shape(generator, small=interpret)
        path = PallasLayer(
            list(Precision)[number % len(Precision)],
            list(Sine)[number // len(Precision) % 2],
            interpret=interpret,
        )
        try:
            distances = _distances(path, generator, **shape)
        except Exception as error:  # the other shapes still tell something
            print(f"FAILED {shape} {path.precision.name}: {type(error).__name__}: {error}"[:800])
            wrong += 1
            continue
        distance = max(distances.values())
        limit = _limit(path, **shape)
        wrong += not distance < limit
        mark = "ok   " if distance < limit else "WRONG"
        where = max(distances, key=lambda name: distances[name])
        print(f"{mark} {distance:.1e} in {where}: {shape} {path.precision.name} {path.sine.name}")
        worst[path.precision.name] = max(worst.get(path.precision.name, 0.0), distance)
    print(f"{n_shapes - wrong} of {n_shapes} shapes agree; largest distances {worst}")
    return wrong == 0


def _draw_shape(generator: np.random.Generator, *, small: bool) -> dict[str, Any]:
    """Draw sizes around the edges of tiles, of a narrow layer or a wide one."""
    largest = 150 if small else 20_000
    batch = int(np.exp(generator.uniform(0, np.log(largest))))
    narrow, moments = (bool(draw < 0.5) for draw in generator.random(2))
    return {
        "batch": batch,
        "widths": tuple(
            int(generator.integers(1, 9 if narrow else 41))
            for _ in range(int(generator.integers(1, 3)))
        ),
        "n_rf": int(generator.integers(1, 60 if small else 600)),
        # Means and variances together are at most 128 outputs; beyond, XLA computes the layer.
        "d_out": int(generator.integers(1, 5 if narrow else 65 if moments else 129)),
        "kernel": _KERNELS[int(generator.integers(len(_KERNELS)))],
        "moments": moments,
        "n_samples": int(generator.choice([1, 3])),
    }


def _limit(path: PallasLayer, **shape: Any) -> float:
    sizes = Sizes(
        sum(shape["widths"]), shape["n_rf"], shape["d_out"], shape["batch"],
        n_weights=1 + shape["moments"],
    )  # fmt: skip
    exact = isinstance(choose(sizes), NarrowTiles)
    return _TOLERANCES[Precision.FLOAT32 if exact else path.precision]


def _distances(
    path: PallasLayer,
    generator: np.random.Generator,
    *,
    batch: int,
    widths: tuple[int, ...],
    n_rf: int,
    d_out: int,
    kernel: str,
    moments: bool,
    n_samples: int,
) -> dict[str, float]:
    """Compare outputs and the gradients in all arguments; the steps of degree 0 have none in inputs and Omega."""
    covariance = KERNELS[kernel](log_variance=jnp.zeros(()), log_lengthscale=jnp.zeros(()))
    d_in, feat = sum(widths), covariance.n_parts * n_rf

    def normal(*sizes: int, scale: float = 1.0) -> np.ndarray:
        return (scale * generator.normal(size=sizes)).astype(np.float32)

    inputs = tuple(normal(n_samples, width, batch) for width in widths)
    Omega = normal(d_in, n_rf, scale=2 / math.sqrt(d_in))
    weights = [normal(n_samples, feat, d_out, scale=1 / math.sqrt(feat))]
    if moments:
        weights.append(np.exp(normal(n_samples, feat, d_out)) / np.float32(feat))
    layer = path.side_by_side(n_samples)
    run_layer = layer.moments if moments else layer.outputs
    ours = jax.vmap(
        functools.partial(run_layer, covariance), in_axes=(0, None, *[0] * len(weights))
    )
    cotangents = [normal(n_samples, d_out, batch) for _ in weights]

    @jax.jit
    def value_and_gradients(arguments, cotangents):
        values, pullback = jax.vjp(lambda *some: _as_list(ours(*some)), *arguments)
        return values, pullback(cotangents)

    with poisoned_outputs():
        actual = value_and_gradients((inputs, Omega, *weights), cotangents)
    expected = _exact(kernel, inputs, Omega, weights, cotangents)
    if kernel == "arccos0":
        actual = (actual[0], actual[1][2:])
        expected = (expected[0], expected[1][2:])
    flat, _ = jax.tree_util.tree_flatten_with_path(actual)
    return {
        jax.tree_util.keystr(name): _distance(ours, theirs)
        for (name, ours), theirs in zip(flat, jax.tree.leaves(expected), strict=True)
    }


def _as_list(values: Any) -> list[Any]:
    return list(values) if isinstance(values, tuple) else [values]


def _exact(kernel: str, inputs, Omega, weights, cotangents):
    """Compute outputs and gradients in NumPy's double precision, from the formulas."""
    inputs, weights, cotangents = (
        [np.asarray(array, np.float64) for array in arrays]
        for arrays in (inputs, weights, cotangents)
    )
    Omega = np.asarray(Omega, np.float64)
    F = np.concatenate(inputs, axis=1)
    Z = np.einsum("kf,skn->sfn", Omega, F)
    if kernel == "rbf":
        parts, derivatives = [np.cos(Z), np.sin(Z)], [-np.sin(Z), np.cos(Z)]
    else:
        degree, positive = int(kernel[-1]), np.maximum(Z, 0)
        parts = [np.where(Z > 0, positive**degree, 0.0)]
        derivatives = [degree * np.where(Z > 0, positive ** max(degree - 1, 0), 0.0)]
    Phi, dPhi = np.concatenate(parts, axis=1), np.concatenate(derivatives, axis=1)
    powers = [(Phi, dPhi), (Phi**2, 2 * Phi * dPhi)][: len(weights)]
    values = [
        np.einsum("sfo,sfn->son", W, power) for W, (power, _) in zip(weights, powers, strict=True)
    ]
    of_weights = [
        np.einsum("sfn,son->sfo", power, G)
        for (power, _), G in zip(powers, cotangents, strict=True)
    ]
    of_features = sum(
        slope * np.einsum("sfo,son->sfn", W, G)
        for W, (_, slope), G in zip(weights, powers, cotangents, strict=True)
    )
    dZ = np.asarray(of_features).reshape(len(Z), len(parts), *Z.shape[1:]).sum(axis=1)
    dF = np.einsum("kf,sfn->skn", Omega, dZ)
    ends = np.cumsum([array.shape[1] for array in inputs])[:-1]
    of_inputs = tuple(np.split(dF, ends, axis=1))
    return values, (of_inputs, np.einsum("skn,sfn->kf", F, dZ), *of_weights)


def _distance(actual: Any, expected: np.ndarray) -> float:
    error = np.linalg.norm(np.asarray(actual, np.float64) - expected)
    distance = float(error / max(np.linalg.norm(expected), 1e-30))
    return distance if math.isfinite(distance) else math.inf


class poisoned_outputs:  # noqa: N801
    """Within it, every kernel writes into arrays that are NaN at first."""

    def __enter__(self):
        self.pallas_call = pl.pallas_call
        pl.pallas_call = functools.partial(_poisoned_call, self.pallas_call)

    def __exit__(self, *_):
        pl.pallas_call = self.pallas_call


def _poisoned_call(pallas_call, kernel, *, out_shape, **options):
    shapes, structure = jax.tree.flatten(out_shape)
    n_outputs = len(shapes)

    def call(*arguments):
        def with_poison(*refs):
            kernel(*refs[: len(arguments)], *refs[len(arguments) + n_outputs :])

        aliases = {len(arguments) + i: i for i in range(n_outputs)}
        poison = [jnp.full(shape.shape, jnp.nan, shape.dtype) for shape in shapes]
        return pallas_call(
            with_poison, out_shape=jax.tree.unflatten(structure, shapes),
            input_output_aliases=aliases, **options,
        )(*arguments, *poison)  # fmt: skip

    return call
