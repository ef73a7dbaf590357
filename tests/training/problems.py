"""A small regression problem and a short training of it."""

import jax
import numpy as np

from bochner.rows.table import Table
from bochner.training import Budget, Plan, train
from tests import examples

PLAN = Plan()  # one stage, and so one program


def table(n=60, seed=0):
    generator = np.random.default_rng(seed)
    X = generator.uniform(-2, 2, size=(n, examples.D_IN))
    return Table.of(X, np.sin(2 * X[:, :1]) + 0.1 * generator.normal(size=(n, 1)))


def model(n_layers=1, **options):
    """One layer by default, which compiles fastest."""
    return examples.deep_gp(n_layers, feed_inputs=True, n_rf=10, **options)


def short_training(seed=0, max_steps=60, started=None, rows=None, **options):
    options = {"plan": PLAN, "batch_size": 20, "budget": Budget(max_steps=max_steps)} | options
    return train(
        model() if started is None else started,
        table() if rows is None else rows,
        key=jax.random.key(seed),
        **options,
    )


def leaves(trained):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(trained.model)]
