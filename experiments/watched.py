"""Deep models of the library behind the baselines' interface, which can be looked at while they train."""

import dataclasses
import itertools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from bochner import Deep, DeepGPClassifier, DeepGPRegressor
from bochner.fitting.deep_fit import DeepFit
from bochner.fitting.training import started, training_settings
from bochner.members.parts import DeepPart
from bochner.ops import AbstractBackend
from bochner.rows.pixels import table_for_batches
from bochner.rows.table import TrainingData
from bochner.training import HeldOut, train
from experiments.baselines import GaussianMixture, Observer
from experiments.baselines.interface import ClassificationPredictor, RegressionPredictor

N_LOOKS = 20


@dataclasses.dataclass(frozen=True)
class RandomFeatures:
    """A deep model with the settings of a preset, as the estimators make and train it.

    Attributes:
        preset: fills what `settings` leave open.
        settings: of the deep model, by name.
        many_samples_from: the step from which on the larger of two numbers of samples is used; None means half of
            the steps. The paper means half of the time, which is far later in steps.
        path: how layers are computed; None is the library's choice.
    """

    preset: str = "paper"
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    many_samples_from: int | None = None
    path: AbstractBackend | None = None

    def train(
        self,
        kind: type[DeepGPRegressor | DeepGPClassifier],
        X: np.ndarray,
        y: np.ndarray,
        *,
        seed: int,
        observer: Observer | None,
        predictor: Callable[[DeepFit], Any],
        data: TrainingData | None = None,
    ) -> DeepFit:
        """Train on rows, or on data of which these are some, and show the observer predictors on the way."""
        estimator = kind(Deep(**self.settings), preset=self.preset, random_state=seed)
        asked, rows, task, form = estimator.prepared(X, y)
        n_rows, named = len(rows) if data is None else data.n_rows, form.named(rows.X.shape[1])
        config = asked.resolved(asked.situation(n_rows, rows.X, task), task)
        fit = started(asked, rows, n_rows, task, named, config)
        if data is None:
            scaled = fit.scaled(rows)
            data = table_for_batches(scaled.X, scaled.Y)
        settings = training_settings(config)
        if self.many_samples_from is not None:
            plan = dataclasses.replace(config.plan, n_mc_final_from=self.many_samples_from)
            settings["plan"] = plan
        if self.path is not None:
            settings["reparameterization"] = config.reparameterization.on(self.path)

        def ready(model: Any) -> DeepFit:
            return dataclasses.replace(
                fit, model=fit.spec.ready(data, model, key=fit.key("condition"))
            )

        looks = None
        if observer is not None:
            assert config.max_steps is not None  # as experiments count steps
            looks = _looks(observer, config.max_steps, lambda model: predictor(ready(model)))
        return ready(train(fit.model, data, **settings, held_out=looks, key=fit.key("train")).model)


def _looks(observer: Observer, n_steps: int, predictor: Callable[[Any], Any]) -> HeldOut:
    """Show an observer the model at evenly spaced moments, in the place of rows that judge it."""
    observer.start(n_steps)
    numbers = itertools.count(1)

    def look(model: Any) -> float:
        number = next(numbers)
        observer.see(round(number / N_LOOKS * n_steps), predictor(model))
        return -number  # so that the latest model counts as the best, and is the one that is kept

    return HeldOut(look, n_times=N_LOOKS)


@dataclasses.dataclass(frozen=True)
class RandomFeatureRegressor(RandomFeatures):
    """For one target with Gaussian noise."""

    def fit(
        self, X: np.ndarray, y: np.ndarray, *, seed: int, observer: Observer | None = None
    ) -> RegressionPredictor:
        """Learn from rows."""
        asked = {"seed": seed, "observer": observer, "predictor": mixtures}
        return mixtures(self.train(DeepGPRegressor, X, y, **asked))


@dataclasses.dataclass(frozen=True)
class RandomFeatureClassifier(RandomFeatures):
    """For indices of classes."""

    def fit(
        self, X: np.ndarray, y: np.ndarray, *, seed: int, observer: Observer | None = None
    ) -> ClassificationPredictor:
        """Learn from rows."""
        return probabilities(self.fit_model(X, y, seed=seed, observer=observer))

    def fit_model(
        self,
        X: np.ndarray,
        y: np.ndarray,
        *,
        seed: int,
        observer: Observer | None = None,
        data: TrainingData | None = None,
    ) -> DeepFit:
        """Learn from rows, or from data of which these are some, and give the model itself."""
        asked = {"seed": seed, "observer": observer, "predictor": probabilities, "data": data}
        return self.train(DeepGPClassifier, X, y, **asked)


def mixtures(fit: DeepFit) -> RegressionPredictor:
    """Make a predictor of laws."""

    def predict(X: np.ndarray) -> GaussianMixture:
        law = DeepPart(fit).law(X)
        return GaussianMixture(law.means, law.deviations)

    return predict


def probabilities(fit: DeepFit) -> ClassificationPredictor:
    """Make a predictor of class probabilities."""
    return DeepPart(fit).probabilities
