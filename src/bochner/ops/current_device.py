"""The device that what is traced now will run on."""

from typing import Any

import jax


def current_device() -> Any:
    """Give JAX's default device: the one that was chosen, or the first there is.

    Example:
        >>> import jax
        >>> from bochner.ops.current_device import current_device
        >>> with jax.default_device(jax.devices("cpu")[0]):
        ...     current_device().platform
        'cpu'
    """
    chosen = jax.config.values["jax_default_device"]
    return chosen if isinstance(chosen, jax.Device) else jax.local_devices(backend=chosen)[0]
