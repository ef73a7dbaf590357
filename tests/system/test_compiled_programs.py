import os
import subprocess
import sys

from bochner.system.compiled_programs import SWITCH, cache_folder

COMPILE = """
import jax
from bochner.system.compiled_programs import keep_compiled_programs
hits = []
jax.monitoring.register_event_listener(lambda name, **_: hits.append(name.endswith("cache_hits")))
keep_compiled_programs()
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
jax.jit(lambda x: jax.numpy.sin(x) + 1)(2.0)
print(jax.config.values["jax_compilation_cache_dir"], sum(hits))
"""
FIT = """
import jax
import numpy as np
from bochner import DeepGPRegressor
x = np.arange(10.0)[:, None]
DeepGPRegressor().fit(x, x[:, 0])
print(jax.config.values["jax_compilation_cache_dir"])
"""


def run(code, cache, **variables):
    kept = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    environment = {**kept, "BOCHNER_CACHE": str(cache), **variables}
    found = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    return found.stdout.split()


def test_programs_are_kept_below_the_cache_folder_and_found_by_the_next_process(tmp_path):
    folder, hits = run(COMPILE, tmp_path)
    assert folder.startswith(str(tmp_path))
    assert hits == "0"
    assert any(path.name.endswith("-cache") for path in tmp_path.rglob("*"))
    again, hits = run(COMPILE, tmp_path)
    assert again == folder
    assert int(hits) > 0


def test_a_fit_keeps_them_unless_the_switch_is_off(tmp_path):
    assert run(FIT, tmp_path)[0].startswith(str(tmp_path))
    assert run(FIT, tmp_path / "other", **{SWITCH: "0"}) == ["None"]
    assert not (tmp_path / "other").exists()


def test_a_folder_that_cannot_be_made_is_left_alone(tmp_path):
    (tmp_path / "file").write_text("")
    assert run(COMPILE, tmp_path / "file") == ["None", "0"]


def test_a_place_that_jax_has_already_stays(tmp_path):
    own = str(tmp_path / "own")
    assert run(COMPILE, tmp_path, JAX_COMPILATION_CACHE_DIR=own)[0] == own


def test_the_folder_can_be_named(monkeypatch, tmp_path):
    monkeypatch.setenv("BOCHNER_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path
