"""A deep GP with random features, evaluated row by row in float64 (sections 3 and 3.3)."""

import numpy as np

from tests.reference.covariances import DEGREE


def as_float64(array) -> np.ndarray:
    return np.asarray(array, np.float64)


def draw(mean, log_var, epsilon) -> np.ndarray:
    """Mean plus standard deviation times noise."""
    return as_float64(mean) + np.sqrt(np.exp(as_float64(log_var))) * as_float64(epsilon)


def frequencies(layer, noise=None) -> np.ndarray:
    """Omega, column by column, from the name of its treatment."""
    spectrum = layer.features.spectrum
    treatment = type(spectrum).__name__
    if treatment == "PriorFixed":
        epsilon = as_float64(spectrum.epsilon)
        lengthscale = np.exp(as_float64(layer.features.kernel.log_lengthscale)) * np.ones(
            len(epsilon)
        )
        g = np.array([epsilon[i] / lengthscale[i] for i in range(len(epsilon))])
    else:
        epsilon = spectrum.epsilon if treatment == "VarFixed" else noise
        g = draw(spectrum.q_Omega.mean, spectrum.q_Omega.log_var, epsilon)
    columns = [scale * g[:, r] for r, scale in enumerate(as_float64(spectrum.scale))]
    return np.stack(columns, axis=1)


def features(name: str, x, Omega, variance: float) -> np.ndarray:
    """One row of Phi; the kernel is named as in configurations."""
    n_rf = Omega.shape[1]
    z = np.array([x @ Omega[:, r] for r in range(n_rf)])
    if name not in DEGREE:
        return np.sqrt(variance / n_rf) * np.concatenate([np.cos(z), np.sin(z)])
    activation = np.array([value ** DEGREE[name] if value > 0 else 0.0 for value in z])
    return np.sqrt(2 * variance / n_rf) * activation


def forward(names, layers, noises, X, feed_inputs: bool) -> np.ndarray:
    """One draw of the last layer's outputs; `noises` holds `(W, Omega)` of each layer."""
    outputs = []
    for x in as_float64(X):
        f = x
        for number, (name, layer, (noise_W, noise_Omega)) in enumerate(
            zip(names, layers, noises, strict=True)
        ):
            inputs = np.concatenate([f, x]) if feed_inputs and number > 0 else f
            variance = float(np.exp(as_float64(layer.features.kernel.log_variance)))
            phi = features(name, inputs, frequencies(layer, noise_Omega), variance)
            f = draw(layer.q_W.mean, layer.q_W.log_var, noise_W).T @ phi
        outputs.append(f)
    return np.array(outputs)
