"""What trains when: the one place that decides."""

import dataclasses

import jax
from jaxtyping import PyTree

from bochner.gp.layers import Layer
from bochner.gp.members import Members
from bochner.gp.model import DeepGP
from bochner.training.budget import Budget

Moment = int | float
"""A point of the training: a whole number counts steps, a fraction is a share of the budget."""


@dataclasses.dataclass(frozen=True)
class Stage:
    """What one part of the training learns beside q(W), and with how many Monte Carlo samples.

    Attributes:
        theta: whether kernel and likelihood parameters are learned.
        omega: whether q(Omega) is learned.
        n_mc: Monte Carlo samples a step.
    """

    theta: bool
    omega: bool
    n_mc: int

    def __str__(self) -> str:
        learned = [
            "q(W)",
            *(["theta"] if self.theta else []),
            *(["q(Omega)"] if self.omega else []),
        ]
        return f"{' + '.join(learned)}, {self.n_mc} sample{'s' if self.n_mc > 1 else ''}"


@dataclasses.dataclass(frozen=True)
class Plan:
    """The stages of a training: from when on theta, q(Omega) and more samples take part (section 4.1).

    Attributes:
        theta_from: when theta joins; None holds it for good.
        omega_from: when q(Omega) joins; None holds it for good.
        n_mc: samples a step at first.
        n_mc_final: samples a step later on.
        n_mc_final_from: when their number changes.

    Example:
        >>> from bochner.training import Plan
        >>> plan = Plan(theta_from=12_000, omega_from=0, n_mc=1, n_mc_final=100, n_mc_final_from=0.5)
        >>> str(plan.stage(step=0, fraction=0.0))
        'q(W) + q(Omega), 1 sample'
        >>> str(plan.stage(step=15_000, fraction=0.5))
        'q(W) + theta + q(Omega), 100 samples'
    """

    theta_from: Moment | None = 0
    omega_from: Moment | None = 0
    n_mc: int = 1
    n_mc_final: int = 1
    n_mc_final_from: Moment = 0.5

    def stage(self, step: int, fraction: float) -> Stage:
        """The stage at a step, when a fraction of the budget is used."""

        def reached(moment: Moment | None) -> bool:
            if moment is None:
                return False
            return step >= moment if isinstance(moment, int) else fraction >= moment

        many = reached(self.n_mc_final_from)
        return Stage(
            theta=reached(self.theta_from),
            omega=reached(self.omega_from),
            n_mc=self.n_mc_final if many else self.n_mc,
        )

    def steps_to_next(self, step: int, budget: Budget) -> list[int]:
        """How many steps from `step` on reach each coming change of stage, where steps decide that."""
        moments = (self.theta_from, self.omega_from, self.n_mc_final_from)
        distances = [
            moment - step if isinstance(moment, int) else budget.steps_to(moment, step)
            for moment in moments
            if moment is not None
        ]
        return [distance for distance in distances if distance is not None and distance > 0]


def trainable(model: DeepGP | Members, stage: Stage) -> PyTree[bool]:
    """Mark the leaves of the model that a stage learns: q(W) always, epsilon and Matern scales never."""
    if isinstance(model, Members):
        return Members(trainable(model.stacked, stage), model.n_members)

    def mark_layer(layer: Layer) -> Layer:
        return layer.trainable(theta=stage.theta, omega=stage.omega)

    return DeepGP(
        blocks=jax.tree.map(mark_layer, model.blocks, is_leaf=lambda x: isinstance(x, Layer)),
        likelihood=jax.tree.map(lambda _: stage.theta, model.likelihood),
        feed_inputs=model.feed_inputs,
    )


def in_words(stage: Stage, model: DeepGP | Members) -> str:
    """Say what a stage learns of a model, of which held frequencies have no q(Omega)."""
    nodes = jax.tree.leaves(model, is_leaf=lambda node: isinstance(node, Layer))
    learns = any(node.features.has_posterior for node in nodes if isinstance(node, Layer))
    return str(dataclasses.replace(stage, omega=stage.omega and learns))
