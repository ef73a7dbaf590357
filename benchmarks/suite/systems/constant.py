"""The least that a model must beat: one Gaussian for all rows, or the frequencies of the classes."""

import numpy as np
import pyarrow as pa

from benchmarks.suite.rows import TrainingRows
from benchmarks.suite.scores import Classes, Regression
from benchmarks.suite.systems import Clock, Prediction, Predictor
from experiments.baselines.predictive import GaussianMixture


class Constant:
    """Mean and deviation of the target, or frequencies of the classes with half a row added to each."""

    def law(self, classification: bool) -> str:
        return "frequencies" if classification else "one Gaussian"

    def fit(self, rows: TrainingRows, clock: Clock) -> Predictor:
        if rows.classes is not None:
            counts = np.bincount(rows.y, minlength=len(rows.classes)) + 0.5

            def classes(inputs: pa.Table) -> Prediction:
                return Classes(np.tile(counts / counts.sum(), (inputs.num_rows, 1)))

            return classes
        mean, deviation = rows.y.mean(), rows.y.std(ddof=1)

        def regression(inputs: pa.Table) -> Prediction:
            return Regression(GaussianMixture.of_one(np.full(inputs.num_rows, mean), deviation))

        return regression
