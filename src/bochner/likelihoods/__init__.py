"""Likelihoods, one file each, and their names in configurations."""

from bochner.likelihoods.base import (
    AbstractClassificationLikelihood,
    AbstractLikelihood,
    AbstractRegressionLikelihood,
)
from bochner.likelihoods.bernoulli import Bernoulli
from bochner.likelihoods.gamma import Gamma
from bochner.likelihoods.gaussian import Gaussian
from bochner.likelihoods.heteroscedastic import HeteroscedasticGaussian
from bochner.likelihoods.negative_binomial import NegativeBinomial
from bochner.likelihoods.poisson import Poisson
from bochner.likelihoods.softmax import Softmax
from bochner.likelihoods.student_t import StudentT

REGRESSION_LIKELIHOODS: dict[str, type[AbstractRegressionLikelihood]] = {
    "gaussian": Gaussian,
    "heteroscedastic": HeteroscedasticGaussian,
    "student-t": StudentT,
    "poisson": Poisson,
    "negative-binomial": NegativeBinomial,
    "gamma": Gamma,
}
"""Likelihoods of numbers by the name used in configurations."""

CLASSIFICATION_LIKELIHOODS: dict[str, type[AbstractClassificationLikelihood]] = {
    "softmax": Softmax,
    "bernoulli": Bernoulli,
}
"""Likelihoods of classes by the name used in configurations."""

LIKELIHOODS: dict[str, type[AbstractLikelihood]] = {
    **REGRESSION_LIKELIHOODS,
    **CLASSIFICATION_LIKELIHOODS,
}
"""All of them."""

GAUSSIAN_NOISE = tuple(name for name, kind in REGRESSION_LIKELIHOODS.items() if kind.gaussian_noise)
"""Names of those that go with a last layer integrated out, and with members of other kinds."""

__all__ = [
    "CLASSIFICATION_LIKELIHOODS",
    "GAUSSIAN_NOISE",
    "LIKELIHOODS",
    "REGRESSION_LIKELIHOODS",
    "AbstractClassificationLikelihood",
    "AbstractLikelihood",
    "AbstractRegressionLikelihood",
    "Bernoulli",
    "Gamma",
    "Gaussian",
    "HeteroscedasticGaussian",
    "NegativeBinomial",
    "Poisson",
    "Softmax",
    "StudentT",
]
