"""Compiled programs kept between processes, so that a second fit of a like size compiles nothing."""

import hashlib
import os
import platform
from pathlib import Path

import jax

SWITCH = "BOCHNER_KEEP_PROGRAMS"
"""Environment variable: with `0` none are kept."""

_MOST_BYTES = 1_000_000_000
_WORTH_KEEPING = 0.2  # seconds of compilation


def keep_compiled_programs() -> None:
    """Let JAX keep what it compiles in the user's folder for caches, unless it has a place for it or may not.

    Several processes may use the folder at a time; what was not used for longest goes when there is more than a
    gigabyte. A folder that cannot be written is left alone.

    Example:
        >>> import os
        >>> from bochner.system.compiled_programs import SWITCH, keep_compiled_programs
        >>> os.environ[SWITCH] = "0"
        >>> keep_compiled_programs()
        >>> del os.environ[SWITCH]
    """
    folder = cache_folder() / f"programs-{_processor()}"
    if os.environ.get(SWITCH) == "0" or jax.config.values["jax_compilation_cache_dir"] is not None:
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return
    if not os.access(folder, os.W_OK):
        return
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_compilation_cache_max_size", _MOST_BYTES)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", _WORTH_KEEPING)


def cache_folder() -> Path:
    """Tell where downloads and programs are kept: the folder in `BOCHNER_CACHE`, else one in the user's caches."""
    named = os.environ.get("BOCHNER_CACHE")
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bochner"


def _processor() -> str:
    """Tell processors apart: machines that share a home must not share programs for the other's instructions."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        described = next((line for line in lines if line.startswith(("flags", "Features"))), "")
    except OSError:
        described = ""
    described += platform.machine() + platform.processor()
    return hashlib.sha256(described.encode()).hexdigest()[:12]
