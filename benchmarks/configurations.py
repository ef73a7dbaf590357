"""The models that are timed: A, B and C, with the sizes of the paper's experiments."""

import dataclasses

import numpy as np


@dataclasses.dataclass(frozen=True)
class Configuration:
    """A model and its batch: A for small tables, B for MNIST, C for depth."""

    name: str
    d_in: int
    n_rf: int
    width: int
    batch: int
    n_layers: int = 2
    d_out: int = 1
    feed_inputs: bool = False
    classification: bool = False
    n_rows: int = 10_000

    def data(self) -> tuple[np.ndarray, np.ndarray]:
        """Random inputs, and targets that depend on them."""
        rng = np.random.default_rng(0)
        X = rng.normal(size=(self.n_rows, self.d_in)).astype(np.float32)
        if self.classification:
            scores = X @ rng.normal(size=(self.d_in, self.d_out))
            return X, scores.argmax(axis=1, keepdims=True).astype(np.int32)
        y = np.sin(X.sum(axis=1, keepdims=True)) + 0.1 * rng.normal(size=(self.n_rows, 1))
        return X, y.astype(np.float32)


A = Configuration("A", d_in=8, n_rf=100, width=3, batch=200)
B = Configuration("B", d_in=784, n_rf=500, width=50, batch=1000, d_out=10, classification=True)
C = dataclasses.replace(A, name="C", n_layers=20, feed_inputs=True)
CONFIGURATIONS = {configuration.name: configuration for configuration in (A, B, C)}
