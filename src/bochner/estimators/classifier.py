"""The scikit-learn classifier."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.validation import check_is_fitted

from bochner.estimators.base import BaseDeepGP
from bochner.estimators.calibrated import check_groups, groups_of
from bochner.fitting.inputs import (
    check_labels,
    check_number_of_classes,
    check_size_of_weights,
    check_weights,
    plain_labels,
)
from bochner.fitting.names import naming_what_was_meant
from bochner.fitting.rows import Rows
from bochner.fitting.sources import TrainingSource
from bochner.fitting.task import AbstractTask, Classification
from bochner.members.conformal import class_sets
from bochner.prediction.scores import ClassificationScores


@naming_what_was_meant
class DeepGPClassifier(ClassifierMixin, BaseDeepGP):
    """Classification with calibrated probabilities for raw tables, by deep and shallow Gaussian processes.

    By default the members that suit the size of the table are fitted, each predicts rows that it has left out, and
    these decide by which weights they predict together; `members_` shows it.

    Args:
        members: as for `DeepGPRegressor`, like all that follows but for these:
        likelihood: of deep members, by its name in `bochner.likelihoods.CLASSIFICATION_LIKELIHOODS`: `"softmax"`, or
            `"bernoulli"` for two classes. `"auto"` is `"softmax"`.
        class_weight: `"balanced"`, or a dict of weights by class; multiplies `sample_weight`.
        preset: `"auto"`, or `"paper"` and `"paper-mnist"`: a deep model alone, with exactly the settings of the paper.
        max_seconds: time for the whole fit.
        warm_start: a deep model goes on from the fitted one at the next call of `fit`.
        checkpoint: folder in which the state of a deep model's training is kept.
        checkpoint_seconds: about how often, in seconds.
        resume: go on from the newest checkpoint.
        callbacks: objects told of each record of a training.
        device: where to compute.
        distributed: trains a deep model on several devices or processes.
        random_state: seed of everything.
        verbose: True shows progress on standard error: a bar on a terminal, else lines, in notebooks, too.

    Attributes:
        classes_: the classes, in the order of the columns of `predict_proba`; the other attributes are those of
            `DeepGPRegressor`.

    Example:
        >>> from sklearn.datasets import load_iris
        >>> from bochner import DeepGPClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> model = DeepGPClassifier(random_state=0).fit(X, y)
        >>> model.score(X, y) > 0.9
        True
    """

    _classification = True

    def __init__(
        self,
        members: Any = "auto",
        *,
        preset="auto",
        likelihood="auto",
        class_weight=None,
        max_seconds=None,
        warm_start=False,
        checkpoint=None,
        checkpoint_seconds=60.0,
        resume=False,
        callbacks=None,
        device=None,
        distributed=None,
        random_state=None,
        verbose=0,
    ):
        super().__init__(
            members,
            preset=preset,
            likelihood=likelihood,
            max_seconds=max_seconds,
            warm_start=warm_start,
            checkpoint=checkpoint,
            checkpoint_seconds=checkpoint_seconds,
            resume=resume,
            callbacks=callbacks,
            device=device,
            distributed=distributed,
            random_state=random_state,
            verbose=verbose,
        )
        self.class_weight = class_weight

    def _task_of(self, y: Any, X: np.ndarray) -> Classification:
        labels = check_labels(y, X)
        task = Classification.of(labels)
        check_number_of_classes(task.labels, len(labels), "y")
        return task

    def _task_of_source(self, source: TrainingSource) -> Classification:
        texts = any(isinstance(label, str) for label in source.classes)
        task = Classification.of(np.array(list(source.classes), dtype=object if texts else None))
        # Weights that depend on how many rows each class has: from the counts, as scikit-learn does from the rows.
        per_class = compute_sample_weight(self.class_weight, task.classes)
        if isinstance(self.class_weight, str):
            rows = np.array([source.classes[label] for label in task.labels])
            per_class = source.n_rows / (len(task.labels) * rows)
        self._weights_by_class = np.asarray(per_class, np.float64)
        check_size_of_weights(self._weights_by_class)
        return task

    def _weights(self, y: Any, sample_weight: Any, X: np.ndarray) -> np.ndarray:
        of_classes = compute_sample_weight(self.class_weight, plain_labels(y))
        weights = check_weights(sample_weight, X) * of_classes
        check_size_of_weights(weights)
        return weights

    def _weights_of(self, y: np.ndarray, task: AbstractTask) -> np.ndarray:
        return self._weights_by_class[task.targets(y, y)[:, 0]]

    @property
    def classes_(self) -> np.ndarray:
        """The classes, in the order of the columns of `predict_proba`."""
        if "fitted_" not in vars(self):
            raise AttributeError("this classifier is not fitted yet, so it has no `classes_`.")
        assert isinstance(self.fitted_.task, Classification)
        return self.fitted_.task.classes

    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> "DeepGPClassifier":
        """Fit at the first call, and `update` at further ones: scikit-learn's name for it.

        Args:
            X: further rows.
            y: their classes.
            classes: all classes that will ever come; needed at the first call where its y lacks some.
            sample_weight: how often each row counts.
        """
        task = None
        if "fitted_" not in vars(self):
            task = Classification.of(
                np.asarray(y) if classes is None else np.asarray(classes),
                remedy="Name all classes in `classes`.",
            )
        return self._fit_or_update(X, y, sample_weight, task)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Predict the probability of each class, in the order of `classes_`.

        Args:
            X: rows to predict.

        Returns:
            `(n_rows, n_classes)`; rows sum to one.
        """
        X = self._checked_inputs(X)
        with self.on_device():
            found = self._predictor_of(X).probabilities(X)
        self._warn_unless_finite(found)
        return found

    def predict(self, X: Any) -> np.ndarray:
        """Predict the most probable class.

        Args:
            X: rows to predict.

        Returns:
            One class a row, as it was in the targets of the fit.
        """
        probabilities = self.predict_proba(X)
        return self.classes_[probabilities.argmax(axis=1)]

    def predict_set(self, X: Any, coverage: float = 0.9, *, groups: Any = None) -> np.ndarray:
        """Predict which classes are plausible: the most probable ones that together have the coverage, one at least.

        They carry a guarantee after `calibrate`, and none before.

        Args:
            X: rows to predict.
            coverage: probability that the class is among them.
            groups: the group of each row, for sets calibrated by group, or the name of its column in a table.

        Returns:
            Truth values, a column for each class in the order of `classes_`.
        """
        if not 0 < coverage < 1:
            raise ValueError(f"`coverage` must lie strictly between 0 and 1; got {coverage!r}.")
        check_is_fitted(self)
        labels = groups_of(self.fitted_.reader, X, groups)
        probabilities = self.predict_proba(X)
        check_groups(labels, len(probabilities))
        return class_sets(self.fitted_.calibration, probabilities, coverage, labels)

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = None) -> np.ndarray:
        """Draw classes from the predictive distribution, samples along the last axis.

        Args:
            X: rows.
            n_samples: draws for each row.
            random_state: seed; None takes the fitted one.

        Returns:
            `(n_rows, n_samples)`, of classes as they were in the targets of the fit.
        """
        return self.classes_[self._samples(X, n_samples, random_state)[:, 0]]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Compute the share of rows whose class is predicted rightly.

        Args:
            X: rows.
            y: their classes, or the name of their column.
            sample_weight: how often each row counts.
        """
        X, y = self._read_if_named(X, y)
        return super().score(X, y, sample_weight)

    def _scores_of(self, rows: Rows, groups: Sequence[str] | None = None) -> ClassificationScores:
        with self.on_device():
            predictor = self._predictor_of(rows.X)
            probabilities, density = predictor.probabilities(rows.X), predictor.log_density(rows)
        return ClassificationScores.of(rows.Y[:, 0], probabilities, density)
