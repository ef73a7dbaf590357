"""GPyTorch's processes with inducing points: one layer (SVGP), or two (doubly stochastic), until the bound is flat."""

import dataclasses

import numpy as np
import pyarrow as pa
import torch

from benchmarks.suite.rows import TrainingRows
from benchmarks.suite.scores import Classes, Regression
from benchmarks.suite.systems import Clock, Prediction, Predictor
from experiments.baselines.gpytorch_processes import GPyTorchClassifier, GPyTorchRegressor

_MOST_STEPS = 1_000_000  # time or the bound ends a training before
_BATCH_SIZE = 1_000
_STEPS_OF_A_LOOK = 100
_LEAST_GAIN, _PATIENCE = 1e-3, 5  # nats a row, and looks that do without
_SHARE_OF_ALL = 0.9
_N_DRAWS = 100


class _Flat:
    """Whether the mean bound over a hundred steps, or over all rows once, has not risen for five times as long.

    Args:
        n_rows: of the training part.
        clock: ends the training too.
    """

    def __init__(self, n_rows: int, clock: Clock):
        self._n_steps = max(_STEPS_OF_A_LOOK, n_rows // _BATCH_SIZE)
        self._clock = clock
        self._losses: list[float] = []
        self._best, self._without_gain = np.inf, 0

    def __call__(self, loss: float) -> bool:
        if not np.isfinite(loss):
            raise FloatingPointError("the bound has become non-finite.")
        self._losses.append(loss)
        if self._clock.is_over(_SHARE_OF_ALL):
            return True
        if len(self._losses) < self._n_steps:
            return False
        mean = float(np.mean(self._losses))
        self._losses.clear()
        if mean < self._best - _LEAST_GAIN:
            self._best, self._without_gain = mean, 0
        else:
            self._without_gain += 1
        return self._without_gain >= _PATIENCE


@dataclasses.dataclass(frozen=True)
class Processes:
    """A lengthscale for each column, inputs standardized; Adam at 0.01."""

    n_layers: int
    n_inducing: int

    def law(self, classification: bool) -> str:
        if classification:
            return "probabilities"
        return "Gaussian" if self.n_layers == 1 else "mixture of Gaussians"

    def fit(self, rows: TrainingRows, clock: Clock) -> Predictor:
        torch.set_num_threads(1)
        classification = rows.classes is not None
        kind = GPyTorchClassifier if classification else GPyTorchRegressor
        model = kind(
            n_layers=self.n_layers,
            n_inducing=self.n_inducing,
            n_steps=_MOST_STEPS,
            batch_size=_BATCH_SIZE,
            # The law of a single layer with Gaussian noise is the same in each draw.
            n_mc_predict=_N_DRAWS if self.n_layers > 1 or classification else 1,
            preprocessing="none",
            is_over=_Flat(len(rows), clock),
        )
        predicted = model.fit(rows.matrix.X, rows.y, seed=rows.seed)

        def predict(inputs: pa.Table) -> Prediction:
            found = predicted(rows.matrix(inputs))
            return Classes(found) if isinstance(found, np.ndarray) else Regression(found)

        return predict
