"""What both estimators share: parameters, the way to a fit, drawn functions, saving."""

import contextlib
from abc import ABCMeta, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import jax
import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from bochner.estimators.calibrated import CalibratedMixin
from bochner.estimators.evaluated import EvaluatedMixin
from bochner.estimators.explained import ExplainedMixin
from bochner.estimators.found import FoundMixin
from bochner.estimators.functions import DrawnFunction
from bochner.estimators.learning_on import LearningOnMixin
from bochner.estimators.parameters import Parameters
from bochner.estimators.plots import PlotsMixin
from bochner.estimators.rows_in import RowsInMixin
from bochner.fitting.config import check_whole_number
from bochner.fitting.deep_fit import key_for
from bochner.fitting.inputs import check_no_weights, check_weights
from bochner.fitting.resolving import Asked
from bochner.fitting.rows import Rows
from bochner.fitting.session import Session
from bochner.fitting.sources import (
    TrainingSource,
    is_source,
    rows_with_targets,
)
from bochner.fitting.splits import AbstractSplit, split_of
from bochner.fitting.task import AbstractTask
from bochner.members.fit import Form, fit, fit_large
from bochner.members.fitted import Fitted
from bochner.members.novelty import novelty
from bochner.system.saving import ModelFileError
from bochner.tables.encoding import Encoder


class BaseDeepGP(
    RowsInMixin,
    PlotsMixin,
    ExplainedMixin,
    EvaluatedMixin,
    CalibratedMixin,
    FoundMixin,
    Parameters,
    LearningOnMixin,
    metaclass=ABCMeta,
):
    """The way to a fit, and what regression and classification predict alike."""

    fitted_: Fitted
    n_features_in_: int  # set by scikit-learn's validation

    # What the task decides.

    _classification: bool

    @abstractmethod
    def _task_of(self, y: Any, X: np.ndarray) -> AbstractTask:
        """Note the form of the targets of a first fit."""

    @abstractmethod
    def _task_of_source(self, source: TrainingSource) -> AbstractTask:
        """Note what all targets of a table have in common."""

    def _weights(self, y: Any, sample_weight: Any, X: np.ndarray) -> np.ndarray:
        """Check row weights."""
        return check_weights(sample_weight, X)

    # Fitting.

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        groups: Any = None,
        time: Any = None,
        validation: Any = None,
        ignore: Sequence[str] = (),
    ) -> Self:
        """Learn from rows of X and their targets or classes y.

        Args:
            X: rows by columns of any type, with missing values: a NumPy array, or a pandas or polars frame. Or a table
                with the name of the target's column as y: the path of a CSV, Parquet, Feather or NumPy file of any
                size, what `bochner.open_table` gives, a PyArrow dataset or table, or a frame.
            y: targets in their own units (one column or several), or classes as numbers or text, or the name of their
                column in the table X.
            sample_weight: how often each row counts.
            groups: the group of each row, or with a table the name of its column, which is not learned from. Members
                are judged on whole groups that they have not seen.
            time: when each row was, as numbers or dates, or with a table the name of its column, which is learned from
                unless it is ignored. Members are judged on the latest rows, by what they say from earlier ones.
            validation: `(X, y)`, or a table, by which members are judged in place of rows left out.
            ignore: columns of the table not to learn from.
        """
        if isinstance(y, str):
            check_no_weights(sample_weight)
            fitted = self._fit_source(X, y, groups, time, validation, ignore)
        else:
            fitted = self._fit_arrays(X, y, sample_weight, groups, time, validation)
        return self._with(fitted)

    def _with(self, fitted: Fitted) -> Self:
        self.fitted_ = fitted
        if fitted.target is not None:  # columns of a table, which scikit-learn has not seen
            self.n_features_in_ = fitted.n_columns
            vars(self)["feature_names_in_"] = np.array(fitted.names, dtype=object)
        return self

    def _before(self) -> Fitted | None:
        """What `fit` goes on from, if it does."""
        return self.fitted_ if self.warm_start and hasattr(self, "fitted_") else None

    def _fit_arrays(
        self, X: Any, y: Any, sample_weight: Any, groups: Any, time: Any, validation: Any
    ) -> Fitted:
        before = self._before()
        if before is None:
            X, form = self._learned_inputs(X)
            task = self._task_of(y, X)
        else:
            X = self._matrix(X, before.reader, gaps=False)
            task, form = before.task, Form(before.encoder, before.names, before.target)
        rows = Rows(X, task.targets(y, X), self._weights(y, sample_weight, X))
        return self._fit_rows(rows, task, form, split_of(groups, time, len(X)), validation, before)

    def _fit_rows(
        self,
        rows: Rows,
        task: AbstractTask,
        form: Form,
        split: AbstractSplit | None,
        validation: Any,
        before: Fitted | None,
    ) -> Fitted:
        asked = self._asked()
        d_in = rows.X.shape[1]
        given = None if validation is None else self._validation_rows(validation, task, form, d_in)
        if split is not None:
            split[rows.weights > 0].check()
        with asked.session.on_device():
            return fit(
                self.members,
                asked,
                rows,
                task,
                form,
                split=split,
                validation=given,
                before=before,
            )

    def _fit_source(
        self,
        source: Any,
        target: str,
        groups: str | None,
        time: str | None,
        validation: Any,
        ignore: Sequence[str],
    ) -> Fitted:
        """Learn from a table of named columns: encode them, and hold the rows in memory or stream them by size."""
        before = self._before()
        if before is not None and target != before.target:
            raise ValueError(
                f"`warm_start` goes on with the target {before.target!r}; got {target!r}."
            )
        for option, column in (("groups", groups), ("time", time)):
            if column is not None and not isinstance(column, str):
                raise ValueError(f"with a table, `{option}` is the name of one of its columns.")
        left_out = [*ignore] if groups is None else [*ignore, groups]
        found = TrainingSource.open(source, target, left_out, classification=self._classification)
        encoder = None if before is None else before.encoder
        if encoder is None:
            encoder = Encoder.learn(found.sample.select(found.inputs), found.reading)
        in_memory = found.fits_in_memory(encoder)
        if not in_memory and (groups is not None or time is not None):
            raise ValueError("`groups` and `time` need a table that fits into memory.")
        split = found.split(groups, time, classification=self._classification)
        form = Form(encoder=encoder, names=found.inputs, target=target)
        task = self._task_of_source(found) if before is None else before.task
        batches = found.encoded_batches(encoder, classification=self._classification)
        if in_memory:
            X, y = (np.concatenate(parts) for parts in zip(*batches, strict=True))
            rows = self._rows_of(X, y, task)
            return self._fit_rows(rows, task, form, split, validation, before)
        X, y = encoder(found.sample), found.sample_targets(classification=self._classification)
        asked, sample = self._asked(), self._rows_of(X, y, task)
        d_in = X.shape[1]
        given = None if validation is None else self._validation_rows(validation, task, form, d_in)
        return fit_large(
            self.members,
            asked,
            sample,
            found.places,
            found.n_rows,
            (self._rows_of(X, y, task) for X, y in batches),
            task,
            form,
            validation=given,
            before=before,
        )

    def _rows_of(self, X: np.ndarray, y: np.ndarray, task: AbstractTask) -> Rows:
        """Give rows of a table."""
        return Rows(X, task.targets(y, X), self._weights_of(y, task))

    def _weights_of(self, y: np.ndarray, task: AbstractTask) -> np.ndarray:
        return np.ones(len(y))

    def prepared(self, X: Any, y: Any) -> tuple[Asked, Rows, AbstractTask, Form]:
        """Check arrays for a fit, for those who fit in their own way: what is asked, rows, task and form."""
        X, form = self._learned_inputs(X)
        task = self._task_of(y, X)
        rows = Rows(X, task.targets(y, X), self._weights(y, None, X))
        return self._asked(), rows, task, form

    def _validation_rows(self, validation: Any, task: AbstractTask, form: Form, d_in: int) -> Rows:
        reader = form.reader(task, d_in)
        if is_source(validation, encoded=form.encoder is not None):
            X, y = rows_with_targets(reader, validation, form.target or "", gaps=False)
            return Rows(np.asarray(X), task.targets(y, X), np.ones(len(X)))
        try:
            X, y = validation
        except (TypeError, ValueError) as error:
            raise ValueError(
                "`validation` must be a pair, inputs and targets, or a table like the one fitted."
            ) from error
        X = self._matrix(X, reader, gaps=False)
        if np.isnan(X).any():
            raise ValueError("`validation` lacks values that no row of the fit lacked.")
        return Rows(X, task.targets(y, X), np.ones(len(X)))

    # Predicting.

    def on_device(self) -> contextlib.AbstractContextManager:
        """Compute on the device that was asked for."""
        return Session(device=self.device).on_device()

    def log_prob(self, X: Any, y: Any) -> np.ndarray:
        """Compute each row's log predictive density, in the units of y, or the log probability of its class.

        Args:
            X: rows.
            y: their targets or classes.

        Returns:
            One number a row: of several targets, their densities together.
        """
        rows = self.checked_rows(X, y)
        with self.on_device():
            return self._predictor_of(rows.X).log_density(rows)

    def novelty(self, X: Any) -> np.ndarray:
        """Tell how far each row is from the training rows: from 0, where they say all, to 1, where they say nothing.

        It is the share of the prior variance of the members' functions that the training rows leave open.

        Args:
            X: rows.

        Returns:
            One number a row.
        """
        X = self._checked_inputs(X)
        with self.on_device():
            return novelty(self.fitted_, X)

    def _samples(self, X: Any, n_samples: int, random_state: Any) -> np.ndarray:
        check_whole_number("n_samples", n_samples)
        X = self._checked_inputs(X)
        with self.on_device():
            drawn = self._predictor_of(X).samples(X, n_samples, self._sampling_key(random_state))
        self._warn_unless_finite(drawn)
        return drawn

    def sample_functions(self, n: int = 1, random_state: Any = None) -> list[DrawnFunction]:
        """Draw functions: callables on raw inputs, the same wherever evaluated, and differentiable.

        They give the mean of y given the function, or the probability of each class.

        Args:
            n: how many.
            random_state: seed; None takes the fitted one.

        Returns:
            So many callables: each gives `(n_rows,)` or `(n_rows, n_targets)`, or `(n_rows, n_classes)` probabilities.
        """
        check_is_fitted(self)
        check_whole_number("n", n)
        with self.on_device():
            drawn = self.fitted_.predictor.functions(n, self._sampling_key(random_state))
        return [DrawnFunction(one, self.fitted_) for one in drawn]

    def _sampling_key(self, random_state: Any) -> jax.Array:
        key = key_for("sample", self.fitted_.seed)
        if random_state is None:
            return key
        seed = check_random_state(random_state).randint(np.iinfo(np.int32).max)
        return jax.random.fold_in(key, int(seed))

    # Saving.

    def save(self, path: str | Path) -> None:
        """Write the fitted model to one file: safetensors with a JSON header, no pickle.

        Args:
            path: where to write; an existing file is replaced at once, never left half written.
        """
        from bochner.estimators.files import save

        check_is_fitted(self)
        save(self, path)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Open a model file of this kind of estimator.

        Args:
            path: a file written by `save`.

        Example:
            >>> import os, tempfile
            >>> from bochner import DeepGPClassifier, DeepGPRegressor, Linear
            >>> path = os.path.join(tempfile.mkdtemp(), "model.bochner")
            >>> DeepGPRegressor(Linear()).fit([[1.0], [2.0], [3.0]], [1.0, 2.0, 3.5]).save(path)
            >>> DeepGPRegressor.load(path).n_features_in_
            1
            >>> DeepGPClassifier.load(path)  # doctest: +ELLIPSIS
            Traceback (most recent call last):
            bochner.system.saving.ModelFileError: ... holds a DeepGPRegressor: open it by `DeepGPRegressor.load`.
        """
        from bochner.estimators.files import load

        found = load(path)
        if not isinstance(found, cls):
            kind = type(found).__name__
            raise ModelFileError(f"{path} holds a {kind}: open it by `{kind}.load`.")
        return found

    def __sklearn_is_fitted__(self) -> bool:
        return "fitted_" in vars(self)
