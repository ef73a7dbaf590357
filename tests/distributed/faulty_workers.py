"""Workers that misbehave, for tests with real processes."""

import time

import numpy as np

from bochner.distributed.worker import Worker


class TenTimesSlower(Worker):
    """The first worker takes ten times as long as its gradients do, and a little more."""

    def _gradient(self, parameters, ticket):
        started = time.monotonic()
        result = super()._gradient(parameters, ticket)
        if self._slot == 0:
            time.sleep(9 * (time.monotonic() - started) + 0.05)
        return result


class NotFinite(Worker):
    """The first worker's gradients are not finite."""

    def _gradient(self, parameters, ticket):
        gradient, bound = super()._gradient(parameters, ticket)
        return (np.full_like(gradient, np.nan) if self._slot == 0 else gradient), bound


class Broken(Worker):
    """Every worker fails."""

    def _gradient(self, parameters, ticket):
        raise ValueError("no gradient today")
