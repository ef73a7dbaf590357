"""The rule that says which computation a layer runs: by its sizes, in one place.

`narrow` and `wide` are the two families of kernels, and everything else is left to XLA. A kernel is parallel over rows
of data or over frequencies, and gives partial sums over the other where one of them alone would leave most of the
device idle.
"""

import math
from typing import NamedTuple

from bochner.ops.fused_layer.precision import Precision

# Of a large GPU. Its multiprocessors are busy with a dozen warps each; a multiple of them leaves none idle at the end.
_MULTIPROCESSORS = 132
_WARPS = 12 * _MULTIPROCESSORS
# Splits cost a sum over them afterward, so that fewer programs do where work has to be divided for them.
_WARPS_OF_SPLIT_FREQUENCIES = 10 * _MULTIPROCESSORS
_WIDE_PROGRAMS = 4 * _MULTIPROCESSORS
_WIDE_GRADIENT_PROGRAMS = 2 * _MULTIPROCESSORS
_LANES = 32

_MOST_NARROW_INPUTS = 16
_MOST_NARROW_OUTPUTS = 8
_MOST_WIDE_OUTPUTS = 128
_REGISTERS_FOR_PARAMETERS = 128
_MOST_SUMS_A_FREQUENCY = 128  # as many as registers hold for 64 frequencies
_LEAST_ROWS_A_SPLIT, _MOST_ROWS_A_SPLIT = 16, 1024


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
    """How the kernels for few inputs and outputs divide their work; a program is one warp.

    Attributes:
        rows: rows of data of one program, one or more a lane, where lanes are rows.
        frequencies_a_split: how many frequencies such a program sums over.
        frequencies: frequencies of one program where lanes are frequencies.
        rows_a_split: how many rows such a program sums over.
        frequencies_at_once: how many of them a turn of the loop adds, where lanes are rows.
        rows_at_once: how many rows, where lanes are frequencies.
    """

    rows: int
    frequencies_a_split: int
    frequencies: int
    rows_a_split: int
    frequencies_at_once: int
    rows_at_once: int = 2


class WideTiles(NamedTuple):
    """How the kernels that start from the projections divide their work.

    Attributes:
        rows: rows of data of one tile.
        outputs: outputs of one tile, all of them, up to a power of two.
        frequencies: frequencies of one tile of the forward pass.
        frequencies_a_split: how many frequencies a program of the forward pass sums over.
        gradient_frequencies: frequencies of one tile of the backward pass.
        rows_a_split: how many rows a program of the backward pass sums over.
        warps: warps of a program of the forward pass.
        gradient_warps: warps of a program of the backward pass.
    """

    rows: int
    outputs: int
    frequencies: int
    frequencies_a_split: int
    gradient_frequencies: int
    rows_a_split: int
    warps: int = 2
    gradient_warps: int = 4


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
    """Whether kernels beat XLA: few numbers always, tile products where they are rounded; `docs/gpu.md` has figures.

    Example:
        >>> from bochner.ops.fused_layer import Precision
        >>> from bochner.ops.fused_layer.choice import Sizes, choose, is_faster
        >>> wide = choose(Sizes(d_in=784, n_rf=500, d_out=50, batch=1000))
        >>> is_faster(wide, Precision.FLOAT32), is_faster(wide, Precision.TF32)
        (False, True)
    """
    return isinstance(tiles, NarrowTiles) or precision in (Precision.TF32, Precision.BFLOAT16)


def _narrow(sizes: Sizes) -> NarrowTiles:
    all_rows = sizes.n_samples * sizes.batch
    # A number that all lanes read serves as many rows as a lane has; with too few rows, lanes would be idle instead.
    rows_a_lane = 4 if all_rows >= 2**18 else 2 if all_rows >= 2**13 else 1
    rows = rows_a_lane * _LANES
    programs = sizes.n_samples * math.ceil(sizes.batch / rows)
    splits = _between(
        1, math.ceil(_WARPS_OF_SPLIT_FREQUENCIES / programs), math.ceil(sizes.n_rf / 8)
    )

    a_lane = 2 * (sizes.d_in + (sizes.n_parts + sizes.n_weights - 1) * sizes.d_out)
    frequencies_a_lane = _between(
        1,
        _power_of_two_up_to(_REGISTERS_FOR_PARAMETERS // a_lane),
        min(4, _power_of_two_from(math.ceil(sizes.n_rf / _LANES))),
    )
    frequencies = frequencies_a_lane * _LANES
    blocks = sizes.n_samples * math.ceil(sizes.n_rf / frequencies)
    rows_a_split = math.ceil(sizes.batch / max(1, _WARPS // blocks))
    frequencies_a_split = math.ceil(sizes.n_rf / splits)
    return NarrowTiles(
        rows=rows,
        frequencies_a_split=frequencies_a_split,
        frequencies=frequencies,
        rows_a_split=_between(_LEAST_ROWS_A_SPLIT, rows_a_split, _MOST_ROWS_A_SPLIT),
        # Short loops gain nothing (2.3 and 2.4 us in A), and the interpreter of the tests takes four times as long.
        frequencies_at_once=4 if frequencies_a_split >= 24 else 1,
    )


def _wide(sizes: Sizes) -> WideTiles:
    rows, frequencies, outputs = 64, 16, max(16, _power_of_two_from(sizes.d_out))
    sums = outputs * (sizes.n_parts + sizes.n_weights - 1)
    gradient_frequencies = 64 if sums <= _MOST_SUMS_A_FREQUENCY else 32
    row_programs = sizes.n_samples * math.ceil(sizes.batch / rows)
    gradient_programs = sizes.n_samples * math.ceil(sizes.n_rf / gradient_frequencies)
    return WideTiles(
        rows=rows,
        outputs=outputs,
        frequencies=frequencies,
        frequencies_a_split=_share(sizes.n_rf, 2 * frequencies, _WIDE_PROGRAMS / row_programs),
        gradient_frequencies=gradient_frequencies,
        rows_a_split=_share(sizes.batch, rows, _WIDE_GRADIENT_PROGRAMS / gradient_programs),
    )


def _share(n: int, tile: int, n_splits: float) -> int:
    """Divide n among about so many splits, each of whole tiles."""
    tiles = math.ceil(n / tile)
    return tile * math.ceil(tiles / _between(1, math.ceil(n_splits), tiles))


def _between(low: int, value: int, high: int) -> int:
    return max(low, min(value, high))


def _power_of_two_from(n: int) -> int:
    return 1 << max(0, n - 1).bit_length()


def _power_of_two_up_to(n: int) -> int:
    return 1 << max(0, n.bit_length() - 1)
