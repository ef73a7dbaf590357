"""The PyTorch contestants on a GPU: whole steps as one CUDA graph where that can be captured."""

from collections.abc import Callable

import torch

from benchmarks import gpytorch_model, torch_model
from benchmarks.configurations import Configuration

_WARM_UP_STEPS = 5


def make(configuration: Configuration, n_mc: int) -> Callable[[int], None]:
    """Give a function that runs a number of steps of the compiled model, replayed from a CUDA graph."""
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")  # TF32, as plain JAX has it
    with torch.device("cuda"):
        model = torch_model.Model(configuration, n_mc)
        step = _step(configuration, torch.compile(model, dynamic=False), model.parameters())
        return _captured(step)


def make_gpytorch(configuration: Configuration, n_mc: int) -> Callable[[int], None]:
    """Give a function that runs a number of steps of GPyTorch's model, launched one by one."""
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("highest")  # its Cholesky factors fail with TF32
    with torch.device("cuda"):
        loss, parameters = gpytorch_model.negative_bound(configuration, n_mc)
        step = _step(configuration, loss, parameters)
    return _repeated(step)


def _step(configuration: Configuration, loss: Callable, parameters) -> Callable[[], None]:
    X, Y = (torch.from_numpy(array).cuda() for array in configuration.data())
    optimizer = torch.optim.Adam(list(parameters), lr=0.01, fused=True, capturable=True)

    def step() -> None:
        with torch.device("cuda"):
            rows = torch.randint(configuration.n_rows, (configuration.batch,))
            optimizer.zero_grad(set_to_none=True)
            loss(X[rows], Y[rows]).backward()
            optimizer.step()

    return step


def _captured(step: Callable[[], None]) -> Callable[[int], None]:
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(_WARM_UP_STEPS):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return _repeated(graph.replay)


def _repeated(step: Callable[[], None]) -> Callable[[int], None]:
    def run(n_steps: int) -> None:
        for _ in range(n_steps):
            step()
        torch.cuda.synchronize()

    return run
