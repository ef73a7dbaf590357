"""Small tables with known truth."""

import numpy as np
import pandas as pd

COLORS = {"blue": -1.5, "green": 0.0, "red": 1.5}


def additive(n=250, seed=0):
    """A sum of functions of independent columns with a little noise, and the terms."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "wave": rng.uniform(-2, 2, n),
            "line": rng.normal(size=n),
            "color": rng.choice(list(COLORS), n),
            "nothing": rng.normal(size=n),
        }
    )
    terms = terms_of(frame)
    return frame.assign(y=10 + terms.sum(axis=1) + 0.1 * rng.normal(size=n)), terms


def terms_of(frame):
    """What each column adds to the target."""
    return pd.DataFrame(
        {
            "wave": 2 * np.sin(2 * frame["wave"]),
            "line": 0.7 * frame["line"],
            "color": frame["color"].map(COLORS),
            "nothing": 0 * frame["nothing"],
        }
    )


def sectors(n=150, seed=0):
    """Classes by the first of two columns."""
    X = np.random.default_rng(seed).normal(size=(n, 2))
    return X, np.array(["low", "middle", "high"])[np.digitize(X[:, 0], [-0.6, 0.6])]
