"""Kernels for layers with few inputs and outputs: all arithmetic is in registers, on one feature at a time.

In the forward pass, and for the derivative in the inputs, a lane has rows of data and goes through the frequencies. For
the derivative in Omega and the weights a lane has frequencies and goes through the rows. So no sum crosses lanes,
nothing is added to memory that another program writes, and a feature is made where it is used.
"""

import functools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as pallas_triton
from jaxtyping import Array, Float

from bochner.ops.fused_layer.activations import Activation
from bochner.ops.fused_layer.choice import NarrowTiles
from bochner.ops.fused_layer.instructions import multiply_add
from bochner.ops.fused_layer.partial_sums import sum_of_splits

Inputs = tuple[Float[Array, "_ batch"], ...]
Weights = tuple[Array, ...]


class Narrow(NamedTuple):
    """What is fixed about a layer before its arrays are known."""

    activation: Activation
    tiles: NarrowTiles
    interpret: bool

    def multiply_add(self, vector: Array, number: Array, total: Array) -> Array:
        """Compute `vector * number + total`."""
        return multiply_add(vector, number, total, interpret=self.interpret)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def narrow_layer(
    layer: Narrow, inputs: Inputs, Omega: Float[Array, "d_in rf"], weights: Weights
) -> tuple[Float[Array, "d_out batch"], ...]:
    """Compute `W.T @ parts(Z)` and, where a second matrix D is given, `D.T @ parts(Z)[0]**2`.

    Here `Z = Omega.T @ concatenate(inputs)`, `W` is feat x d_out and `D` rf x d_out. Data are columns.
    """
    return _outputs(layer, inputs, Omega, weights)


def _forward(layer: Narrow, inputs: Inputs, Omega: Array, weights: Weights):
    return _outputs(layer, inputs, Omega, weights), (inputs, Omega, weights)


def _backward(layer: Narrow, residuals, gradients: tuple[Array, ...]):
    inputs, Omega, weights = residuals
    # A call for each input: where one needs no gradient, as data do not, the compiler drops its call.
    ends = [sum(F.shape[0] for F in inputs[: i + 1]) for i in range(len(inputs))]
    of_inputs = tuple(
        _input_gradient(layer, inputs, Omega, weights, gradients, end - F.shape[0], end)
        for F, end in zip(inputs, ends, strict=True)
    )
    return of_inputs, *_parameter_gradients(layer, inputs, Omega, weights, gradients)


narrow_layer.defvjp(_forward, _backward)


def _outputs(layer: Narrow, inputs: Inputs, Omega: Array, weights: Weights) -> tuple[Array, ...]:
    d_out, batch = weights[0].shape[1], inputs[0].shape[1]
    splits, blocks = _row_grid(layer, Omega, batch)
    shape = jax.ShapeDtypeStruct((splits, len(weights) * d_out, batch), jnp.float32)
    partial = _call(
        functools.partial(_outputs_kernel, layer, len(inputs), len(weights)),
        (splits, blocks),
        shape,
        layer.interpret,
    )(*inputs, Omega, *weights)
    return tuple(jnp.split(sum_of_splits(partial), len(weights)))


def _outputs_kernel(layer: Narrow, n_inputs: int, n_weights: int, *refs: Any) -> None:
    input_refs, (Omega_ref, *weight_refs), out_ref = _unpacked(refs, n_inputs, 1 + n_weights)
    split, block = pl.program_id(0), pl.program_id(1)
    rows = _Span(block, layer.tiles.rows, input_refs[0].shape[1])
    F = _rows_of(input_refs, rows)

    def add(f, totals):
        parts = layer.activation.parts(
            _projection(layer, F, Omega_ref, f), interpret=layer.interpret
        )
        return _add_terms(layer, totals, parts, weight_refs, Omega_ref.shape[1], f)

    totals = _for_each_frequency(layer, split, Omega_ref, add, (out_ref.shape[1], rows))
    for j, total in enumerate(totals):
        rows.store(out_ref.at[split, np.int32(j), rows.slice], total)


def _input_gradient(
    layer: Narrow,
    inputs: Inputs,
    Omega: Array,
    weights: Weights,
    gradients: tuple[Array, ...],
    start: int,
    end: int,
) -> Array:
    """Compute the derivative in rows `start` to `end` of all the inputs, one below the other."""
    batch = inputs[0].shape[1]
    splits, blocks = _row_grid(layer, Omega, batch)
    shape = jax.ShapeDtypeStruct((splits, end - start, batch), jnp.float32)
    partial = _call(
        functools.partial(_input_gradient_kernel, layer, len(inputs), len(weights), start),
        (splits, blocks),
        shape,
        layer.interpret,
    )(*inputs, Omega, *weights, *gradients)
    return sum_of_splits(partial)


def _input_gradient_kernel(
    layer: Narrow, n_inputs: int, n_weights: int, start: int, *refs: Any
) -> None:
    input_refs, (Omega_ref, *others), out_ref = _unpacked(refs, n_inputs, 1 + 2 * n_weights)
    weight_refs, gradient_refs = others[:n_weights], others[n_weights:]
    split, block = pl.program_id(0), pl.program_id(1)
    rows = _Span(block, layer.tiles.rows, input_refs[0].shape[1])
    F = _rows_of(input_refs, rows)
    G = [_rows_of([ref], rows) for ref in gradient_refs]
    n_rf = Omega_ref.shape[1]

    def add(f, totals):
        Z = _projection(layer, F, Omega_ref, f)
        parts = layer.activation.parts(Z, interpret=layer.interpret)
        coefficients = [
            [ref[i * n_rf + f, j] for j in range(ref.shape[1])]
            for ref, n_parts in zip(weight_refs, (len(parts), 1), strict=False)
            for i in range(n_parts)
        ]
        dZ = _projection_gradient(layer, Z, parts, coefficients, G)
        return tuple(
            layer.multiply_add(dZ, Omega_ref[start + k, f], total) for k, total in enumerate(totals)
        )

    totals = _for_each_frequency(layer, split, Omega_ref, add, (out_ref.shape[1], rows))
    for k, total in enumerate(totals):
        rows.store(out_ref.at[split, np.int32(k), rows.slice], total)


def _parameter_gradients(
    layer: Narrow, inputs: Inputs, Omega: Array, weights: Weights, gradients: tuple[Array, ...]
) -> tuple[Array, Weights]:
    (d_in, n_rf), d_out, batch = Omega.shape, weights[0].shape[1], inputs[0].shape[1]
    n_parts = layer.activation.n_parts
    splits = math.ceil(batch / layer.tiles.rows_a_split)
    blocks = math.ceil(n_rf / layer.tiles.frequencies)
    n_rows = d_in + (n_parts + len(weights) - 1) * d_out
    partial = _call(
        functools.partial(_parameter_gradients_kernel, layer, len(inputs), len(weights)),
        (splits, blocks),
        jax.ShapeDtypeStruct((splits, n_rows, n_rf), jnp.float32),
        layer.interpret,
    )(*inputs, Omega, *weights, *gradients)
    sums = sum_of_splits(partial)
    of_W = sums[d_in : d_in + n_parts * d_out].reshape(n_parts, d_out, n_rf)
    of_weights = (jnp.swapaxes(of_W, 1, 2).reshape(n_parts * n_rf, d_out),)
    if len(weights) > 1:
        of_weights += (sums[d_in + n_parts * d_out :].T,)
    return sums[:d_in], of_weights


def _parameter_gradients_kernel(layer: Narrow, n_inputs: int, n_weights: int, *refs: Any) -> None:
    input_refs, (Omega_ref, *others), out_ref = _unpacked(refs, n_inputs, 1 + 2 * n_weights)
    weight_refs, gradient_refs = others[:n_weights], others[n_weights:]
    split, block = pl.program_id(0), pl.program_id(1)
    (d_in, n_rf), d_out = Omega_ref.shape, weight_refs[0].shape[1]
    n_parts, batch = layer.activation.n_parts, input_refs[0].shape[1]
    span = _Span(block, layer.tiles.frequencies, n_rf)
    Omega = [span.load(Omega_ref.at[np.int32(k), span.slice]) for k in range(d_in)]
    coefficients = [
        [
            span.load(ref.at[pl.ds(i * n_rf + span.start, span.size), np.int32(j)])
            for j in range(d_out)
        ]
        for ref, parts in zip(weight_refs, (n_parts, 1), strict=False)
        for i in range(parts)
    ]
    first = split * layer.tiles.rows_a_split

    def add(i, totals):
        row = first + i
        F = [ref[k, row] for ref in input_refs for k in range(ref.shape[0])]
        G = [[ref[j, row] for j in range(d_out)] for ref in gradient_refs]
        Z = _dot(layer, Omega, F)
        parts = layer.activation.parts(Z, interpret=layer.interpret)
        dZ = _projection_gradient(layer, Z, parts, coefficients, G)
        factors = [(dZ, number) for number in F]
        factors += [(part, number) for part in parts for number in G[0]]
        if n_weights > 1:
            factors += [(parts[0] * parts[0], number) for number in G[1]]
        return tuple(
            layer.multiply_add(*pair, total) for pair, total in zip(factors, totals, strict=True)
        )

    n_rows = jnp.minimum(layer.tiles.rows_a_split, batch - first)
    totals = _unrolled(n_rows, layer.tiles.rows_at_once, add, _zeros(out_ref.shape[1], span))
    for k, total in enumerate(totals):
        span.store(out_ref.at[split, np.int32(k), span.slice], total)


class _Span:
    """Neighboring rows or frequencies, one or more a lane, of which the last program has fewer."""

    def __init__(self, block: Array, size: int, n: int):
        self.start, self.size = block * size, size
        self.slice = pl.ds(self.start, size)
        self.inside = self.start + jnp.arange(size, dtype=jnp.int32) < n

    def load(self, ref: Any) -> Array:
        return pallas_triton.load(ref, mask=self.inside, other=0.0)

    def store(self, ref: Any, value: Array) -> None:
        pallas_triton.store(ref, value, mask=self.inside)


def _row_grid(layer: Narrow, Omega: Array, batch: int) -> tuple[int, int]:
    splits = math.ceil(Omega.shape[1] / layer.tiles.frequencies_a_split)
    return splits, math.ceil(batch / layer.tiles.rows)


def _call(kernel, grid: tuple[int, int], shape, interpret: bool):
    return pl.pallas_call(
        kernel,
        grid=grid,
        out_shape=shape,
        # Programs of one warp: 18 us where four warps took 28, for the forward pass of 100,000 rows on an H200.
        compiler_params=pallas_triton.CompilerParams(num_warps=1, num_stages=1),
        interpret=interpret,
        name=kernel.func.__name__.strip("_"),
    )


def _unpacked(refs: Sequence[Any], n_inputs: int, n_others: int):
    return refs[:n_inputs], refs[n_inputs : n_inputs + n_others], refs[n_inputs + n_others]


def _rows_of(refs: Sequence[Any], rows: _Span) -> list[Array]:
    return [rows.load(ref.at[np.int32(k), rows.slice]) for ref in refs for k in range(ref.shape[0])]


def _zeros(n: int, span: _Span) -> tuple[Array, ...]:
    return tuple(jnp.zeros(span.size, jnp.float32) for _ in range(n))


def _for_each_frequency(
    layer: Narrow, split: Array, Omega_ref: Any, add, totals: tuple[int, _Span]
):
    per_split, n_rf = layer.tiles.frequencies_a_split, Omega_ref.shape[1]
    first = split * per_split
    n = jnp.minimum(per_split, n_rf - first)
    return _unrolled(
        n, layer.tiles.frequencies_at_once, lambda i, carry: add(first + i, carry), _zeros(*totals)
    )


def _unrolled(n: Array, at_once: int, add, totals: tuple[Array, ...]) -> tuple[Array, ...]:
    """Loop from 0 to n, several at once, so that the loads of one can wait behind the arithmetic of another."""

    def add_several(i, carry):
        for j in range(at_once):
            carry = add(i * at_once + j, carry)
        return carry

    whole = n // at_once
    totals = jax.lax.fori_loop(0, whole, add_several, totals)
    return totals if at_once == 1 else jax.lax.fori_loop(whole * at_once, n, add, totals)


def _dot(layer: Narrow, vectors: Sequence[Array], numbers: Sequence[Array]) -> Array:
    """Sum the products of vectors with numbers."""
    total = vectors[0] * numbers[0]
    for vector, number in zip(vectors[1:], numbers[1:], strict=True):
        total = layer.multiply_add(vector, number, total)
    return total


def _projection(layer: Narrow, F: Sequence[Array], Omega_ref: Any, f: Array) -> Array:
    return _dot(layer, F, [Omega_ref[k, f] for k in range(len(F))])


def _add_terms(
    layer: Narrow,
    totals: Sequence[Array],
    parts: Sequence[Array],
    weight_refs: Sequence[Any],
    n_rf: int,
    f: Array,
) -> tuple[Array, ...]:
    """Add frequency f to each output: to those of W, then to those of the squares."""
    W_ref, *square_refs = weight_refs
    d_out = W_ref.shape[1]
    sums = list(totals)
    for j in range(d_out):
        for i, part in enumerate(parts):
            sums[j] = layer.multiply_add(part, W_ref[i * n_rf + f, j], sums[j])
    for ref in square_refs:
        square = parts[0] * parts[0]
        for j in range(d_out):
            sums[d_out + j] = layer.multiply_add(square, ref[f, j], sums[d_out + j])
    return tuple(sums)


def _projection_gradient(
    layer: Narrow,
    Z: Array,
    parts: Sequence[Array],
    coefficients: Sequence[Sequence[Array]],
    G: Sequence[Sequence[Array]],
) -> Array:
    """Compute the derivative in the projection, from those in the outputs; one of the factors is a vector."""
    derivatives = layer.activation.derivatives(Z, tuple(parts))
    dZ = _dot(
        layer, derivatives, [_dot(layer, row, G[0]) for row in coefficients[: len(derivatives)]]
    )
    if len(G) > 1:
        of_square = 2.0 * parts[0] * derivatives[0]
        dZ = layer.multiply_add(of_square, _dot(layer, coefficients[len(parts)], G[1]), dZ)
    return dZ
