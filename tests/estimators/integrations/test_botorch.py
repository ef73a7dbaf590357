"""Function draws as a BoTorch model: values, gradients, batches, several outputs, a loop."""

import numpy as np
import pytest

from bochner import DeepGPRegressor, Exact, Linear

torch = pytest.importorskip("torch")
pytest.importorskip("botorch")
from botorch.acquisition import qLogExpectedImprovement  # noqa: E402
from botorch.optim import optimize_acqf  # noqa: E402
from botorch.test_functions import Branin  # noqa: E402

from bochner.estimators.integrations.botorch import FunctionDraws  # noqa: E402

N_FUNCTIONS = 8


@pytest.fixture(scope="module")
def fitted():
    X = np.random.default_rng(0).uniform(size=(12, 2))
    member = Exact(kernel="rbf", varying_noise=False)
    return DeepGPRegressor(member, random_state=0).fit(X, np.sin(5 * X[:, 0]) + X[:, 1])


@pytest.fixture(scope="module")
def model(fitted):
    return FunctionDraws(fitted, N_FUNCTIONS)


def points(*shape):
    return torch.rand(*shape, dtype=torch.double, generator=torch.Generator().manual_seed(0))


def test_values_are_those_of_the_functions_in_any_batch(fitted, model):
    X = points(3, 4, 2)
    posterior = model.posterior(X)
    functions = fitted.sample_functions(N_FUNCTIONS)
    expected = np.stack([f(X.reshape(-1, 2).numpy()) for f in functions])
    expected = np.moveaxis(expected.reshape(N_FUNCTIONS, 3, 4), 0, 1)[..., None]
    np.testing.assert_allclose(posterior.values.numpy(), expected)
    np.testing.assert_allclose(posterior.mean.numpy(), expected.mean(axis=1))
    assert posterior.rsample(torch.Size([5])).shape == (5, 3, 4, 1)


def test_values_do_not_depend_on_whether_gradients_are_wanted(model):
    X = points(4, 2)
    with_gradients = model(X.clone().requires_grad_())
    np.testing.assert_allclose(with_gradients.detach().numpy(), model(X).numpy(), rtol=1e-10)


def test_gradients_are_those_of_finite_differences(model):
    X = points(2, 1, 2).requires_grad_()
    assert torch.autograd.gradcheck(model, (X,), atol=1e-4, rtol=1e-4)


def test_second_derivatives_are_refused(model):
    X = points(2, 2).requires_grad_()
    (slope,) = torch.autograd.grad((model(X) ** 2).sum(), X, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        (slope.sum() + X.sum()).backward()


def test_several_targets_are_several_outputs():
    X = np.random.default_rng(0).uniform(size=(12, 2))
    fitted = DeepGPRegressor(Linear(), random_state=0).fit(X, X @ [[1.0, 0.0], [0.0, -2.0]])
    model, Z = FunctionDraws(fitted, N_FUNCTIONS), points(5, 2).requires_grad_()
    found = model.posterior(Z)
    assert model.num_outputs == 2
    assert found.values.shape == (N_FUNCTIONS, 5, 2)
    (slope,) = torch.autograd.grad(found.mean[:, 1].sum(), Z)
    np.testing.assert_allclose(slope, np.tile([0.0, -2.0], (5, 1)), atol=0.2)


def test_tables_of_other_types_are_refused():
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame({"a": ["u", "v"] * 5, "b": range(10)})
    fitted = DeepGPRegressor(Linear(), random_state=0).fit(X, np.arange(10.0))
    with pytest.raises(ValueError, match="columns of numbers"):
        FunctionDraws(fitted)


def test_single_precision_stays_single(model):
    X = points(2, 2).float().requires_grad_()
    found = model(X)
    found.sum().backward()
    assert (found.dtype, X.grad.dtype) == (torch.float32, torch.float32)


@pytest.mark.slow
def test_a_loop_comes_nearer_to_the_optimum_of_branin():
    from benchmarks.bayesian_optimization import function_draws, regrets

    found = regrets(Branin(negate=True), function_draws, seed=0, n_rounds=5)
    assert found[-1] < 1.0 < found[0]


@pytest.mark.slow
def test_batches_of_points_are_optimized_together(fitted):
    improvement = qLogExpectedImprovement(FunctionDraws(fitted, N_FUNCTIONS), best_f=1.0)
    bounds = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.double)
    found, value = optimize_acqf(
        improvement, bounds=bounds, q=2, num_restarts=2, raw_samples=8, options={"maxiter": 5}
    )
    assert found.shape == (2, 2)
    assert torch.isfinite(value)
