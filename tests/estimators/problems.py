"""Small data and small settings, so that a test's time is a compilation and little more."""

import numpy as np

SMALL = {
    "objective": "elbo",
    "n_members": 1,
    "n_layers": 2,
    "width": 2,
    "n_random_features": 20,
    "n_mc_predict": 50,
    "n_mc_train": 1,
    "batch_size": 100,
    "max_steps": 100,
    "learning_rate": 0.02,
    "theta_from": 0,  # one stage, one program
    "random_state": 0,
}
LIKELIHOODS = ["gaussian", "heteroscedastic", "student-t", "poisson"]


def numbers(n=150, d_in=3, seed=0):
    """A smooth function of the first input, raw: columns have different units."""
    generator = np.random.default_rng(seed)
    Z = generator.normal(size=(n, d_in))
    y = np.sin(2 * Z[:, 0]) + 0.1 * generator.normal(size=n)
    return Z * [1.0, 100.0, 1e-3][:d_in] + [0.0, 50.0, 7.0][:d_in], 30.0 + 10.0 * y


def counts(n=150, seed=0):
    generator = np.random.default_rng(seed)
    X = generator.uniform(-2, 2, size=(n, 1))
    return X, generator.poisson(np.exp(1.0 + X[:, 0])).astype(float)


def classes(n=150, n_classes=3, seed=0):
    """Sectors of the plane, named by text."""
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n, 2))
    angle = np.arctan2(X[:, 1], X[:, 0]) / (2 * np.pi) + 0.5
    index = np.minimum((angle * n_classes).astype(int), n_classes - 1)
    return X, np.array(["blue", "green", "red", "white"])[index]


def step_function(n: int, seed: int):
    """Noisy points of a step from 0 to 1 at zero."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, size=(n, 1))
    return X, np.where(X[:, 0] > 0, 1.0, 0.0) + 0.02 * rng.normal(size=n)
