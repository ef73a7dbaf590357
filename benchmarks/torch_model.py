"""The same training step in PyTorch, eager and compiled."""

import itertools
import math
from collections.abc import Callable

import torch

from benchmarks.configurations import Configuration
from benchmarks.torch_loop import steps


class Layer(torch.nn.Module):
    """A layer with VAR-FIXED frequencies; all Monte Carlo samples go through batched products."""

    def __init__(self, d_in: int, n_rf: int, d_out: int):
        super().__init__()
        log_lengthscale = 0.5 * math.log(d_in)
        self.scale = 1 / math.sqrt(n_rf)
        self.log_variance = torch.nn.Parameter(torch.zeros(()))
        self.log_lengthscale = torch.nn.Parameter(torch.full((d_in, 1), log_lengthscale))
        self.omega_mean = torch.nn.Parameter(torch.zeros(d_in, n_rf))
        self.omega_log_var = torch.nn.Parameter(torch.full((d_in, n_rf), -2 * log_lengthscale))
        self.w_mean = torch.nn.Parameter(torch.zeros(2 * n_rf, d_out))
        self.w_log_var = torch.nn.Parameter(torch.zeros(2 * n_rf, d_out))
        self.epsilon = torch.nn.Buffer(torch.randn(d_in, n_rf))

    def forward(self, F: torch.Tensor, n_mc: int) -> torch.Tensor:
        Omega = self.omega_mean + torch.exp(0.5 * self.omega_log_var) * self.epsilon
        Z = F @ Omega
        Phi = torch.cat([torch.cos(Z), torch.sin(Z)], dim=-1)
        noise = torch.randn(n_mc, *self.w_mean.shape, device=self.w_mean.device)
        W = self.w_mean + torch.exp(0.5 * self.w_log_var) * noise
        return Phi @ (torch.exp(0.5 * self.log_variance) * self.scale * W)

    def kl(self) -> torch.Tensor:
        return _kl(self.w_mean, self.w_log_var) + _kl(
            self.omega_mean, self.omega_log_var, -2 * self.log_lengthscale
        )


def _kl(
    mean: torch.Tensor, log_var: torch.Tensor, prior_log_var: torch.Tensor | float = 0.0
) -> torch.Tensor:
    log_ratio = log_var - prior_log_var
    scaled = mean**2 * torch.exp(-torch.as_tensor(prior_log_var))
    return 0.5 * torch.sum(torch.exp(log_ratio) - log_ratio - 1 + scaled)


class Model(torch.nn.Module):
    """The negative bound of a deep Gaussian process."""

    def __init__(self, configuration: Configuration, n_mc: int):
        super().__init__()
        c = self.configuration = configuration
        self.n_mc = n_mc
        sizes = [c.d_in, *[c.width] * (c.n_layers - 1), c.d_out]
        self.layers = torch.nn.ModuleList(
            Layer(d_in + (c.d_in if c.feed_inputs and i > 0 else 0), c.n_rf, d_out)
            for i, (d_in, d_out) in enumerate(itertools.pairwise(sizes))
        )
        self.log_noise = torch.nn.Parameter(torch.full((c.d_out,), -2.0))

    def forward(self, X: torch.Tensor, Y: torch.Tensor) -> torch.Tensor:
        # The first layer's features carry no sample axis, so that all samples share them.
        F = X
        for i, layer in enumerate(self.layers):
            if self.configuration.feed_inputs and i > 0:
                F = torch.cat([F, X.expand(self.n_mc, *X.shape)], dim=-1)
            F = layer(F, self.n_mc)
        ell = torch.sum(torch.mean(self._log_likelihood(F, Y), dim=0))
        kl = sum(layer.kl() for layer in self.layers)  # pyright: ignore[reportCallIssue]
        return kl - self.configuration.n_rows / self.configuration.batch * ell

    def _log_likelihood(self, F: torch.Tensor, Y: torch.Tensor) -> torch.Tensor:
        if self.configuration.classification:
            index = Y.long().expand(self.n_mc, *Y.shape)
            return torch.gather(torch.log_softmax(F, dim=-1), 2, index)[..., 0]
        squared = (Y - F) ** 2 * torch.exp(-self.log_noise)
        return -0.5 * torch.sum(squared + self.log_noise + math.log(2 * math.pi), dim=-1)


def make(
    configuration: Configuration, n_mc: int, *, n_threads: int, compiled: bool
) -> Callable[[int], None]:
    """Give a function that runs a number of steps on so many threads."""
    torch.manual_seed(0)
    model = Model(configuration, n_mc)
    negative_bound = torch.compile(model, dynamic=False) if compiled else model
    return steps(configuration, negative_bound, model.parameters(), n_threads)
