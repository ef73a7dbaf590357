"""Strict settings for every test: shapes and types are checked, silent broadcasting is refused."""

import jax
import pytest
from jaxtyping import install_import_hook

jax.config.update("jax_num_cpu_devices", 2)
jax.config.update("jax_numpy_rank_promotion", "raise")

# The mathematics; what faces the user checks its own inputs.
_CHECKED = (
    "ops tables rows kernels posteriors features likelihoods gp inference training.budget training.chunk "
    "training.stages prediction.statistics prediction.metrics"
)
install_import_hook([f"bochner.{name}" for name in _CHECKED.split()], "beartype.beartype")


@pytest.fixture
def key():
    return jax.random.key(0)


@pytest.fixture
def x64():
    """Run the test in double precision; the library's arrays are float64 then."""
    with jax.enable_x64(True):
        yield


@pytest.fixture
def compilations():
    """The functions compiled so far in the test, as `jit(name)`, one entry each time."""
    names: list[str] = []

    def listen(event: str, duration: float, **details: str) -> None:
        # Lowering, since what comes from the cache on disk is lowered but not compiled anew.
        if event == "/jax/core/compile/jaxpr_to_mlir_module_duration":
            names.append(details["fun_name"])

    jax.monitoring.register_event_duration_secs_listener(listen)
    yield names
    jax.monitoring.unregister_event_duration_listener(listen)
