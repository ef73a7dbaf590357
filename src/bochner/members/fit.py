"""From checked rows to a fitted estimator: which members, each fitted, weighed, and put together."""

import dataclasses
import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from bochner.exact.folds import folds_of_groups
from bochner.exact.kernels import Inputs
from bochner.fitting.config import check_choice
from bochner.fitting.deep_fit import DeepFit
from bochner.fitting.fingerprints import fingerprints
from bochner.fitting.held_out import HeldOutRows, Named
from bochner.fitting.inputs import check_units, target_names
from bochner.fitting.resolving import Asked
from bochner.fitting.rows import Rows
from bochner.fitting.settings import Deep
from bochner.fitting.sources import Reader
from bochner.fitting.splits import AbstractSplit
from bochner.fitting.task import AbstractTask, Classification, Regression
from bochner.fitting.training import fit_deep, fit_stream, go_on
from bochner.likelihoods import CLASSIFICATION_LIKELIHOODS, GAUSSIAN_NOISE
from bochner.members.auto import Named as NamedMembers
from bochner.members.fitted import Fitted
from bochner.members.kinds import SETTINGS
from bochner.members.predictors import AbstractRegressor, SideBySide
from bochner.members.stack import Stacked, fit_alone, fit_stack
from bochner.members.training import N_FOLDS, Sources, Training
from bochner.rows.effects import folds_by_place, in_folds
from bochner.tables.encoding import Encoder

AUTO = "auto"
_MIXABLE = (None, *GAUSSIAN_NOISE, *CLASSIFICATION_LIKELIHOODS)
"""Laws that members of other kinds than `Deep` can be mixed with."""

_MOST_BACKGROUND = 200


@dataclasses.dataclass(frozen=True)
class Form:
    """What rows look like to a user.

    Attributes:
        encoder: what made their matrix; None where it was given.
        names: of its columns, where they have some.
        target: name of the target's column.
    """

    encoder: Encoder | None = None
    names: tuple[str, ...] | None = None
    target: str | None = None

    def sources(self, d_in: int) -> Sources:
        """Which columns of the matrix belong together."""
        if self.encoder is None:
            return tuple((place,) for place in range(d_in))
        return self.encoder.sources

    def inputs(self, d_in: int) -> Inputs:
        """Which columns kernels may name, and what has become of each."""
        if self.encoder is None:
            return Inputs(tuple((place,) for place in range(d_in)), self.names or ())
        encoder, numbers = self.encoder, itertools.count()
        places = tuple(tuple(next(numbers) for _ in own) for own in encoder.sources_by_column)
        parts = {encoder.feature_names[own[0]]: i for i, own in enumerate(encoder.sources)}
        return Inputs(places, tuple(encoder.input_names), parts)

    def reader(self, task: AbstractTask, d_in: int) -> Reader:
        """How tables are read."""
        classes = task.classes if isinstance(task, Classification) else None
        return Reader(self.encoder, self.names, d_in, classes)

    def named(self, d_in: int) -> Named:
        """Names for messages."""
        names = self.names or tuple(f"column {i}" for i in range(d_in))
        if self.encoder is not None:
            return Named(tuple(self.encoder.feature_names), self.target, self.encoder.coded)
        return Named(names, self.target)


def chosen_members(members: Any, asked: Asked) -> Deep | NamedMembers | None:
    """Give the deep model that is to predict alone, or members with their names; None leaves the choice to the table.

    Example:
        >>> from bochner import Deep
        >>> from bochner.fitting.resolving import Asked
        >>> from bochner.members.fit import chosen_members
        >>> chosen_members("auto", Asked(Deep(), likelihood="poisson", seed=0))
        Deep()
    """
    if isinstance(members, str) and members == AUTO:
        paper = asked.preset != AUTO
        apart = asked.goes_on or asked.session.distributed is not None
        if paper or apart or asked.together or asked.likelihood not in _MIXABLE:
            return asked.deep
        return None
    if isinstance(members, Deep):
        return with_preset(members, asked.preset)
    kinds = tuple(SETTINGS.values())
    if isinstance(members, kinds):
        return ((type(members).__name__.lower(), members),)
    try:
        named = tuple((name, member) for name, member in members)
    except (TypeError, ValueError):
        named = ()
    if not named or not all(isinstance(n, str) and isinstance(m, kinds) for n, m in named):
        names = ", ".join(kind.__name__ for kind in kinds)
        raise ValueError(
            f'`members` must be "auto", one of {names}, or a list of pairs of a name and one of these; got {members!r}.'
        )
    if len({name for name, _ in named}) < len(named):
        raise ValueError(f"the names of `members` must differ; got {[name for name, _ in named]}.")
    return tuple(
        (name, with_preset(member, asked.preset) if isinstance(member, Deep) else member)
        for name, member in named
    )


def _check_can_be_mixed(asked: Asked, task: AbstractTask) -> None:
    """Refuse what only a deep model alone can do, before any work."""
    if asked.likelihood is not None:
        check_choice("likelihood", asked.likelihood, task.likelihoods)
        task.check_likelihood(asked.likelihood)
    if asked.likelihood not in _MIXABLE:
        raise ValueError(
            f"likelihood={asked.likelihood!r} is for a deep model alone: use `members=Deep()`, or leave it open."
        )
    if asked.session.distributed is not None:
        raise ValueError(
            "`distributed` is for a deep model alone: use `members=Deep()`, or leave it out."
        )


def with_preset(deep: Deep, preset: str) -> Deep:
    """Let a deep model that names no preset have the estimator's."""
    return deep if deep.preset is not None else Deep(**{**deep.get_params(), "preset": preset})


def fit(
    members: Any,
    asked: Asked,
    rows: Rows,
    task: AbstractTask,
    form: Form,
    *,
    split: AbstractSplit | None = None,
    validation: Rows | None = None,
    before: Fitted | None = None,
) -> Fitted:
    """Fit an estimator to rows in memory.

    Args:
        members: as a user asks for them.
        asked: likelihood, seed and session; its deep settings are for a deep model that nobody names.
        rows: checked, in their own units.
        task: of the targets.
        form: what the rows look like to the user.
        split: which rows are left out together.
        validation: rows to judge by.
        before: the fitted estimator to go on from.
    """
    chosen = chosen_members(members, asked)
    if not isinstance(chosen, Deep):
        _check_can_be_mixed(asked, task)
    named = form.named(rows.X.shape[1])
    _check_units(rows, named)
    kept = rows.weights > 0
    training = Training(
        rows[kept],
        task,
        form.sources(rows.X.shape[1]),
        asked,
        None if split is None else split[kept],
        validation,
        named,
        form.inputs(rows.X.shape[1]),
    )
    learned = rows
    if named.coded:
        # Of one text column alone all rows of a value are equal; they need not leave it together.
        folds = folds_of_groups(np.arange(len(rows)), N_FOLDS, asked.seed)
        if split is not None:
            folds[kept] = training.folds
        learned = dataclasses.replace(rows, X=in_folds(rows.X, named.coded, folds))
        training = dataclasses.replace(training, rows=learned[kept])
    if isinstance(chosen, Deep):
        asked = dataclasses.replace(asked, deep=chosen)
        held_out = HeldOutRows(validation, split=split)
        if before is not None and before.alone is not None:
            deep = go_on(asked, before.alone, learned, held_out=held_out)
        else:
            deep = fit_deep(asked, learned, task, held_out=held_out, named=named)
        own, others = held_out.parts(deep.config, learned)
        judged = None
        if others is not None and not asked.together:
            seen = own[own.weights > 0]
            judged = dataclasses.replace(training, rows=seen, split=None, given=others)
        found = _fitted(fit_deep_alone(asked, deep, judged), task, rows, asked, form)
    elif isinstance(task, Regression) and task.n_targets > 1:
        found = _fit_each_target(chosen, training, form)
    else:
        found = _fitted(fit_stack(chosen, training), task, rows, asked, form)
    judging = "given rows" if validation is not None else "" if split is None else split.in_words
    return dataclasses.replace(
        found, judging=judging, fingerprints=fingerprints(rows.X[kept], rows.Y[kept])
    )


def fit_deep_alone(asked: Asked, deep: DeepFit, judged: Training | None) -> Stacked:
    """Put a deep model in its place; several targets are not compared with simple models."""
    counts = deep.task.likelihoods[deep.config.likelihood].discrete
    comparable = deep.task.n_columns == 1 and not counts
    return fit_alone(asked, deep, judged if comparable else None)


def fitted_alone(asked: Asked, deep: DeepFit, rows: Rows, form: Form) -> Fitted:
    """Let a deep model predict alone, with nothing to judge it by."""
    return _fitted(fit_alone(asked, deep, None), deep.task, rows, asked, form)


def fit_first(members: Any, asked: Asked, rows: Rows, task: AbstractTask, form: Form) -> Fitted:
    """Fit an estimator to the first rows of several calls; a deep model alone by the bound, which can go on."""
    chosen = chosen_members(members, asked)
    if not isinstance(chosen, Deep):
        return fit(members, asked, rows, task, form)
    asked = dataclasses.replace(asked, deep=chosen, goes_on=True)
    named = form.named(rows.X.shape[1])
    _check_units(rows, named)
    folds = folds_of_groups(np.arange(len(rows)), N_FOLDS, asked.seed)
    learned = dataclasses.replace(rows, X=in_folds(rows.X, named.coded, folds))
    deep = fit_deep(asked, learned, task, named=named)
    return fitted_alone(asked, deep, rows, form)


def fit_large(
    members: Any,
    asked: Asked,
    sample: Rows,
    places: np.ndarray,
    n_rows: int,
    batches: Iterable[Rows],
    task: AbstractTask,
    form: Form,
    *,
    validation: Rows | None = None,
    before: Fitted | None = None,
) -> Fitted:
    """Fit an estimator to rows that do not fit into memory: a deep model to all of them, which may go on.

    The sample says what the columns are like; its rows stand at these places among all.
    """
    chosen = chosen_members(members, asked)
    if chosen is not None and not isinstance(chosen, Deep):
        raise ValueError(
            'a table larger than memory is learned by a deep model alone: use `members="auto"` or `Deep(...)`.'
        )
    asked = dataclasses.replace(asked, deep=chosen or asked.deep)
    named = form.named(sample.X.shape[1])
    _check_units(sample, named)
    deep, held_out = fit_stream(
        asked,
        _in_folds_by_place(sample, named.coded, places),
        n_rows,
        _marked(batches, named.coded),
        task,
        given=validation,
        named=named,
        before=None if before is None else before.alone,
    )
    # The sample may hold a few of the rows held out, of so many that they teach a simple model nothing.
    sources = form.sources(sample.X.shape[1])
    few = sample[np.flatnonzero(sample.weights > 0)[:20_000]]
    judged = None
    if held_out:
        judged = Training(few, task, sources, asked, None, held_out, named)
    with asked.session.on_device():
        stacked = fit_deep_alone(asked, deep, judged)
    return _fitted(stacked, task, sample, asked, form)


def _marked(batches: Iterable[Rows], coded: tuple[int, ...]) -> Iterator[Rows]:
    first = 0
    for rows in batches:
        yield _in_folds_by_place(rows, coded, np.arange(first, first + len(rows)))
        first += len(rows)


def _in_folds_by_place(rows: Rows, coded: tuple[int, ...], places: np.ndarray) -> Rows:
    """Mark rows, so that one of the sample is known for it when it is read again."""
    if not coded:
        return rows
    return dataclasses.replace(rows, X=in_folds(rows.X, coded, folds_by_place(places, N_FOLDS)))


def _check_units(rows: Rows, named: Named) -> None:
    check_units(rows.X, named.columns, all_rows=True)
    targets = [named.target] if named.target else target_names(rows.Y.shape[1])
    check_units(rows.Y, targets, all_rows=True)


def _fit_each_target(chosen: NamedMembers | None, training: Training, form: Form) -> Fitted:
    """Fit a stack for each of several targets."""
    found, n_targets = [], training.rows.Y.shape[1]
    for number in range(n_targets):
        given = None if training.given is None else training.given.target(number)
        session = training.asked.session.with_time_left(1 / (n_targets - number))
        one = dataclasses.replace(
            training,
            rows=training.rows.target(number),
            task=Regression(),
            asked=dataclasses.replace(training.asked, session=session),
            given=given,
        )
        found.append(fit_stack(chosen, one))
    predictors = [one.predictor for one in found]
    assert all(isinstance(one, AbstractRegressor) for one in predictors)
    standings = tuple(
        dataclasses.replace(standing, name=f"target {number}: {standing.name}")
        for number, one in enumerate(found)
        for standing in one.standings
    )
    judged = dataclasses.replace(
        found[0].judged, log_density=np.sum([one.judged.log_density for one in found], axis=0)
    )
    together = Stacked(SideBySide(tuple(predictors)), standings, judged)  # pyright: ignore[reportArgumentType]
    fitted = _fitted(together, training.task, training.rows, training.asked, form)
    summaries = [_summary(one) for one in found]
    # Targets are independent given the inputs, so that their log-likelihoods add up.
    sums = {
        name: sum(one[name] for one in summaries)
        for name in ("constant", "linear")
        if all(name in one for one in summaries)
    }
    return dataclasses.replace(fitted, summary={**fitted.summary, **sums})


def _fitted(stacked: Stacked, task: AbstractTask, rows: Rows, asked: Asked, form: Form) -> Fitted:
    deep = stacked.predictor.deep
    background = rows.X[np.random.default_rng(0).permutation(len(rows))[:_MOST_BACKGROUND]]
    return Fitted(
        task=task,
        predictor=stacked.predictor,
        d_in=rows.X.shape[1],
        seed=asked.seed,
        names=form.names,
        encoder=form.encoder,
        target=form.target,
        standings=stacked.standings,
        summary=_summary(stacked),
        total_weight=deep[0].total_weight if deep else float(rows.weights.sum()),
        background=background,
    )


def _summary(stacked: Stacked) -> dict[str, float]:
    """Sum up what left-out rows say of the whole."""
    if not len(stacked.judged.weights):
        return {}
    simple = {"constant", "frequencies", "linear"}
    found = {"log_likelihood": stacked.judged.mean, "n_rows": float(len(stacked.judged.weights))}
    for one in stacked.standings:
        kind = one.name.split(",")[0]
        if kind in simple:
            name = "linear" if kind == "linear" else "constant"
            found[name] = max(one.log_likelihood, found.get(name, -np.inf))
    return found
