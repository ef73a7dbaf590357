"""The least work of a training step: operations and bytes, and the time that a card needs for them.

The counts are those of `docs/gpu.md`. A layer with d inputs, r frequencies and w outputs takes, for each row and
sample, `2 d r` operations for the projection and `2 f w` for the outputs, f being its features. Each of the two
products comes back twice in the backward pass, but for the derivative in the data, which nobody asks for. Each pair
of a cosine and a sine is computed once forward and once backward.
"""

import dataclasses
import itertools

from benchmarks.configurations import Configuration

_OPERATIONS_OF_A_SINE_AND_COSINE = 25
_BYTES = 4


@dataclasses.dataclass(frozen=True)
class Card:
    """What a card can do: operations a second in matrix products and in vector arithmetic, bytes a second."""

    product_rate: float
    vector_rate: float
    bandwidth: float


@dataclasses.dataclass(frozen=True)
class Work:
    """The least that a step does.

    Example:
        >>> from benchmarks.configurations import A
        >>> from benchmarks.floors import work
        >>> work(A, n_mc=1).sines
        80000
    """

    product_operations: int
    sines: int
    bytes: int

    def seconds(self, card: Card) -> float:
        """The time below which no program gets: that of the operations or that of the bytes."""
        sines = self.sines * _OPERATIONS_OF_A_SINE_AND_COSINE / card.vector_rate
        return max(self.product_operations / card.product_rate + sines, self.bytes / card.bandwidth)


def work(configuration: Configuration, n_mc: int) -> Work:
    """Count the least work of a step with cosines and sines, all samples at once."""
    c = configuration
    operations = sines = hidden = parameters = noise = 0
    sizes = [c.d_in, *[c.width] * (c.n_layers - 1), c.d_out]
    for number, (width, d_out) in enumerate(itertools.pairwise(sizes)):
        d_in = width + (c.d_in if c.feed_inputs and number > 0 else 0)
        # All samples share the first layer's features.
        rows = c.batch * (n_mc if number > 0 else 1)
        projection = 2 * rows * d_in * c.n_rf
        outputs = 2 * n_mc * c.batch * 2 * c.n_rf * d_out
        inputs_gradient = 2 * rows * width * c.n_rf if number > 0 else 0
        operations += 2 * projection + inputs_gradient + 3 * outputs
        sines += 2 * rows * c.n_rf
        parameters += 2 * d_in * c.n_rf + 4 * c.n_rf * d_out
        noise += n_mc * 2 * c.n_rf * d_out
        hidden += n_mc * c.batch * d_out if number < c.n_layers - 1 else 0
    # Rows are read; hidden outputs and their gradients are written and read, the former twice; Adam reads and writes
    # a parameter and its two averages; noise is written and read.
    rows = c.batch * (c.d_in + 1)
    numbers = rows + 5 * hidden + 6 * parameters + 2 * noise
    return Work(operations, sines, _BYTES * numbers)
