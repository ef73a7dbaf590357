"""Deep GPs with random features behind the baselines' interface, so that they can be looked at while they train."""

import dataclasses
import itertools
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bochner.estimators.config import Config
from bochner.estimators.fitting import training_settings
from bochner.estimators.recipes import Situation, fill
from bochner.gp.members import Members, start_members
from bochner.gp.model import DeepGP
from bochner.likelihoods import CLASSIFICATION_LIKELIHOODS, REGRESSION_LIKELIHOODS
from bochner.ops import AbstractPath
from bochner.prediction.statistics import AbstractStatistic, Posterior, Probabilities
from bochner.rows.pixels import table_for_batches
from bochner.rows.scaling import PREPROCESSINGS, InputScaling, TargetScaling
from bochner.rows.table import Table, TrainingData
from bochner.training import HeldOut, train
from experiments.baselines import GaussianMixture, Observer
from experiments.baselines.interface import ClassificationPredictor, RegressionPredictor

N_LOOKS = 20


class GaussianDraws(AbstractStatistic):
    """Mean and variance of the target in each draw, rows first."""

    def __call__(self, draws, columns):
        means, variances = draws.map(lambda likelihood, F: likelihood.moments(F))
        return {"means": means[..., 0].T, "variances": variances[..., 0].T}


@dataclasses.dataclass(frozen=True)
class RandomFeatures:
    """A deep GP with the settings of a preset, trained by the library's own loop.

    Attributes:
        preset: fills what `settings` leave open.
        settings: parameters of the estimators by name.
        many_samples_from: the step from which on the larger of two numbers of samples is used; None means half of
            the steps. The paper means half of the time, which is far later in steps.
        path: how layers are computed; None is the library's choice.
    """

    preset: str = "paper"
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    many_samples_from: int | None = None
    path: AbstractPath | None = None

    def config(self, n_rows: int, d_in: int, *, classification: bool, seed: int) -> Config:
        """Settle every setting."""
        situation = Situation(n_rows, d_in, classification)
        filled = fill(dict(self.settings), self.preset, situation)
        names = CLASSIFICATION_LIKELIHOODS if classification else REGRESSION_LIKELIHOODS
        return Config.checked({**filled, "preset": self.preset, "seed": seed}, names)

    def start(self, config: Config, d_in: int, n_functions: int, Y: np.ndarray) -> DeepGP | Members:
        """Build the model, or several."""
        likelihoods = {**REGRESSION_LIKELIHOODS, **CLASSIFICATION_LIKELIHOODS}

        def one(key: jax.Array) -> DeepGP:
            return DeepGP.start(
                config.layer_settings(d_in, n_functions),
                likelihoods[config.likelihood].from_targets(Y, config.noise_variance),
                d_in=d_in,
                feed_inputs=config.feed_inputs,
                key=key,
            )

        key = jax.random.fold_in(jax.random.key(config.seed), 1)
        return start_members(one, config.n_members, key=key)

    def train(
        self,
        config: Config,
        model: DeepGP | Members,
        data: TrainingData,
        observer: Observer | None,
        predictor: Callable[[Any], Any],
    ) -> Any:
        """Train, and show the observer the model at evenly spaced moments."""
        plan = config.plan
        if self.many_samples_from is not None:
            plan = dataclasses.replace(plan, n_mc_final_from=self.many_samples_from)
        held_out = None
        if observer is not None:
            n_steps = config.max_steps
            assert n_steps is not None  # as experiments count steps
            observer.start(n_steps)
            looks = itertools.count(1)

            def look(model: Any) -> float:
                number = next(looks)
                observer.see(round(number / N_LOOKS * n_steps), predictor(model))
                return (
                    -number
                )  # so that the latest model counts as the best, and is the one that is kept

            held_out = HeldOut(look, n_times=N_LOOKS)
        settings = {**training_settings(config), "plan": plan}
        if self.path is not None:
            settings["reparameterization"] = config.reparameterization.on(self.path)
        return train(
            model,
            data,
            **settings,
            held_out=held_out,
            key=jax.random.fold_in(jax.random.key(config.seed), 2),
        ).model


@dataclasses.dataclass(frozen=True)
class RandomFeatureRegressor(RandomFeatures):
    """Gaussian noise, one target."""

    def fit(
        self, X: np.ndarray, y: np.ndarray, *, seed: int, observer: Observer | None = None
    ) -> RegressionPredictor:
        config = self.config(len(X), X.shape[1], classification=False, seed=seed)
        scaling, targets = (
            PREPROCESSINGS[config.preprocessing](X),
            TargetScaling.standard(y[:, None]),
        )
        Y = targets(y[:, None])

        def predictor(model: DeepGP) -> RegressionPredictor:
            def predict(X_new: np.ndarray) -> GaussianMixture:
                found = posterior(model, config).map_rows(GaussianDraws(), scaling(X_new))
                law = GaussianMixture(
                    found["means"].T.astype(float), np.sqrt(found["variances"].T.astype(float))
                )
                return law.rescaled(targets.center[0], targets.scale[0])

            return predict

        model = self.start(config, X.shape[1], 1, Y)
        return predictor(self.train(config, model, Table.of(scaling(X), Y), observer, predictor))


@dataclasses.dataclass(frozen=True)
class RandomFeatureClassifier(RandomFeatures):
    """Softmax."""

    def fit(
        self, X: np.ndarray, y: np.ndarray, *, seed: int, observer: Observer | None = None
    ) -> ClassificationPredictor:
        model, config, scaling = self.fit_model(X, y, seed=seed, observer=observer)
        return probabilities(model, config, scaling)

    def fit_model(
        self, X: np.ndarray, y: np.ndarray, *, seed: int, observer: Observer | None = None
    ) -> tuple[Any, Config, InputScaling]:
        """Train, and give the model itself with its settings and the scaling of its inputs."""
        config = self.config(len(X), X.shape[1], classification=True, seed=seed)
        X = X if np.issubdtype(X.dtype, np.floating) else X.astype(np.float32)  # pixels are bytes
        scaling, Y = PREPROCESSINGS[config.preprocessing](X), np.asarray(y, np.int32)[:, None]
        model = self.start(config, X.shape[1], int(y.max()) + 1, Y)
        model = self.train(
            config,
            model,
            table_for_batches(scaling(X), Y),
            observer,
            lambda model: probabilities(model, config, scaling),
        )
        return model, config, scaling


def posterior(model: DeepGP | Members, config: Config) -> Posterior:
    """Draw the functions that a prediction averages, the same ones each time."""
    key = jax.random.fold_in(jax.random.key(config.seed), 3)
    return Posterior.draw(model, n_draws=config.n_mc_predict, key=key)


def probabilities(
    model: DeepGP | Members, config: Config, scaling: Callable[[np.ndarray], np.ndarray]
) -> ClassificationPredictor:
    """Make a predictor of class probabilities."""
    return lambda X: np.asarray(
        posterior(model, config).map_rows(Probabilities(), scaling(X)), np.float64
    )


def bound_estimates(
    model: DeepGP, config: Config, X: np.ndarray, Y: np.ndarray, *, n_estimates: int, n_rows: int
) -> list[float]:
    """Estimate the bound per row again and again, each time from other rows and one draw of the noise."""
    from bochner.gp.reparameterization import DrawWeights
    from bochner.inference.bound import estimate_bound

    generator = np.random.default_rng(config.seed)
    key = jax.random.fold_in(jax.random.key(config.seed), 4)
    size = min(n_rows, len(X))

    @jax.jit
    def estimate(X_part, Y_part, key):
        noise = model.draw_noise((1,), key=key)
        scale = len(X) / size
        return estimate_bound(
            model, X_part, Y_part, jnp.ones(size), noise, DrawWeights(), scale=scale
        ).elbo

    found = []
    for number in range(n_estimates):
        rows = generator.choice(len(X), size, replace=False)
        part = jnp.asarray(X[rows], jnp.float32), jnp.asarray(Y[rows])
        found.append(float(estimate(*part, jax.random.fold_in(key, number))) / len(X))
    return found
