"""The law of a target on a lattice: any law, rounded."""

import dataclasses

import numpy as np
from jaxtyping import Float

from bochner.exact.lattice import Lattice
from bochner.members.laws import Mixture


@dataclasses.dataclass(frozen=True, eq=False)
class Rounded:
    """A mixture of laws rounded to a lattice: mass between half steps, told as a density that is flat there.

    Moments are those before rounding, which moves a mean by less than half a step, and by nothing to speak of where the
    deviation is half a step or more.

    Attributes:
        law: before rounding.
        lattice: the points.

    Example:
        >>> import numpy as np
        >>> from bochner.exact.lattice import Lattice
        >>> from bochner.members.laws import GaussianDraws, Mixture
        >>> from bochner.members.whole_numbers import Rounded
        >>> normal = GaussianDraws(np.full((1, 1), 5.2), np.full((1, 1), 0.5))
        >>> law = Rounded(Mixture(np.ones(1), [normal]), Lattice(0.0, 1.0))
        >>> np.exp(law.log_density(np.array([5.0]))).round(3).tolist()  # P(4.5 < y < 5.5)
        [0.645]
        >>> law.quantiles([0.05, 0.5, 0.95]).tolist()
        [[4.0, 5.0, 6.0]]
    """

    law: Mixture
    lattice: Lattice

    def __len__(self) -> int:
        """Count the rows."""
        return len(self.law)

    def moments(self):
        """Compute mean, epistemic and aleatoric variance before rounding."""
        return self.law.moments()

    def log_density(self, y: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """Compute the log of the mass of one target a row over the step."""
        return self.lattice.log_density(self.law, y)

    def cdf(self, y: Float[np.ndarray, "p n"]) -> Float[np.ndarray, "p n"]:
        """Compute the probability of points up to y."""
        return self.law.cdf(self.lattice.down(y) + self.lattice.step / 2)

    def quantiles(self, p) -> Float[np.ndarray, "n p"]:
        """Compute the least point of the lattice up to which there is probability p."""
        return self.lattice.up(self.law.quantiles(p))

    def samples(self, n: int, rng: np.random.Generator) -> Float[np.ndarray, "samples n"]:
        """Draw targets of each row; a sample is of one member in all rows."""
        return self.lattice.nearest(self.law.samples(n, rng))
