"""Models of many inputs start: a regression test in a process of its own, which can be stopped if it hangs."""

import subprocess
import sys

_START = """
import jax
from bochner.features.frequencies import Orthogonal
from bochner.gp.layers import LayerSettings
from bochner.likelihoods import Gaussian
from bochner.gp.members import Members
from bochner.gp.model import DeepGP

layers = [LayerSettings(2, 900, frequencies=Orthogonal()), LayerSettings(1, 900, frequencies=Orthogonal())]

def start(key):
    return DeepGP.start(layers, Gaussian.start(1), d_in=784, feed_inputs=True, key=key)

jax.block_until_ready(Members.start(start, 4, key=jax.random.key(0)).stacked)
"""


def test_members_with_orthogonal_frequencies_of_many_inputs_start():
    subprocess.run([sys.executable, "-c", _START], check=True, timeout=90)
