"""The scikit-learn regressor."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from bochner.estimators.base import BaseDeepGP
from bochner.estimators.calibrated import check_groups, groups_of
from bochner.estimators.crossed import CrossedMixin
from bochner.fitting.config import check_choice
from bochner.fitting.deep_fit import key_for
from bochner.fitting.rows import Rows
from bochner.fitting.sources import TrainingSource
from bochner.fitting.task import Regression
from bochner.members.conformal import summary
from bochner.members.distribution import PredictiveDistribution
from bochner.prediction.scores import RegressionScores

_ENDS = (0.05, 0.95)
_SAMPLES_FOR_CRPS = 200


class DeepGPRegressor(RegressorMixin, BaseDeepGP, CrossedMixin):
    """Regression with honest uncertainty for raw tables, by deep and shallow Gaussian processes.

    By default the members that suit the size of the table are fitted, each predicts rows that it has left out, and
    these decide by which weights they predict together; `members_` shows it. One member alone can be asked
    for, such as the paper's model: `DeepGPRegressor(Deep(n_layers=3))`.

    Args:
        members: `"auto"`; one of `Deep(...)`, `Exact(...)`, `Landmarks(...)`, `Linear()` and `Constant()`; or a list of
            pairs of a name and a member. Nested parameters go by `members__n_layers`, or by a member's name.
        preset: `"auto"`, or `"paper"` and `"paper-mnist"`: a deep model alone, with exactly the settings of the paper.
        likelihood: law of the target. `"auto"` looks whether all targets are on a lattice, such as whole numbers, and
            lets left-out rows decide between equal noise, noise that varies and densities of free shape; `law_` says
            what it chose, and why. Or one by its name in `bochner.likelihoods.REGRESSION_LIKELIHOODS`, such as
            `"gaussian"`, `"heteroscedastic"`, `"student-t"`, `"poisson"`, `"negative-binomial"` or `"gamma"`; those
            without Gaussian noise are for deep models.
        max_seconds: time for the whole fit, compilation included.
        warm_start: a deep model goes on from the fitted one at the next call of `fit`.
        checkpoint: folder in which the state of a deep model's training is kept, the last two times; it needs a
            `random_state`.
        checkpoint_seconds: about how often, in seconds.
        resume: go on from the newest checkpoint; the result is that of a training that was never stopped.
        callbacks: objects told of each record of a training; see `bochner.training.AbstractCallback`.
        device: `"cpu"`, `"gpu"`, `"gpu:1"`; None takes JAX's default.
        distributed: `bochner.distributed.Synchronous(...)` or `Asynchronous(...)` trains a deep model on several
            devices or processes; None trains on one device.
        random_state: seed of everything.
        verbose: True shows progress on standard error: a bar on a terminal, else lines, in notebooks, too.

    Attributes:
        members_: each member with the mean log-likelihood of rows that it left out, its weight and its seconds.
        law_: what targets are taken for, and how laws of each shape did, in words.
        summary_: mean log-likelihood of left-out rows, beside a constant and a linear model.
        fitted_: all that predicts, as one value.
        config_: every setting of a deep member, with the value used.
        model_: its `DeepGP`, or `Members`.
        history_: records over its training: bound, expected log-likelihood, KL, held-out MNLL, seconds.
        elbo_: its bound on the training data at the end, in the units of y. With `omega="var-fixed"` the held epsilon
            acts as a parameter, so it is not strictly a bound on the evidence: compare models by it with care.
        n_steps_: its training steps.
        total_weight_: total weight of the rows seen.

    Example:
        >>> import numpy as np
        >>> from bochner import DeepGPRegressor
        >>> rng = np.random.default_rng(0)
        >>> X = rng.uniform(-3, 3, size=(200, 1))
        >>> y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=200)
        >>> model = DeepGPRegressor(random_state=0).fit(X, y)
        >>> mean, std = model.predict([[0.5]], return_std=True)
        >>> bool(abs(mean[0] - np.sin(0.5)) < 0.1)
        True
    """

    _classification = False

    def _task_of(self, y: Any, X: np.ndarray) -> Regression:
        return Regression.of(y)

    def _task_of_source(self, source: TrainingSource) -> Regression:
        return Regression()

    @property
    def n_targets_(self) -> int:
        """How many targets there are."""
        return self._regression.n_targets

    @property
    def _regression(self) -> Regression:
        task = self.fitted_.task
        assert isinstance(task, Regression)
        return task

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> "DeepGPRegressor":
        """Fit at the first call, and `update` at further ones: scikit-learn's name for it.

        Args:
            X: further rows.
            y: their targets.
            sample_weight: how often each row counts.
        """
        return self._fit_or_update(X, y, sample_weight, None)

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predict the mean of y, and its standard deviation, noise included, if asked.

        Args:
            X: rows to predict.
            return_std: give `(mean, std)`.

        Returns:
            Means, `(n_rows,)` or `(n_rows, n_targets)`; with `return_std` a pair of means and deviations of that shape.
        """
        found = self._summary(X, ())
        return (found["mean"], found["std"]) if return_std else found["mean"]

    def predict_summary(
        self, X: Any, quantiles: Any = (), *, groups: Any = None
    ) -> dict[str, np.ndarray]:
        """Predict `mean`, `std` and `quantiles` of y in one pass over the rows.

        Args:
            X: rows to predict.
            quantiles: levels between 0 and 1; without any there are no `quantiles`.
            groups: the group of each row, for quantiles calibrated by group, or the name of its column in a table.

        Returns:
            Arrays by name: `mean` and `std` as of `predict`, and `quantiles` with a last axis of the levels.
        """
        found = self._summary(X, _checked_levels(quantiles), groups)
        return {name: found[name] for name in ("mean", "std", "quantiles") if name in found}

    def predict_variance(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Predict the two parts of the variance of y: epistemic (of the function) and aleatoric (of the noise).

        Args:
            X: rows to predict.

        Returns:
            The epistemic and the aleatoric part, in the shape of `predict`; their sum is the variance of y.
        """
        found = self._summary(X, ())
        return found["epistemic"], found["aleatoric"]

    def predict_quantiles(self, X: Any, quantiles: Any, *, groups: Any = None) -> np.ndarray:
        """Predict quantiles of y, along the last axis.

        Args:
            X: rows to predict.
            quantiles: levels between 0 and 1.
            groups: as in `predict_summary`.

        Returns:
            `(n_rows, n_levels)` or `(n_rows, n_targets, n_levels)`, the levels in the order given.
        """
        return self._summary(X, _checked_levels(quantiles), groups)["quantiles"]

    def predict_interval(
        self, X: Any, coverage: float = 0.9, *, method: str = "model", groups: Any = None
    ) -> np.ndarray:
        """Predict central intervals of y: lower and upper end along the last axis.

        They carry a guarantee after `calibrate`, and none before.

        Args:
            X: rows to predict.
            coverage: probability that y lies inside.
            method: `"model"`, or `"cross"`: from fits without each fold (`cross_fit`). With `coverage` 1 - a these hold
                y with a probability of at least 1 - 2 a, less `sqrt(2 / n)` at most for n training rows (Barber et al.,
                2021), and of about 1 - a as a rule.
            groups: as in `predict_summary`.

        Returns:
            `(n_rows, 2)` or `(n_rows, n_targets, 2)`: lower and upper ends.
        """
        if not 0 < coverage < 1:
            raise ValueError(f"`coverage` must lie strictly between 0 and 1; got {coverage!r}.")
        check_choice("method", method, ["model", "cross"])
        if method == "cross":
            if groups is not None:
                raise ValueError('`groups` are for `method="model"` after `calibrate`.')
            return self._cross_interval(X, coverage)
        ends = [(1 - coverage) / 2, (1 + coverage) / 2]
        return self.predict_quantiles(X, ends, groups=groups)

    def predict_dist(self, X: Any) -> PredictiveDistribution:
        """Predict the whole distribution of y at each row: `mean`, `variance`, `cdf`, `ppf`, `log_prob`, `sample`.

        Args:
            X: rows to predict.

        Returns:
            One value for all rows, whose `mean`, `variance` and `std` have an entry for each.
        """
        X = self._checked_inputs(X)
        with self.on_device():
            return PredictiveDistribution(self._predictor_of(X).law(X), self.fitted_.seed)

    def _summary(self, X: Any, levels: Any, groups: Any = None) -> dict[str, np.ndarray]:
        check_is_fitted(self)
        labels = groups_of(self.fitted_.reader, X, groups)
        X = self._checked_inputs(X)
        check_groups(labels, len(X))
        with self.on_device():
            calibration = self.fitted_.calibration
            found = summary(self._predictor_of(X), calibration, X, levels, labels)
        found["std"] = np.sqrt(found["epistemic"] + found["aleatoric"])
        # Calibrated quantiles are infinite where rows are too few for finite ones.
        calibrated = {"quantiles"} if self.fitted_.calibration is not None else set()
        self._warn_unless_finite(*(v for name, v in found.items() if name not in calibrated))
        return {name: self._regression.shaped(values) for name, values in found.items()}

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = None) -> np.ndarray:
        """Draw from the predictive distribution of y, samples along the last axis.

        Args:
            X: rows.
            n_samples: draws for each row; each is one function's values plus noise.
            random_state: seed; None takes the fitted one.

        Returns:
            `(n_rows, n_samples)` or `(n_rows, n_targets, n_samples)`.
        """
        drawn = self._samples(X, n_samples, random_state)
        return self._regression.shaped(drawn)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Compute R squared of the predicted means.

        Args:
            X: rows.
            y: their targets, or the name of their column.
            sample_weight: how often each row counts.
        """
        X, y = self._read_if_named(X, y)
        return super().score(X, y, sample_weight)

    def _scores_of(self, rows: Rows, groups: Sequence[str] | None = None) -> RegressionScores:
        calibration = self.fitted_.calibration
        known = () if calibration is None else calibration.names or ()
        by_group = groups if groups is not None and set(groups) <= set(known) else None
        with self.on_device():
            predictor = self._predictor_of(rows.X)
            found = summary(predictor, calibration, rows.X, _ENDS, by_group)
            density = predictor.log_density(rows)
            key = key_for("sample", self.fitted_.seed)
            samples = predictor.samples(rows.X, _SAMPLES_FOR_CRPS, key)
        low, high = (found["quantiles"][..., i] for i in range(2))
        return RegressionScores.of(rows.Y, found["mean"], density, samples, low=low, high=high)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.non_deterministic = False
        return tags


def _checked_levels(quantiles: Any) -> np.ndarray:
    try:
        levels = np.atleast_1d(np.asarray(quantiles, np.float64))
    except (TypeError, ValueError):
        levels = np.array([np.nan])
    if levels.ndim > 1 or not np.all((levels > 0) & (levels < 1)):
        raise ValueError(f"`quantiles` must lie strictly between 0 and 1; got {quantiles!r}.")
    return levels
