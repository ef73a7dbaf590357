"""skpro's interface: a probabilistic regressor whose predictions are the whole mixture (extra `skpro`)."""

import functools
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import check_random_state
from skpro.distributions.base import BaseDistribution
from skpro.regression.base import BaseProbaRegressor

from bochner import Constant, DeepGPRegressor, Linear
from bochner.members.whole_numbers import Rounded


class PredictedDistribution(BaseDistribution):
    """The law of the target at each row of a frame, as a fitted `DeepGPRegressor` predicts it.

    Args:
        regressor: the fitted estimator, in a `FrozenEstimator` where the distribution may be cloned.
        X: rows.
        index: of the rows; None for the law of a single number.
        columns: the name of the target, in a list; None for the law of a single number.

    Example:
        >>> import pandas as pd
        >>> from bochner import Constant, DeepGPRegressor
        >>> from bochner.estimators.integrations.skpro import PredictedDistribution
        >>> X = pd.DataFrame({"x": [1.0, 2.0, 3.0]})
        >>> model = DeepGPRegressor(Constant()).fit(X, [1.0, 2.0, 3.0])
        >>> PredictedDistribution(model, X, X.index, ["y"]).mean().round(6)["y"].tolist()
        [2.0, 2.0, 2.0]
    """

    _tags = {  # noqa: RUF012
        "capabilities:approx": ["pdfnorm", "energy"],
        "capabilities:exact": ["mean", "var", "pdf", "log_pdf", "pmf", "log_pmf", "cdf", "ppf"],
        "distr:measuretype": "continuous",
        "broadcast_init": "off",
    }

    def __init__(self, regressor: Any, X: Any, index: Any = None, columns: Any = None):
        self.regressor = regressor
        self.X = X
        super().__init__(index=index, columns=columns)
        if isinstance(self._law, Rounded):
            self.set_tags(**{"distr:measuretype": "discrete"})

    @functools.cached_property
    def _law(self) -> Any:
        return self.regressor.predict_dist(self.X).law

    def _formed(self, values: Any) -> Any:
        """Give a column, or a number for the law of one number."""
        values = np.asarray(values, np.float64)
        return values[:, None] if self.ndim else values[0]

    @staticmethod
    def _row(values: Any) -> np.ndarray:
        return np.reshape(np.asarray(values, np.float64), -1)

    def _iloc(self, rowidx: Any = None, colidx: Any = None) -> Any:
        if (
            np.ndim(rowidx) == 0
            and rowidx is not None
            and np.ndim(colidx) == 0
            and colidx is not None
        ):
            return self._iat(rowidx, colidx)
        rows = np.arange(len(self.X)) if rowidx is None else np.atleast_1d(rowidx)
        columns = self.columns if colidx is None else self.columns.take(np.atleast_1d(colidx))
        return PredictedDistribution(
            self.regressor, self.X.iloc[rows], self.index.take(rows), columns
        )

    def _iat(self, rowidx: Any = None, colidx: Any = None) -> Any:
        return PredictedDistribution(self.regressor, self.X.iloc[[rowidx]])

    def _mean(self) -> Any:
        return self._formed(self._law.moments()[0])

    def _var(self) -> Any:
        _, epistemic, aleatoric = self._law.moments()
        return self._formed(epistemic + aleatoric)

    def _log_pdf(self, x: Any) -> Any:
        return self._formed(self._law.log_density(self._row(x)))

    def _pdf(self, x: Any) -> Any:
        return np.exp(self._log_pdf(x))

    def _log_pmf(self, x: Any) -> Any:
        return self._log_pdf(x)

    def _pmf(self, x: Any) -> Any:
        return self._pdf(x)

    def _cdf(self, x: Any) -> Any:
        return self._formed(self._law.cdf(self._row(x)[None])[0])

    def _ppf(self, p: Any) -> Any:
        levels, places = np.unique(self._row(p), return_inverse=True)
        found = np.asarray(self._law.quantiles(levels))
        return self._formed(found[np.arange(len(found)), places])

    def _sample(self, n_samples: int | None = None) -> Any:
        # Of NumPy's global generator, as skpro's own distributions draw.
        seed = check_random_state(None).randint(np.iinfo(np.int32).max)
        drawn = self._law.samples(n_samples or 1, np.random.default_rng(seed))
        if self.ndim == 0:
            return drawn[0, 0] if n_samples is None else pd.DataFrame(drawn)
        parts = [
            pd.DataFrame(one[:, None], index=self.index, columns=self.columns) for one in drawn
        ]
        return parts[0] if n_samples is None else pd.concat(parts, keys=range(n_samples))

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> Any:
        """Give parameters for skpro's own checks.

        Args:
            parameter_set: which.
        """
        X = pd.DataFrame({"x": np.linspace(0, 1, 8)})
        model = DeepGPRegressor(Linear(), random_state=0).fit(X, np.sin(9 * X["x"]))
        model = FrozenEstimator(model)
        return [
            {"regressor": model, "X": X.iloc[:3], "index": pd.RangeIndex(3), "columns": pd.Index(["y"])},
            {"regressor": model, "X": X.iloc[:1]},
        ]  # fmt: skip


class MixtureRegressor(BaseProbaRegressor):
    """A `DeepGPRegressor` in skpro's interface; `predict_proba` gives the whole mixture of its members.

    Args:
        regressor: the estimator, which is cloned; None takes `DeepGPRegressor()`.

    Attributes:
        regressor_: the fitted estimator.

    Example:
        >>> import pandas as pd
        >>> from bochner import DeepGPRegressor, Linear
        >>> from bochner.estimators.integrations.skpro import MixtureRegressor
        >>> X, y = pd.DataFrame({"size": [1.0, 2.0, 3.0]}), pd.DataFrame({"price": [1.1, 1.9, 3.1]})
        >>> model = MixtureRegressor(DeepGPRegressor(Linear())).fit(X, y)
        >>> model.predict_interval(X, coverage=0.9).shape, model.predict_proba(X).pdf(y).shape
        ((3, 2), (3, 1))
    """

    _tags = {  # noqa: RUF012
        "capability:multioutput": False,
        "capability:missing": True,
        "X_inner_mtype": "pd_DataFrame_Table",
        "y_inner_mtype": "pd_DataFrame_Table",
    }

    def __init__(self, regressor: DeepGPRegressor | None = None):
        self.regressor = regressor
        super().__init__()

    def _fit(self, X: pd.DataFrame, y: pd.DataFrame) -> "MixtureRegressor":
        self._target = y.columns
        regressor: Any = DeepGPRegressor() if self.regressor is None else clone(self.regressor)
        self.regressor_ = regressor.fit(_named(X), y.iloc[:, 0])
        return self

    def _predict(self, X: pd.DataFrame) -> pd.DataFrame:
        mean = self.regressor_.predict(_named(X))
        return pd.DataFrame(mean, index=X.index, columns=self._target)

    def _predict_proba(self, X: pd.DataFrame) -> PredictedDistribution:
        frozen = FrozenEstimator(self.regressor_)
        return PredictedDistribution(frozen, _named(X), X.index, self._target)

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> Any:
        """Give parameters for skpro's own checks.

        Args:
            parameter_set: which.
        """
        return [
            {"regressor": DeepGPRegressor(member, random_state=0)}
            for member in (Linear(), Constant())
        ]


def _named(X: pd.DataFrame) -> pd.DataFrame:
    """Give columns names that are texts, as scikit-learn asks for."""
    return X.rename(columns=str)
