"""BoTorch's interface: a model whose posterior is made of function draws, with gradients (extra `botorch`)."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
from botorch.models.ensemble import EnsembleModel
from torch import Tensor
from torch.autograd.function import once_differentiable

from bochner.estimators import DeepGPRegressor


class FunctionDraws(EnsembleModel):
    """A fitted regressor as a BoTorch model: functions drawn once, jointly consistent at all points.

    Acquisition functions that draw samples take it, in batches and for several targets: `qLogExpectedImprovement`,
    `qUpperConfidenceBound` and the like. It learns nothing: fit the regressor again where there are new observations.

    Args:
        model: a fitted `DeepGPRegressor` of columns of numbers.
        n_functions: how many functions are drawn.
        random_state: seed; None takes the fitted one.

    Example:
        >>> import numpy as np, torch
        >>> from botorch.acquisition import qLogExpectedImprovement
        >>> from bochner import DeepGPRegressor, Exact
        >>> from bochner.estimators.integrations.botorch import FunctionDraws
        >>> X = np.linspace(0, 1, 12)[:, None]
        >>> y = np.sin(6 * X[:, 0])
        >>> model = FunctionDraws(DeepGPRegressor(Exact(kernel="rbf")).fit(X, y), n_functions=16)
        >>> improvement = qLogExpectedImprovement(model, best_f=0.5)
        >>> places = torch.rand(5, 1, 1, dtype=torch.double, requires_grad=True)
        >>> improvement(places).sum().backward()
        >>> improvement(places).shape, places.grad.shape
        (torch.Size([5]), torch.Size([5, 1, 1]))
    """

    def __init__(self, model: DeepGPRegressor, n_functions: int = 64, random_state: Any = None):
        super().__init__()
        if model.fitted_.encoder is not None:
            raise ValueError(
                "an optimizer moves in columns of numbers; this model was fitted to a table with columns of other "
                "types. Fit it to an array of numbers."
            )
        self._functions = model.sample_functions(n_functions, random_state)
        self._num_outputs = model.n_targets_

    @property
    def batch_shape(self) -> torch.Size:
        """The shape of a batch of models: there is one."""
        return torch.Size()

    def forward(self, X: Tensor) -> Tensor:
        """Evaluate the functions at points.

        Args:
            X: points, `batch_shape x q x d`.

        Returns:
            Values, `batch_shape x n_functions x q x n_targets`.
        """
        points = X.reshape(-1, X.shape[-1])
        values: Any = _Evaluated.apply(points, self._functions)
        shaped = values.reshape(len(self._functions), *X.shape[:-1], self._num_outputs)
        return torch.movedim(shaped, 0, -3)


class _Evaluated(torch.autograd.Function):
    """Functions of JAX at the rows of a matrix, one after the other."""

    @staticmethod
    def forward(ctx: Any, X: Tensor, functions: list[Callable[[Any], Any]]) -> Tensor:
        """Evaluate, and keep what derivatives need."""
        rows = X.detach().cpu().numpy().astype(np.float64)
        if not ctx.needs_input_grad[0]:
            values = np.stack([function(rows) for function in functions])
            return torch.as_tensor(values).to(X)
        with jax.enable_x64(True):
            pairs = [jax.vjp(function, jnp.asarray(rows)) for function in functions]
            values = np.stack([np.asarray(value) for value, _ in pairs])
        ctx.pull_backs = [pull_back for _, pull_back in pairs]
        return torch.as_tensor(values).to(X)

    @staticmethod
    @once_differentiable  # second derivatives are refused, where they would be cut off
    def backward(ctx: Any, *outputs: Tensor) -> tuple[Any, ...]:
        """Multiply by the Jacobian of each function."""
        (slopes,) = outputs
        with jax.enable_x64(True):
            given = [jnp.asarray(one) for one in slopes.detach().cpu().numpy().astype(np.float64)]
            pulled = zip(ctx.pull_backs, given, strict=True)
            found = sum(np.asarray(pull_back(one)[0]) for pull_back, one in pulled)
        return torch.as_tensor(found).to(slopes), None
