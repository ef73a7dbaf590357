"""What the generated digits look like: deformed versions of a few digits of MNIST, and how near they stay to digits."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from bochner import datasets
from bochner.datasets.infinite_digits import N_DIGITS, N_IMAGES, N_TEST
from experiments.runner import Experiment, Job

N_SHOWN = 9
_MNIST_ROWS = 10_000


def _jobs(quick: bool) -> Iterable[Job]:
    yield {"n_images": 200 if quick else 2_000, "seed": 0}


def _run(job: Job) -> Mapping[str, Any]:
    """Classify deformed digits, and the same ones undeformed, by their nearest neighbor among other digits of MNIST."""
    data = datasets.load("mnist8m")
    known = N_TEST + N_DIGITS - np.arange(1, _MNIST_ROWS + 1)
    generator = np.random.default_rng(job["seed"])
    digits = N_TEST + generator.integers(N_DIGITS - _MNIST_ROWS, size=job["n_images"])
    versions = generator.integers(1, (N_IMAGES - N_TEST) // N_DIGITS, size=job["n_images"])
    known_images = data.X[known].astype(np.float32)

    def accuracy(index: np.ndarray) -> float:
        images = data.X[index].astype(np.float32)
        distance = np.sum(known_images**2, axis=1) - 2 * images @ known_images.T
        return float(np.mean(data.y[known[distance.argmin(axis=1)]] == data.y[index]))

    return {
        "nearest_neighbor_accuracy": accuracy(digits),
        "nearest_neighbor_accuracy_deformed": accuracy(digits + N_DIGITS * versions),
    }


def _report(records: list[dict[str, Any]], folder: Path) -> None:
    for record in records:
        Console().print(record["result"])
    quick = any(record["job"]["n_images"] < 2_000 for record in records)
    _draw(folder / f"digits{'-quick' if quick else ''}.png")


def _draw(path: Path) -> None:
    """Draw one digit of each class, and deformed versions of it to the right."""
    import matplotlib.pyplot as plt

    data = datasets.load("mnist8m")
    first = [N_TEST + int(np.flatnonzero(data.y[N_TEST:] == k)[0]) for k in range(10)]
    versions = np.concatenate([[0], 1 + 13 * np.arange(N_SHOWN)])
    index = np.array(first)[:, None] + N_DIGITS * versions[None, :]
    images = data.X[index.ravel()].reshape(10, len(versions), 28, 28)
    framed = np.pad(images, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=96)
    picture = framed.transpose(0, 2, 1, 3).reshape(10 * 30, len(versions) * 30)
    plt.imsave(path, np.repeat(np.repeat(picture, 2, axis=0), 2, axis=1), cmap="gray_r")


EXPERIMENT = Experiment(
    summary="deformed digits of the MNIST8M-like generator, drawn and classified by their neighbors",
    jobs=_jobs,
    run=_run,
    report=_report,
)
