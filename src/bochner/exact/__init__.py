"""Gaussian processes in the space of rows: exact where rows are few, on landmark rows where they are many.

NumPy, SciPy and LAPACK in double precision, and nothing that compiles: a fit of a few hundred rows takes a second or
two, which a compiler would need before it starts. Kernels, their gradients and left-out rows are written by hand for
the same reason; tests hold them against scikit-learn, SciPy, finite differences and refits.

Example:
    >>> import numpy as np
    >>> from bochner.exact import Columns, Regression
    >>> rng = np.random.default_rng(0)
    >>> age, color = rng.uniform(0, 9, 90), rng.choice(["red", "blue"], 90)
    >>> price = 20 - age + 5.0 * (color == "red") + rng.normal(size=90)
    >>> columns = Columns.learn([age, color])
    >>> model = Regression.fit(columns([age, color]), price)
    >>> law = model.predict(columns([np.array([2.0]), np.array(["red"])]))
    >>> bool(abs(law.mean[0] - 23) < 1)
    True
"""

from bochner.exact.classes import ClassPart, class_parts
from bochner.exact.columns import Columns
from bochner.exact.landmark_classes import landmark_class_parts
from bochner.exact.landmark_regression import landmark_parts
from bochner.exact.laws import Mixture
from bochner.exact.learning import Effort
from bochner.exact.mixtures import Classification, Regression
from bochner.exact.parts import Part
from bochner.exact.regression import regression_parts
from bochner.exact.rows import Rows
from bochner.exact.sizes import Sizes
from bochner.exact.stacking import stack

__all__ = [
    "ClassPart",
    "Classification",
    "Columns",
    "Effort",
    "Mixture",
    "Part",
    "Regression",
    "Rows",
    "Sizes",
    "class_parts",
    "landmark_class_parts",
    "landmark_parts",
    "regression_parts",
    "stack",
]
