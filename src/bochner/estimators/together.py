"""Many fits of one size in one program: splits of a table, or seeds, or both."""

import dataclasses
from collections.abc import Sequence
from typing import Any, TypeVar

from bochner.estimators.classifier import DeepGPClassifier
from bochner.estimators.config import AUTO, Config
from bochner.estimators.fitting import Fitting, restored_on_failure, training_settings
from bochner.estimators.regressor import DeepGPRegressor
from bochner.estimators.rows import Rows
from bochner.gp.members import Members
from bochner.gp.model import DeepGP
from bochner.rows.table import Table, Tables
from bochner.training import Trained, train

Estimator = TypeVar("Estimator", DeepGPRegressor, DeepGPClassifier)


def fit_together(
    estimators: Sequence[Estimator], tables: Sequence[tuple[Any, Any]]
) -> list[Estimator]:
    """Fit each estimator to its own table, all of them in one program, and give them back.

    For cross-validation, repeated splits and seeds on a GPU, which one small model leaves idle: all members of all
    models are trained side by side. On a CPU they follow each other inside the program, which is compiled once.

    Estimators differ in `random_state` only, and the tables are arrays with equal numbers of rows, columns and classes.
    Each model is learned from its own table alone, as by `fit`, with other random numbers: all take the rows of the
    same numbers in a step. What concerns the training as a whole is shared: `max_seconds` is for all models together,
    one that diverges slows all of them down, and the history is that of their mean. No progress is shown.

    Example:
        >>> import numpy as np
        >>> from bochner import DeepGPRegressor, fit_together
        >>> x = np.linspace(0, 1, 40)[:, None]
        >>> tables = [(x, np.sin(6 * x[:, 0])), (x, np.cos(6 * x[:, 0]))]
        >>> first, second = fit_together([DeepGPRegressor(max_steps=20, random_state=s) for s in (0, 1)], tables)
        >>> first.predict(x).shape
        (40,)

    Args:
        estimators: one for each table.
        tables: inputs and targets.
    """
    _check(estimators, tables)
    with restored_on_failure(*estimators):
        _fit(estimators, tables)
    return list(estimators)


def _fit(estimators: Sequence[Any], tables: Sequence[tuple[Any, Any]]) -> None:
    prepared = [
        _prepare(estimator, *table) for estimator, table in zip(estimators, tables, strict=True)
    ]
    _check_equal("rows", [len(rows) for _, rows in prepared])
    _check_equal("columns", [rows.X.shape[1] for _, rows in prepared])
    _check_equal(
        "targets or classes",
        [one._n_targets(rows.Y) for one, (_, rows) in zip(estimators, prepared, strict=True)],
    )
    config = _common([config for config, _ in prepared])
    first = estimators[0]
    if first._split(config, prepared[0][1])[1] is not None:
        raise ValueError("`fit_together` holds no rows out; set `validation_fraction=0`.")
    with first._on_device():
        data = [Table.of(rows.X, rows.Y, rows.weights) for _, rows in prepared]
        trained = train(
            Members.of([member for one in estimators for member in _members(one.model_)]),
            Tables.stack(data),
            **training_settings(config),
            key=first._key("train"),
        )
        members = trained.model.each()
        for number, (estimator, (own, rows)) in enumerate(zip(estimators, prepared, strict=True)):
            part = members[number * config.n_members : (number + 1) * config.n_members]
            model = part[0] if len(part) == 1 else Members.of(part)
            estimator.trained_weight_ = data[number].total_weight
            estimator.distribution_ = {}
            result = Trained(model, trained.history, trained.n_steps)
            estimator._keep(own, data[number], result, rows)


def _check(estimators: Sequence[Fitting], tables: Sequence[Any]) -> None:
    if not estimators or len(estimators) != len(tables):
        raise ValueError(
            f"there must be one estimator for each table; got {len(estimators)} and {len(tables)}."
        )
    if len({id(estimator) for estimator in estimators}) < len(estimators):
        raise ValueError("each table needs an estimator of its own; one was given twice.")
    settings = [{**one.get_params(), "random_state": None} for one in estimators]
    if any(other != settings[0] for other in settings):
        raise ValueError("the estimators must be alike but for `random_state`.")
    for table in tables:
        if not isinstance(table, tuple | list) or len(table) != 2 or isinstance(table[1], str):
            raise ValueError("each table must be a pair of arrays, inputs and targets.")
    for estimator in estimators:
        for name in ("warm_start", "checkpoint", "distributed", "callbacks"):
            if getattr(estimator, name):
                raise ValueError(f"`fit_together` knows no `{name}`; use `fit`.")
        if estimator.n_layers == AUTO:
            raise ValueError('`fit_together` needs a number of layers; got n_layers="auto".')


def _check_equal(what: str, numbers: list[int]) -> None:
    if len(set(numbers)) > 1:
        raise ValueError(
            f"the tables must have equal numbers of {what}; got {sorted(set(numbers))}."
        )


def _prepare(estimator: Fitting, X: Any, y: Any) -> tuple[Config, Rows]:
    """Learn scaling and start the model of one estimator; give its configuration and scaled rows."""
    estimator._encoder = estimator._target_name = None
    rows = estimator._rows_to_fit(X, y, None)
    config = estimator._begin(rows, estimator._situation(len(rows), rows.X, together=True))
    estimator.total_weight_ = float(rows.weights.sum())
    return config, estimator._scaled(rows)


def _common(configs: list[Config]) -> Config:
    """Give the configuration that all share but for the seed."""
    first = configs[0]
    for config in configs:
        other = dataclasses.asdict(dataclasses.replace(config, seed=first.seed))
        differing = [
            name for name, value in dataclasses.asdict(first).items() if other[name] != value
        ]
        if differing:
            raise ValueError(
                f"what the preset makes of the tables must be alike; it differs in {', '.join(differing)}. Set what "
                "differs."
            )
    return first


def _members(model: DeepGP | Members) -> list[DeepGP]:
    return [model] if isinstance(model, DeepGP) else model.each()
