"""The deep model as users ask for it: its settings as a scikit-learn estimator's parameters."""

from sklearn.base import BaseEstimator

from bochner.fitting.declared import DeepSettings, declared
from bochner.fitting.names import naming_what_was_meant


@naming_what_was_meant
class Deep(DeepSettings, BaseEstimator):
    """A deep Gaussian process by random features: the model of the paper, learned by stochastic variational inference.

    It is a member of `DeepGPRegressor` and `DeepGPClassifier`: `DeepGPRegressor(Deep(n_layers=3))`. Every setting left
    at None is chosen by the preset from the size of the data; `config_` of the fitted estimator shows the choice.

    Example:
        >>> import numpy as np
        >>> from bochner import Deep, DeepGPRegressor
        >>> x = np.linspace(0, 1, 50)[:, None]
        >>> model = DeepGPRegressor(Deep(n_layers=1, max_steps=10), random_state=0).fit(x, x[:, 0])
        >>> model.config_["n_layers"]
        1
    """


def _with_arguments(text: str) -> str:
    """Write what each setting does before the example of a docstring."""
    listed = [f"        {name}: {field.metadata['text']}" for name, field in declared().items()]
    return text.replace("    Example:", "\n".join(["    Args:", *listed, "", "    Example:"]), 1)


Deep.__doc__ = _with_arguments(Deep.__doc__ or "")
