"""Tails and widths of predictive laws, by rows that were left out."""

import dataclasses

import numpy as np
from jaxtyping import Float

from bochner.exact.laws import log_density, quantile

_DEGREES = (np.inf, 12.0, 6.0, 4.0, 3.0)
_FACTORS = np.geomspace(0.5, 2.0, 29)
_ROWS_FOR_NO_CHANGE = 25
_COST_OF_TAILS = 1.0


@dataclasses.dataclass(frozen=True)
class Tails:
    """The law of `(t - mean) / deviation`: normal or Student, scaled.

    Attributes:
        degrees: degrees of freedom; infinite for normal tails.
        factor: what the deviation is multiplied by.
    """

    degrees: float = np.inf
    factor: float = 1.0

    @classmethod
    def learn(
        cls, z: Float[np.ndarray, " n"], weights: Float[np.ndarray, " n"] | None = None
    ) -> "Tails":
        """Choose by standardized left-out residuals, of equal weights where None.

        Few rows say little about the factor: it is taken as if 25 further rows had called for none. Heavy tails must
        gain a nat in all.

        Example:
            >>> import numpy as np
            >>> from bochner.exact.tails import Tails
            >>> rng = np.random.default_rng(0)
            >>> Tails.learn(rng.normal(size=500)).degrees, Tails.learn(rng.standard_t(3, 500)).degrees <= 4
            (inf, True)
        """
        counts = np.ones(len(z)) if weights is None else weights
        best, found = -np.inf, cls()
        # The information of a Gaussian row on the logarithm of its deviation is two.
        typical = _ROWS_FOR_NO_CHANGE * np.log(_FACTORS) ** 2
        for degrees in _DEGREES:
            # Where tails are heavy, the middle is narrower: no change is the factor of equal quartiles.
            ratio = (
                1.0
                if np.isinf(degrees)
                else float(quantile(np.array(0.75), np.inf) / quantile(np.array(0.75), degrees))
            )
            scores = [
                counts @ (log_density(z / (ratio * factor), degrees) - np.log(ratio * factor))
                for factor in _FACTORS
            ]
            scores = np.array(scores) - typical - (_COST_OF_TAILS if np.isfinite(degrees) else 0.0)
            place = int(np.argmax(scores))
            if scores[place] > best:
                best, found = float(scores[place]), cls(degrees, float(ratio * _FACTORS[place]))
        return found
