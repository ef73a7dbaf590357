"""A forked child is told that it would wait forever."""

import subprocess
import sys

from tests.make_model_files import FOLDER

DEEP, IN_ROWS = (str(FOLDER / f"{name}.bochner") for name in ("regressor-2", "targets-2"))

IN_A_CHILD = """
import os, signal, sys, warnings
import numpy as np
import bochner
warnings.simplefilter("ignore")
deep, in_rows = (bochner.load(path) for path in sys.argv[1:])
X = np.zeros((3, deep.n_features_in_))
if os.fork() == 0:
    signal.alarm(30)
    print(np.isfinite(in_rows.predict(np.zeros((3, in_rows.n_features_in_)))).all())
    for work in (lambda: deep.predict(X), lambda: bochner.load(sys.argv[1])):
        try:
            print(work())
        except RuntimeError as error:
            print(error)
    sys.stdout.flush()
    os._exit(0)
os._exit(os.waitstatus_to_exitcode(os.wait()[1]))
"""


def test_a_forked_child_says_that_it_would_never_end_instead_of_hanging():
    words = [sys.executable, "-c", IN_A_CHILD, DEEP, IN_ROWS]
    child = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert child.returncode == 0, child.stderr
    finite, predicted, loaded = child.stdout.splitlines()
    assert finite == "True", "models in the space of rows need no JAX to predict"
    for message in (predicted, loaded):
        assert "was forked from one in which JAX had started" in message
