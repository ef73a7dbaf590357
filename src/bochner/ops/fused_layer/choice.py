"""The rule that says which computation a layer runs: by its sizes, in one place.

`narrow` and `wide` are the two families of kernels, and everything else is left to XLA. A kernel is parallel over rows
of data or over frequencies, and gives partial sums over the other where one of them alone would leave most of the
device idle.
"""

import math
from typing import NamedTuple

from bochner.ops.fused_layer.precision import Precision

# Of a large GPU: multiprocessors times the warps that keep one of them busy.
_WARPS = 132 * 16
_LANES = 32

_MOST_NARROW_INPUTS = 16
_MOST_NARROW_OUTPUTS = 8
_MOST_WIDE_OUTPUTS = 128
_REGISTERS_FOR_PARAMETERS = 128


class Sizes(NamedTuple):
    """The sizes of a layer.

    Attributes:
        d_in: inputs.
        n_rf: frequencies.
        d_out: outputs.
        batch: rows of data.
        n_parts: features a frequency.
        n_weights: weight matrices: one, or two where variances go with means.
        n_samples: Monte Carlo samples that run side by side.
    """

    d_in: int
    n_rf: int
    d_out: int
    batch: int
    n_parts: int = 2
    n_weights: int = 1
    n_samples: int = 1


class NarrowTiles(NamedTuple):
    """How the kernels for few inputs and outputs divide their work.

    Attributes:
        rows: rows of data of one program, one or more a lane, where lanes are rows.
        row_warps: warps of such a program.
        frequencies_a_split: how many frequencies such a program sums over.
        frequencies: frequencies of one program where lanes are frequencies.
        rows_a_split: how many rows such a program sums over.
        frequencies_at_once: how many of them a turn of the loop adds, where lanes are rows.
        rows_at_once: how many rows, where lanes are frequencies.
    """

    rows: int
    row_warps: int
    frequencies_a_split: int
    frequencies: int
    rows_a_split: int
    frequencies_at_once: int = 1
    rows_at_once: int = 1


class WideTiles(NamedTuple):
    """How the kernels that start from the projections divide their work.

    Attributes:
        rows: rows of data of one tile.
        frequencies: frequencies of one tile.
        outputs: outputs of one tile, all of them, up to a power of two.
        frequencies_a_split: how many frequencies a program of the forward pass sums over.
        rows_a_split: how many rows a program of the backward pass sums over.
        warps: warps of a program.
    """

    rows: int
    frequencies: int
    outputs: int
    frequencies_a_split: int
    rows_a_split: int
    warps: int = 4


def choose(sizes: Sizes) -> NarrowTiles | WideTiles | None:
    """Choose kernels and their tiles; None leaves the layer to XLA.

    Example:
        >>> from bochner.ops.fused_layer.choice import Sizes, choose
        >>> type(choose(Sizes(d_in=11, n_rf=100, d_out=3, batch=100_000))).__name__
        'NarrowTiles'
        >>> type(choose(Sizes(d_in=784, n_rf=500, d_out=50, batch=1000))).__name__
        'WideTiles'
        >>> choose(Sizes(d_in=8, n_rf=100, d_out=300, batch=10_000)) is None
        True
    """
    if sizes.batch < 1 or sizes.n_rf < 1 or sizes.d_out < 1:
        return None
    n_outputs = sizes.n_weights * sizes.d_out
    if sizes.d_in <= _MOST_NARROW_INPUTS and n_outputs <= _MOST_NARROW_OUTPUTS:
        return _narrow(sizes)
    if n_outputs <= _MOST_WIDE_OUTPUTS:
        return _wide(sizes)
    return None


def is_faster(tiles: NarrowTiles | WideTiles, precision: Precision) -> bool:
    """Whether kernels beat XLA, as measured in `docs/gpu.md`: few numbers always, tile products in TF32.

    Example:
        >>> from bochner.ops.fused_layer import Precision
        >>> from bochner.ops.fused_layer.choice import Sizes, choose, is_faster
        >>> wide = choose(Sizes(d_in=784, n_rf=500, d_out=50, batch=1000))
        >>> is_faster(wide, Precision.FLOAT32), is_faster(wide, Precision.TF32)
        (False, True)
    """
    return isinstance(tiles, NarrowTiles) or precision is Precision.TF32


def _narrow(sizes: Sizes) -> NarrowTiles:
    all_rows = sizes.n_samples * sizes.batch
    # A number that all lanes read serves as many rows as a lane has; with too few rows, lanes would be idle instead.
    rows_a_lane = 4 if all_rows >= 2**18 else 2 if all_rows >= 2**16 else 1
    row_warps = 4 if sizes.batch > 64 else 1
    rows = rows_a_lane * row_warps * _LANES
    warps = sizes.n_samples * math.ceil(sizes.batch / rows) * row_warps
    splits = _between(1, math.ceil(_WARPS / 2 / warps), math.ceil(sizes.n_rf / 8))

    a_lane = 2 * (sizes.d_in + (sizes.n_parts + sizes.n_weights - 1) * sizes.d_out)
    frequencies_a_lane = _between(
        1,
        _power_of_two_up_to(_REGISTERS_FOR_PARAMETERS // a_lane),
        min(4, _power_of_two_from(math.ceil(sizes.n_rf / _LANES))),
    )
    frequencies = frequencies_a_lane * _LANES
    programs = math.ceil(sizes.n_rf / frequencies)
    rows_a_split = _between(8, math.ceil(all_rows * programs / _WARPS), 128)
    frequencies_a_split = math.ceil(sizes.n_rf / splits)
    return NarrowTiles(
        rows=rows,
        row_warps=row_warps,
        frequencies_a_split=frequencies_a_split,
        frequencies=frequencies,
        rows_a_split=rows_a_split,
        # Short loops are the wait for their numbers; long ones have other warps to go on with.
        frequencies_at_once=4 if frequencies_a_split >= 32 else 1,
        rows_at_once=4 if rows_a_split <= 32 else 1,
    )


def _wide(sizes: Sizes) -> WideTiles:
    rows, frequencies = 64, 32
    programs = sizes.n_samples * math.ceil(sizes.batch / rows)
    tiles = math.ceil(sizes.n_rf / frequencies)
    splits = _between(1, math.ceil(_WARPS / 8 / programs), tiles)

    row_tiles = math.ceil(sizes.batch / rows)
    row_splits = _between(1, math.ceil(_WARPS / 8 / (sizes.n_samples * tiles)), row_tiles)
    return WideTiles(
        rows=rows,
        frequencies=frequencies,
        outputs=max(16, _power_of_two_from(sizes.d_out)),
        frequencies_a_split=frequencies * math.ceil(tiles / splits),
        rows_a_split=rows * math.ceil(row_tiles / row_splits),
    )


def _between(low: int, value: int, high: int) -> int:
    return max(low, min(value, high))


def _power_of_two_from(n: int) -> int:
    return 1 << max(0, n - 1).bit_length()


def _power_of_two_up_to(n: int) -> int:
    return 1 << max(0, n.bit_length() - 1)
