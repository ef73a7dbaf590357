"""Where inducing points start: at centers of clusters of the inputs."""

import numpy as np
from sklearn.cluster import MiniBatchKMeans


def cluster_centers(X: np.ndarray, n_centers: int, seed: int) -> np.ndarray:
    """Find so many centers, or as many as there are rows."""
    clusters = MiniBatchKMeans(min(n_centers, len(X)), random_state=seed, n_init="auto").fit(X)
    return np.asarray(clusters.cluster_centers_, np.float64)
