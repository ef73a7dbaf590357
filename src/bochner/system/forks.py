"""Forked processes: where JAX had started before the fork, it waits forever for threads that did not come along."""

import os

from jax._src import xla_bridge  # JAX itself offers no way to ask without starting it

_waits_forever = False


def refuse_after_fork() -> None:
    """Raise `RuntimeError` in a process that was forked after JAX had started.

    Example:
        >>> from bochner.system.forks import refuse_after_fork
        >>> refuse_after_fork()
    """
    if _waits_forever:
        raise RuntimeError(
            "this process was forked from one in which JAX had started; computing in it would never end. Fork before "
            "the first model is fitted, loaded or asked, or start processes without fork: multiprocessing's 'spawn' "
            "or 'forkserver', joblib's default. See docs/servers.md."
        )


def _note() -> None:
    global _waits_forever
    _waits_forever = _waits_forever or xla_bridge.backends_are_initialized()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note)
