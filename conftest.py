"""What all tests share, those in docstrings included."""

import gc
import importlib.util
import os
from pathlib import Path

# Most of the suite's time is compilation of small programs, the same in all of its processes, those that tests start
# included. JAX reads these when it is imported.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(__file__).parent / ".pytest_cache/jax"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")

import jax
import pytest

# Their examples are run where these libraries are installed, which the development extras leave out.
collect_ignore = [
    f"src/bochner/estimators/integrations/{library}.py"
    for library in ("botorch", "skpro")
    if importlib.util.find_spec(library) is None
]

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


@pytest.fixture(autouse=True, scope="module")
def exact_models_on_one_thread(request):
    """Fit models in the space of rows on one thread, as estimators do: matrices are small, and cores are shared."""
    if "exact" not in request.path.parts:
        yield
        return
    # Not before the tests' own settings, which look into modules as they are imported.
    from bochner.system.threads import blas_on_one_thread

    with blas_on_one_thread():
        yield
