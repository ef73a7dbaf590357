"""Workers that misbehave, for tests with real processes."""

import os
import signal
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


class DiesAtWork(Worker):
    """The last worker kills itself, once, when it holds its sixth batch."""

    def _gradient(self, parameters, ticket):
        is_last = self._slot == self._n_workers - 1
        if is_last and self._incarnation == 0 and ticket["position"] == 5:
            os.kill(os.getpid(), signal.SIGKILL)
        return super()._gradient(parameters, ticket)


class KillsItsServer(Worker):
    """The first worker kills the process of a shard, once, at a given batch."""

    POSITION = 152

    def _gradient(self, parameters, ticket):
        if ticket["generation"] == 1 and ticket["position"] == self.POSITION:
            pid = self._wait(self._victim().__ray_call__.remote(lambda _: os.getpid()))
            os.kill(pid, signal.SIGKILL)
        return super()._gradient(parameters, ticket)

    def _victim(self):
        return self._shards[-1]


class KillsItsCoordinator(KillsItsServer):
    """As before, the coordinator."""

    def _victim(self):
        return self._coordinator


class Broken(Worker):
    """Every worker fails."""

    def _gradient(self, parameters, ticket):
        raise ValueError("no gradient today")
