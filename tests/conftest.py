"""Strict settings for every test: shapes and types are checked, silent broadcasting is refused."""

import jax
import pytest
from jaxtyping import install_import_hook

jax.config.update("jax_num_cpu_devices", 2)
jax.config.update("jax_numpy_rank_promotion", "raise")

# The mathematics; what faces the user checks its own inputs.
_CHECKED = (
    "ops data kernels frequencies gaussians spectra reparameterization layers likelihoods "
    "model bound training.budget training.chunk training.stages prediction metrics"
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
