"""Members of unlike kind, weighed by the rows that each has left out, which predict as one mixture."""

from bochner.fitting.kinds import Constant, Exact, Landmarks, Linear
from bochner.fitting.settings import Deep

__all__ = ["Constant", "Deep", "Exact", "Landmarks", "Linear"]
