"""Posteriors by Markov chains: what the variational answer is measured against. BlackJAX is the extra `mcmc`."""

try:
    import blackjax as _blackjax  # noqa: F401
except ImportError as error:
    raise ImportError(
        "`bochner.mcmc` needs BlackJAX: install it with `pip install blackjax`."
    ) from error

from bochner.mcmc.check import check_posterior
from bochner.mcmc.comparison import PosteriorCheck
from bochner.mcmc.diagnostics import effective_sample_size, split_rhat
from bochner.mcmc.two_layer import TwoLayerDiagnostics, TwoLayerPosterior, two_layer_posterior
from bochner.mcmc.weights import WeightDraws, sample_weights

__all__ = [
    "PosteriorCheck",
    "TwoLayerDiagnostics",
    "TwoLayerPosterior",
    "WeightDraws",
    "check_posterior",
    "effective_sample_size",
    "sample_weights",
    "split_rhat",
    "two_layer_posterior",
]
