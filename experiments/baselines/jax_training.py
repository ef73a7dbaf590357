"""The training loop of the baselines that are written here: Adam, many steps in one compiled program."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import PRNGKeyArray, PyTree

from bochner.rows.table import RowOrder, padded_lines
from bochner.training.chunk import strongly_typed
from experiments.baselines.interface import Observer

_CAPACITY = 100


@dataclasses.dataclass(frozen=True)
class JaxTraining:
    """How a baseline that is written here is trained; its own settings are further fields."""

    n_steps: int = 5_000
    batch_size: int = 200
    learning_rate: float = 0.01
    preprocessing: str = "robust"

    def learned(
        self,
        loss: Callable[[PyTree, Any, PRNGKeyArray], jax.Array],
        start: PyTree,
        data: tuple[np.ndarray, ...],
        predictor: Callable[[PyTree], Any],
        *,
        seed: int,
        observer: Observer | None,
    ) -> Any:
        """Minimize a loss, and make a predictor of what is learned."""
        parameters = minimize(
            loss, start, data, n_steps=self.n_steps, batch_size=self.batch_size,
            learning_rate=self.learning_rate, seed=seed, observer=observer, predictor=predictor,
        )  # fmt: skip
        return predictor(parameters)


def single(array: np.ndarray) -> np.ndarray:
    """Give an array in single precision."""
    return np.asarray(array, np.float32)


def minimize(
    loss: Callable[[PyTree, Any, PRNGKeyArray], jax.Array],
    parameters: PyTree,
    data: tuple[np.ndarray, ...],
    *,
    n_steps: int,
    batch_size: int,
    learning_rate: float,
    seed: int,
    observer: Observer | None = None,
    predictor: Callable[[PyTree], Any],
) -> PyTree:
    """Minimize the mean of a loss over mini-batches.

    Args:
        loss: of parameters, a batch of the data's rows, and a key.
        parameters: where to start.
        data: arrays whose rows belong together.
        n_steps: how many steps.
        batch_size: rows of a step.
        learning_rate: of Adam.
        seed: of the order of rows and the keys.
        observer: sees the training under way.
        predictor: makes what the observer sees from parameters.
    """
    n_rows = len(data[0])
    order = RowOrder(n_rows, min(batch_size, n_rows), (seed,))
    optimizer = optax.adam(learning_rate)

    @jax.jit
    def run(parameters, state, on_device, lines, count, key):
        def step(i, carry):
            parameters, state = carry
            batch = tuple(array[lines[i]] for array in on_device)
            gradient = jax.grad(loss)(parameters, batch, jax.random.fold_in(key, i))
            updates, state = optimizer.update(gradient, state)
            return optax.apply_updates(parameters, updates), state

        return jax.lax.fori_loop(0, count, step, (parameters, state))

    on_device = tuple(jnp.asarray(array) for array in data)
    parameters = strongly_typed(parameters)
    state, step, key = optimizer.init(parameters), 0, jax.random.key(seed)
    if observer is not None:
        observer.start(n_steps)
    while step < n_steps:
        count = min(_CAPACITY, n_steps - step)
        if observer is not None:
            count = min(count, observer.steps_to_next(step))
        lines = padded_lines(order.steps(step, count), _CAPACITY)
        parameters, state = jax.block_until_ready(
            run(parameters, state, on_device, lines, count, jax.random.fold_in(key, step))
        )
        step += count
        if observer is not None and observer.is_due(step):
            observer.see(step, predictor(parameters))
    return parameters


def in_parts(
    function: Callable[[jax.Array], jax.Array], X: np.ndarray, n_rows: int = 500
) -> np.ndarray:
    """Apply a function to rows, in parts of one size so that it is compiled once; rows are its next to last axis."""
    parts = []
    for start in range(0, len(X), n_rows):
        part = X[start : start + n_rows]
        padded = np.pad(part, ((0, n_rows - len(part)), (0, 0)))
        parts.append(np.asarray(function(jnp.asarray(padded)))[..., : len(part), :])
    return np.concatenate(parts, axis=-2).astype(float)
