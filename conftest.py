"""What all tests share, those in docstrings included."""

import gc
from pathlib import Path

import jax

_MAPS = Path("/proc/self/maps")
_MANY = 20_000


def pytest_runtest_teardown(item, nextitem):
    """Let go of compiled programs between modules once there are many.

    Each holds memory maps, of which Linux gives a process 65,530; one more ends it with a segmentation fault.
    """
    same_module = nextitem is not None and nextitem.path == item.path
    if same_module or not _MAPS.exists():
        return
    with _MAPS.open() as maps:
        n_maps = sum(1 for _ in maps)
    if n_maps > _MANY:
        jax.clear_caches()
        gc.collect()
