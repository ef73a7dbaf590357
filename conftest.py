"""What all tests share, those in docstrings included."""

import gc
from pathlib import Path

import jax
import pytest

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


@pytest.fixture(scope="session", autouse=True)
def the_bound_unless_asked():
    """Train small tables on the bound where a test does not ask for the evidence: that compiles in half the time."""
    from bochner.estimators import recipes  # not before the tests' import hook is in place

    patch = pytest.MonkeyPatch()
    patch.setattr(
        recipes,
        "_last_layer_can_be_integrated",
        lambda situation: situation.asked.get("objective") == "evidence",
    )
    yield
    patch.undo()
