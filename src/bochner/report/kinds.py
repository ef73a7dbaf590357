"""What each kind of member would reach alone, on the rows of the report."""

from typing import Any

import numpy as np

from bochner.estimators import DeepGPClassifier, DeepGPRegressor
from bochner.explaining.members import Member, members_of, predicted_mean
from bochner.fitting.rows import Rows
from bochner.prediction import metrics


def kinds_of_members(
    model: DeepGPRegressor | DeepGPClassifier, X: np.ndarray, y: np.ndarray
) -> list[dict[str, Any]]:
    """Measure the members of each kind that have weight, and all together as the last.

    Example:
        >>> import numpy as np
        >>> from bochner import Constant, DeepGPRegressor, Linear
        >>> from bochner.report.kinds import kinds_of_members
        >>> x = np.linspace(0, 1, 40)[:, None]
        >>> y = 3 * x[:, 0] + 2 * np.cos(40 * x[:, 0])
        >>> members = [("constant", Constant()), ("linear", Linear())]
        >>> model = DeepGPRegressor(members, random_state=0).fit(x, y)
        >>> found = kinds_of_members(model, x, y)
        >>> [kind["name"] for kind in found]
        ['constant', 'linear', 'all together']
        >>> bool(found[1]["error"] < found[0]["error"])
        True
    """
    targets = model.fitted_.task.targets(y, X)
    rows = Rows(X, targets, np.ones(len(X)))
    whole = Member("all together", 1.0, model.fitted_.predictor)
    return [_measured(kind, rows) for kind in (*members_of(whole.predictor), whole)]


def _measured(kind: Member, rows: Rows) -> dict[str, Any]:
    mean = predicted_mean(kind.predictor, rows.X)
    if rows.Y.dtype.kind == "i":
        error = metrics.error_rate(rows.Y[:, 0], mean.argmax(axis=1))
    else:
        error = metrics.rmse(rows.Y, mean)
    mnll = metrics.mnll(kind.predictor.log_density(rows))
    return {"name": kind.name, "weight": kind.weight, "error": error, "mnll": mnll}
