"""Gaussian processes of GPyTorch with inducing points: one layer (VAR-GP), or several (doubly stochastic DGP)."""

import dataclasses
from collections.abc import Callable

import gpytorch
import numpy as np
import torch
from gpytorch.models.deep_gps import DeepGP, DeepGPLayer

from bochner.rows.scaling import PREPROCESSINGS, TargetScaling
from experiments.baselines.inducing import cluster_centers
from experiments.baselines.interface import ClassificationPredictor, Observer, RegressionPredictor
from experiments.baselines.predictive import GaussianMixture

_ROWS_AT_ONCE = 250
_FEW_ROWS = 4_000
_DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
_START_VARIANCE = 1e-5
"""Of the hidden layers' inducing values, so that training starts from the mean functions, as the authors advise."""


class LinearMap(gpytorch.means.Mean):
    """A fixed linear mean function: the identity, or the leading principal components."""

    def __init__(self, projection: torch.Tensor):
        super().__init__()
        self.register_buffer("projection", projection)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        # Inputs have an axis for the outputs of the layer, which all see the same rows.
        return (x @ self.projection).diagonal(dim1=-3, dim2=-1).transpose(-1, -2)


class Layer(DeepGPLayer):
    """Independent processes with RBF kernels, ARD, and whitened inducing points."""

    def __init__(self, inducing: torch.Tensor, d_out: int | None, mean: torch.nn.Module | None):
        n_inducing, d_in = inducing.shape
        batch = torch.Size([] if d_out is None else [d_out])
        distribution = gpytorch.variational.CholeskyVariationalDistribution(
            n_inducing, batch_shape=batch
        )
        if mean is not None:
            distribution.chol_variational_covar.data.mul_(_START_VARIANCE**0.5)
        strategy = gpytorch.variational.VariationalStrategy(
            self,
            inducing.expand(*batch, n_inducing, d_in).clone(),
            distribution,
            learn_inducing_locations=True,
        )
        # The distribution would otherwise be set to the prior at the first call.
        strategy.variational_params_initialized.fill_(1)
        super().__init__(strategy, d_in, d_out)
        self.mean_module = mean or gpytorch.means.ConstantMean(batch_shape=batch)
        kernel = gpytorch.kernels.RBFKernel(batch_shape=batch, ard_num_dims=d_in)
        kernel.initialize(lengthscale=d_in**0.5)
        self.covar_module = gpytorch.kernels.ScaleKernel(kernel, batch_shape=batch)

    def forward(self, x: torch.Tensor):
        return gpytorch.distributions.MultivariateNormal(
            self.mean_module(x),  # pyright: ignore[reportArgumentType]
            self.covar_module(x),  # pyright: ignore[reportArgumentType]
        )


class Processes(DeepGP):
    """Layers in sequence; with one layer, a sparse variational Gaussian process."""

    def __init__(self, layers: list[Layer], likelihood: gpytorch.likelihoods.Likelihood):
        super().__init__()
        self.layers = torch.nn.ModuleList(layers)
        self.likelihood = likelihood

    def forward(self, x: torch.Tensor):
        for layer in self.layers:
            x = layer(x)
        return x


@dataclasses.dataclass(frozen=True)
class _Settings:
    """Sizes and training.

    Attributes:
        n_layers: 1 is a sparse variational Gaussian process.
        width: processes in a hidden layer; None takes as many as inputs, at most 30, as the DSVI paper does.
        n_steps: None takes 10,000, and 2,000 up to 4,000 rows, where twice as many changed the density by 0.01.
        n_inducing: inducing points of each layer, started at centers of the inputs' clusters.
        n_mc_train: Monte Carlo samples a step.
        n_mc_predict: draws of a prediction.
        preprocessing: scaling of the inputs.
        is_over: ends the training where, told the loss of a step, it says so; the rate then stays the same.
    """

    n_layers: int = 1
    width: int | None = None
    n_inducing: int = 100
    n_steps: int | None = None
    batch_size: int = 500
    learning_rate: float = 0.01
    n_mc_train: int = 1
    n_mc_predict: int = 100
    preprocessing: str = "robust"
    is_over: Callable[[float], bool] | None = None

    def start(
        self,
        X: np.ndarray,
        d_out: int | None,
        likelihood: gpytorch.likelihoods.Likelihood,
        seed: int,
    ) -> Processes:
        """Build the layers from scaled inputs."""
        torch.manual_seed(seed)
        inducing, layers = cluster_centers(X, self.n_inducing, seed), []
        for _ in range(self.n_layers - 1):
            d_in = inducing.shape[1]
            width = self.width or min(d_in, 30)
            projection = np.eye(d_in)
            if width < d_in:
                _, _, directions = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
                projection = directions[:width].T
            elif width > d_in:
                projection = np.eye(d_in, width)
            mean = LinearMap(_tensor(projection))
            layers.append(Layer(_tensor(inducing), width, mean))
            inducing, X = inducing @ projection, X @ projection
        layers.append(Layer(_tensor(inducing), d_out, None))
        return Processes(layers, likelihood).to(_DEVICE)

    def train(
        self,
        model: Processes,
        X: torch.Tensor,
        y: torch.Tensor,
        observer: Observer | None,
        predictor,
    ) -> None:
        """Maximize the bound with Adam, under a cosine schedule unless `is_over` finds the end."""
        objective = gpytorch.mlls.DeepApproximateMLL(
            gpytorch.mlls.VariationalELBO(model.likelihood, model, len(y))
        )
        n_steps = self.n_steps or (2_000 if len(y) <= _FEW_ROWS else 10_000)
        optimizer = torch.optim.Adam(model.parameters(), lr=self.learning_rate)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, n_steps)
        if observer is not None:
            observer.start(n_steps)
        model.train()
        for step in range(1, n_steps + 1):
            rows = torch.randint(len(y), (min(self.batch_size, len(y)),), device=y.device)
            optimizer.zero_grad(set_to_none=True)
            with gpytorch.settings.num_likelihood_samples(self.n_mc_train):
                loss = -objective(model(X[rows]), y[rows])  # pyright: ignore[reportOperatorIssue]
            loss.backward()
            optimizer.step()
            if self.is_over is None:
                schedule.step()
            elif self.is_over(loss.item()):
                break
            if observer is not None and observer.is_due(step):
                model.eval()
                observer.see(step, predictor)
                model.train()
        model.eval()

    def draws(self, model: Processes, X: torch.Tensor):
        """Give the last layer's law in each draw, in parts of the rows."""
        with torch.no_grad(), gpytorch.settings.num_likelihood_samples(self.n_mc_predict):
            for part in torch.split(X, _ROWS_AT_ONCE):
                yield model(part)


@dataclasses.dataclass(frozen=True)
class GPyTorchRegressor(_Settings):
    """Gaussian noise; targets are standardized."""

    def fit(
        self, X: np.ndarray, y: np.ndarray, *, seed: int, observer: Observer | None = None
    ) -> RegressionPredictor:
        scaling, targets = PREPROCESSINGS[self.preprocessing](X), TargetScaling.standard(y[:, None])
        likelihood = gpytorch.likelihoods.GaussianLikelihood()
        likelihood.initialize(noise=0.1)
        model = self.start(scaling(X), None, likelihood, seed)

        def predict(X_new: np.ndarray) -> GaussianMixture:
            means, deviations = [], []
            for law in self.draws(model, _tensor(scaling(X_new))):
                noisy = likelihood(law)
                means.append(noisy.mean.cpu().numpy())
                deviations.append(np.sqrt(noisy.variance.detach().cpu().numpy()))
            found = GaussianMixture(
                np.concatenate(means, axis=1).astype(float),
                np.concatenate(deviations, axis=1).astype(float),
            )
            return found.rescaled(targets.center[0], targets.scale[0])

        y_scaled = _tensor(targets(y[:, None])[:, 0])
        self.train(model, _tensor(scaling(X)), y_scaled, observer, predict)
        return predict


@dataclasses.dataclass(frozen=True)
class GPyTorchClassifier(_Settings):
    """Two classes through one process and a probit, more through as many processes and a softmax."""

    def fit(
        self, X: np.ndarray, y: np.ndarray, *, seed: int, observer: Observer | None = None
    ) -> ClassificationPredictor:
        scaling, n_classes = PREPROCESSINGS[self.preprocessing](X), int(y.max()) + 1
        if n_classes == 2:
            likelihood, d_out, dtype = (
                gpytorch.likelihoods.BernoulliLikelihood(),
                None,
                torch.float32,
            )
        else:
            likelihood, d_out, dtype = (
                gpytorch.likelihoods.SoftmaxLikelihood(num_classes=n_classes, mixing_weights=False),
                n_classes,
                torch.int64,
            )
        model = self.start(scaling(X), d_out, likelihood, seed)

        def predict(X_new: np.ndarray) -> np.ndarray:
            parts = []
            for law in self.draws(model, _tensor(scaling(X_new))):
                with torch.no_grad(), gpytorch.settings.num_likelihood_samples(1):
                    probabilities = likelihood(law).probs
                # A probit is averaged over the layer's law in closed form, a softmax by one value of each draw.
                probabilities = probabilities.reshape(
                    -1, *probabilities.shape[-2 + (n_classes == 2) :]
                )
                parts.append(probabilities.mean(dim=0).cpu().numpy())
            found = np.concatenate(parts).astype(float)
            return np.stack([1 - found, found], axis=1) if n_classes == 2 else found

        labels = torch.from_numpy(np.asarray(y)).to(_DEVICE, dtype)
        self.train(model, _tensor(scaling(X)), labels, observer, predict)
        return predict


def _tensor(array: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(np.asarray(array, np.float32)).to(_DEVICE)
