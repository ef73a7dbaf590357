"""A training step of GPyTorch's deep Gaussian process: inducing points, doubly stochastic inference."""

from collections.abc import Callable

import gpytorch
import torch
from gpytorch.models.deep_gps import DeepGP, DeepGPLayer

from benchmarks.configurations import Configuration
from benchmarks.torch_loop import steps

N_INDUCING = 128


class Layer(DeepGPLayer):
    """A layer of independent processes with an RBF kernel and inducing points of their own."""

    def __init__(self, d_in: int, d_out: int | None, *, linear_mean: bool):
        batch_shape = torch.Size([] if d_out is None else [d_out])
        distribution = gpytorch.variational.CholeskyVariationalDistribution(
            N_INDUCING, batch_shape=batch_shape
        )
        strategy = gpytorch.variational.VariationalStrategy(
            self,
            torch.randn(*batch_shape, N_INDUCING, d_in),
            distribution,
            learn_inducing_locations=True,
        )
        super().__init__(strategy, d_in, d_out)
        means = gpytorch.means
        self.mean_module = means.LinearMean(d_in) if linear_mean else means.ConstantMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(
            gpytorch.kernels.RBFKernel(batch_shape=batch_shape, ard_num_dims=d_in),
            batch_shape=batch_shape,
        )

    def forward(self, x: torch.Tensor):
        return gpytorch.distributions.MultivariateNormal(
            self.mean_module(x),  # pyright: ignore[reportArgumentType]
            self.covar_module(x),  # pyright: ignore[reportArgumentType]
        )


class TwoLayers(DeepGP):
    """One hidden layer of the configuration's width."""

    def __init__(self, configuration: Configuration):
        super().__init__()
        self.hidden = Layer(configuration.d_in, configuration.width, linear_mean=True)
        self.last = Layer(configuration.width, None, linear_mean=False)
        self.likelihood = gpytorch.likelihoods.GaussianLikelihood()

    def forward(self, x: torch.Tensor):
        return self.last(self.hidden(x))


def negative_bound(configuration: Configuration, n_mc: int):
    """Give the loss of a batch, and the parameters that it depends on."""
    model = TwoLayers(configuration)
    objective = gpytorch.mlls.DeepApproximateMLL(
        gpytorch.mlls.VariationalELBO(model.likelihood, model, configuration.n_rows)
    )

    def loss(X: torch.Tensor, Y: torch.Tensor) -> torch.Tensor:
        with gpytorch.settings.num_likelihood_samples(n_mc):
            return -objective(model(X), Y[:, 0])  # pyright: ignore[reportOperatorIssue]

    return loss, model.parameters()


def make(configuration: Configuration, n_mc: int, *, n_threads: int) -> Callable[[int], None]:
    """Give a function that runs a number of steps on so many threads."""
    torch.manual_seed(0)
    return steps(configuration, *negative_bound(configuration, n_mc), n_threads)
