"""What the data sets are: their sizes, what is predicted, and where they come from."""

import dataclasses

from bochner.datasets.files import PAGES, SOURCES, present_files

REGRESSION, CLASSES = "regression", "{} classes"


@dataclasses.dataclass(frozen=True)
class Entry:
    """One data set.

    Attributes:
        n_rows: how many rows it has.
        n_inputs: columns beside the target.
        task: what is predicted.
        source: whence the table comes.
        files: that hold it, as read here; none where it is made.
    """

    n_rows: int
    n_inputs: int
    task: str
    source: str
    files: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        """How it is had on this machine."""
        if not self.files:
            return "made when asked for"
        if present_files().keys() >= set(self.files):
            return "here"
        return "to download" if SOURCES.keys() >= set(self.files) else "not here"


def _table(file: str, n_rows: int, n_inputs: int, n_classes: int = 0) -> Entry:
    task = CLASSES.format(n_classes) if n_classes else REGRESSION
    return Entry(n_rows, n_inputs, task, PAGES[file], (file, "standard_splits.npz"))


def _flights(n_rows: int, n_inputs: int, *files: str) -> Entry:
    return Entry(n_rows, n_inputs, CLASSES.format(2), PAGES[files[0]], files)


_MNIST = tuple(SOURCES)

CATALOG = {
    "airline": _flights(1_317_956, 8, "airline_more.npz", "airline_nyc2013.npz"),
    "airline_2001": _flights(3_000_000, 5, "airline_2001_3m.npz"),
    "airline_2008": _flights(112_955, 8, "airline_2008_part.npz"),
    "airline_cities": _flights(1_044_103, 8, "airline_more.npz"),
    "airline_nyc2013": _flights(273_853, 8, "airline_nyc2013.npz"),
    "boston": _table("boston.npz", 506, 13),
    "composed": Entry(50, 1, REGRESSION, "simulated: h(h(x)) of the paper's supplement"),
    "concrete": _table("concrete.npz", 1_030, 8),
    "credit": _table("credit.npz", 1_000, 24, 2),
    "eeg": _table("eeg.npz", 14_980, 14, 2),
    "energy": _table("energy.npz", 768, 8),
    "kin40k": _table("kin40k.npz", 40_000, 8),
    "mnist": Entry(70_000, 784, CLASSES.format(10), "images of digits, LeCun et al.", _MNIST),
    "mnist8m": Entry(
        8_110_000, 784, CLASSES.format(10), "mnist, deformed as it is asked for", _MNIST
    ),
    "powerplant": _table("powerplant.npz", 9_568, 4),
    "protein": _table("protein.npz", 45_730, 9),
    "spam": _table("spam.npz", 4_601, 57, 2),
    "step": Entry(50, 1, REGRESSION, "simulated: a step"),
    "wine_red": _table("wine_red.npz", 1_599, 11),
    "yacht": _table("yacht.npz", 308, 6),
}
"""The data sets by name."""
