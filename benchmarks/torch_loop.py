"""The training loop that the PyTorch contestants share."""

from collections.abc import Callable, Iterable

import torch

from benchmarks.configurations import Configuration

Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def steps(
    configuration: Configuration,
    loss: Loss,
    parameters: Iterable[torch.nn.Parameter],
    n_threads: int,
) -> Callable[[int], None]:
    """Give a function that runs a number of Adam's steps on random batches, on so many threads."""
    X, Y = (torch.from_numpy(array) for array in configuration.data())
    optimizer = torch.optim.Adam(parameters, lr=0.01, fused=True)

    def run(n_steps: int) -> None:
        torch.set_num_threads(n_threads)
        for _ in range(n_steps):
            rows = torch.randint(configuration.n_rows, (configuration.batch,))
            optimizer.zero_grad(set_to_none=True)
            loss(X[rows], Y[rows]).backward()
            optimizer.step()

    return run
