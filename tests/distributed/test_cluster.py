"""Ray is started without a word that is not for users."""

import types
import warnings

from bochner.distributed import cluster


def init(**options):
    warnings.warn("os.fork() was called. os.fork() is incompatible with ...", RuntimeWarning, 2)
    warnings.warn("This process is multi-threaded, use of fork() may lead", DeprecationWarning, 2)


def test_the_warnings_of_a_fork_at_the_start_are_not_shown(monkeypatch):
    ray = types.SimpleNamespace(is_initialized=lambda: False, init=init, shutdown=lambda: None)
    monkeypatch.setattr(cluster, "imported_ray", lambda: ray)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with cluster.connected("auto", 1) as found:
            assert found is ray
