"""Which law of the target a fit has chosen, and why, in words."""

from collections.abc import Sequence

from bochner.members.fitted import Fitted
from bochner.members.predictors import AbstractPredictor, SideBySide, StackRegressor
from bochner.members.stack import Standing

_DENSITY, _VARYING, _EQUAL = (
    "a density of free shape", "noise that varies with the row", "equal noise",
)  # fmt: skip


def law_in_words(fitted: Fitted) -> str:
    """Say what targets are taken for, and how members of each shape did on rows that they had left out.

    Example:
        >>> from bochner import DeepGPRegressor, Linear
        >>> from bochner.members.chosen_law import law_in_words
        >>> x = [[i / 10] for i in range(40)]
        >>> model = DeepGPRegressor(Linear(), random_state=0).fit(x, [float(i // 10) for i in range(40)])
        >>> for clause in law_in_words(model.fitted_).split("; "):
        ...     print(clause)
        whole numbers: all training targets are on the lattice 0, 1, ..., so predictions are masses of such points
        weights by left-out rows: equal noise 1.00 (log-likelihood -0.2875)
    """
    if fitted.task.classification:
        return "classes"
    return _of(fitted.predictor, fitted.standings)


def _of(predictor: AbstractPredictor, standings: Sequence[Standing]) -> str:
    if isinstance(predictor, SideBySide):
        found = []
        for place, one in enumerate(predictor.targets):
            prefix = f"target {place}: "
            found.append(prefix + _of(one, [s for s in standings if s.name.startswith(prefix)]))
        return "; ".join(found)
    if not isinstance(predictor, StackRegressor):
        (deep,) = predictor.deep
        return f"{deep.config.likelihood}, of a deep model alone"
    return f"{_support(predictor)}; weights by left-out rows: {_shares(standings)}"


def _support(predictor: StackRegressor) -> str:
    lattice = predictor.lattice
    if lattice is None:
        return "numbers"
    first, second = lattice.start, lattice.start + lattice.step
    return (
        f"whole numbers: all training targets are on the lattice {first:g}, {second:g}, ..., so predictions are masses "
        "of such points"
    )


def _shares(standings: Sequence[Standing]) -> str:
    of_shapes: dict[str, list[Standing]] = {}
    for one in standings:
        of_shapes.setdefault(_shape(one.name), []).append(one)
    weighed = {shape: sum(one.weight for one in own) for shape, own in of_shapes.items()}
    return ", ".join(
        f"{shape} {weighed[shape]:.2f} (log-likelihood {max(one.log_likelihood for one in of_shapes[shape]):.4g})"
        for shape in sorted(of_shapes, key=lambda shape: -weighed[shape])
    )


def _shape(name: str) -> str:
    """Name the shape of a member's law; members of other kinds than models in the space of rows go by their names."""
    own = name.split(": ")[-1]
    if own == "density":
        return _DENSITY
    if "," not in own:
        return own
    return _VARYING if "varying noise" in own else _EQUAL
