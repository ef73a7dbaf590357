"""Many fits of one size in one program: splits of a table, or seeds, or both."""

import dataclasses
from collections.abc import Sequence
from typing import Any, TypeVar

from bochner.estimators.classifier import DeepGPClassifier
from bochner.estimators.regressor import DeepGPRegressor
from bochner.fitting.config import AUTO, Config
from bochner.fitting.deep_fit import DeepFit
from bochner.fitting.held_out import HeldOutRows
from bochner.fitting.resolving import Asked
from bochner.fitting.rows import Rows
from bochner.fitting.settings import Deep
from bochner.fitting.training import started, training_settings, with_result
from bochner.gp.members import Members
from bochner.members.fit import Form, fitted_alone
from bochner.rows.table import Table, Tables
from bochner.training import Trained, train

Estimator = TypeVar("Estimator", DeepGPRegressor, DeepGPClassifier)


def fit_together(
    estimators: Sequence[Estimator], tables: Sequence[tuple[Any, Any]]
) -> list[Estimator]:
    """Fit each estimator, a deep model alone, to its own table, all of them in one program, and give them back.

    For cross-validation, repeated splits and seeds on a GPU, which one small model leaves idle: all members of all
    models are trained side by side. On a CPU they follow each other inside the program, which is compiled once.

    Estimators differ in `random_state` only, and the tables are arrays with equal numbers of rows, columns and classes.
    Each model is learned from its own table alone, as by `fit`, with other random numbers: all take the rows of the
    same numbers in a step. What concerns the training as a whole is shared: `max_seconds` is for all models together,
    one that diverges slows all of them down, and the history is that of their mean. No progress is shown.

    Example:
        >>> import numpy as np
        >>> from bochner import Deep, DeepGPRegressor, fit_together
        >>> x = np.linspace(0, 1, 40)[:, None]
        >>> tables = [(x, np.sin(6 * x[:, 0])), (x, np.cos(6 * x[:, 0]))]
        >>> models = [DeepGPRegressor(Deep(max_steps=20), random_state=seed) for seed in (0, 1)]
        >>> first, second = fit_together(models, tables)
        >>> first.predict(x).shape
        (40,)

    Args:
        estimators: one for each table.
        tables: inputs and targets.

    Returns:
        The same estimators, fitted, in the order of the tables.
    """
    _check(estimators, tables)
    prepared = [_Prepared.of(one, *table) for one, table in zip(estimators, tables, strict=True)]
    _check_equal("rows", [len(one.rows) for one in prepared])
    _check_equal("columns", [one.rows.X.shape[1] for one in prepared])
    _check_equal("targets or classes", [one.fit.task.n_outputs for one in prepared])
    config = _common([one.fit.config for one in prepared])
    first = prepared[0]
    if HeldOutRows().parts(config, first.rows)[1] is not None:
        raise ValueError("`fit_together` holds no rows out; set `Deep(validation_fraction=0)`.")
    with first.asked.session.on_device():
        scaled = [one.fit.scaled(one.rows) for one in prepared]
        data = [Table.of(rows.X, rows.Y, rows.weights) for rows in scaled]
        trained = train(
            Members.of([member for one in prepared for member in one.fit.model.each()]),
            Tables.stack(data),
            **training_settings(config),
            key=first.fit.key("train"),
        )
        members = trained.model.each()
        for number, (estimator, one) in enumerate(zip(estimators, prepared, strict=True)):
            part = members[number * config.n_members : (number + 1) * config.n_members]
            model = part[0] if len(part) == 1 else Members.of(part)
            own = dataclasses.replace(one.fit, trained_weight=data[number].total_weight)
            result = Trained(model, trained.history, trained.n_steps)
            own = with_result(own, data[number], result, scaled[number])
            estimator.fitted_ = fitted_alone(one.asked, own, one.rows, one.form)
    return list(estimators)


@dataclasses.dataclass(frozen=True, eq=False)
class _Prepared:
    """A model before its training."""

    asked: Asked
    fit: DeepFit
    rows: Rows
    form: Form

    @classmethod
    def of(cls, estimator: Any, X: Any, y: Any) -> "_Prepared":
        asked, rows, task, form = estimator.prepared(X, y)
        asked = dataclasses.replace(asked, together=True)
        named = form.named(rows.X.shape[1])
        if named.coded:
            raise ValueError(
                "`fit_together` knows no text columns of many values; leave them out, or use `fit`."
            )
        config = asked.resolved(asked.situation(len(rows), rows.X, task), task)
        fit = started(asked, rows, len(rows), task, named, config)
        fit = dataclasses.replace(fit, total_weight=float(rows.weights.sum()))
        return cls(asked, fit, rows, form)


def _check(estimators: Sequence[Any], tables: Sequence[Any]) -> None:
    if not estimators or len(estimators) != len(tables):
        raise ValueError(
            f"there must be one estimator for each table; got {len(estimators)} and {len(tables)}."
        )
    if len({id(estimator) for estimator in estimators}) < len(estimators):
        raise ValueError("each table needs an estimator of its own; one was given twice.")
    settings = [{**one.get_params(), "random_state": None, "members": None} for one in estimators]
    if any(other != settings[0] for other in settings):
        raise ValueError("the estimators must be alike but for `random_state`.")
    for table in tables:
        if not isinstance(table, tuple | list) or len(table) != 2 or isinstance(table[1], str):
            raise ValueError("each table must be a pair of arrays, inputs and targets.")
    for estimator in estimators:
        for name in ("warm_start", "checkpoint", "distributed", "callbacks"):
            if getattr(estimator, name):
                raise ValueError(f"`fit_together` knows no `{name}`; use `fit`.")
        if not isinstance(estimator.members, Deep) and estimator.members != "auto":
            raise ValueError(
                f"`fit_together` is for deep models alone; got members={estimator.members!r}."
            )
        if isinstance(estimator.members, Deep) and estimator.members.n_layers == AUTO:
            raise ValueError('`fit_together` needs a number of layers; got n_layers="auto".')


def _check_equal(what: str, numbers: list[int]) -> None:
    if len(set(numbers)) > 1:
        raise ValueError(
            f"the tables must have equal numbers of {what}; got {sorted(set(numbers))}."
        )


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
