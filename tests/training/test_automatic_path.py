"""Which path a training takes: kernels on one NVIDIA GPU where they are faster, XLA elsewhere."""

import jax
import jax.numpy as jnp
import pytest

from bochner import DeepGPRegressor
from bochner.kernels import RBF
from bochner.ops import AutomaticLayer, PallasLayer, XlaLayer
from bochner.ops.fused_layer import Precision, layer
from bochner.reparameterization import DrawWeights, LocalReparameterization
from bochner.training import engine
from tests.training.problems import short_training

NARROW = {"d_in": 8, "d_out": 3}
WIDE = {"d_in": 40, "d_out": 20}


class SeenError(Exception):
    """Carries what a training was about to run."""


def uses_kernels(path, *, d_in, d_out):
    kernel = RBF(jnp.zeros(()), jnp.zeros(()))
    arguments = (jnp.zeros((d_in, 64)),), jnp.zeros((d_in, 50)), jnp.zeros((100, d_out))
    program = jax.make_jaxpr(lambda *arrays: path.outputs(kernel, *arrays))(*arguments)
    return "pallas_call" in str(program)


@pytest.mark.parametrize(
    ("precision", "of_narrow", "of_wide"),
    [(Precision.FLOAT32, True, False), (Precision.TF32, True, True)],
)
def test_kernels_run_where_they_are_faster(precision, of_narrow, of_wide):
    path = PallasLayer(precision, interpret=True, where_faster=True)
    assert uses_kernels(path, **NARROW) == of_narrow
    assert uses_kernels(path, **WIDE) == of_wide
    assert uses_kernels(path.side_by_side(3), **WIDE) == of_wide


@pytest.mark.parametrize("on_gpu", [False, True])
@pytest.mark.parametrize("kind", [DrawWeights, LocalReparameterization])
def test_one_device_takes_kernels_on_a_gpu_alone(kind, on_gpu, monkeypatch):
    def seen(inputs, state):
        raise SeenError(inputs.reparameterization)

    monkeypatch.setattr(layer, "_on_nvidia_gpu", lambda: on_gpu)
    monkeypatch.setattr(engine, "run_chunk", seen)
    chosen = PallasLayer(Precision.TF32, where_faster=True)
    unchanged = AutomaticLayer(Precision.TF32), XlaLayer(), PallasLayer(interpret=True)
    for path in unchanged:
        with pytest.raises(SeenError) as found:
            short_training(reparameterization=kind(path))
        automatic = on_gpu and isinstance(path, AutomaticLayer)
        assert found.value.args == (kind(chosen if automatic else path),)


def test_precision_is_a_setting_of_the_estimators():
    model = DeepGPRegressor(
        precision="bfloat16", preset="paper", max_steps=2, theta_from=0, random_state=0
    )
    model.fit(jnp.arange(8.0)[:, None], jnp.arange(8.0))
    assert model.config_["precision"] == "bfloat16"


def test_an_unknown_precision_is_refused_before_any_work():
    with pytest.raises(ValueError, match=r"`precision` must be one of .*Did you mean 'float32'"):
        DeepGPRegressor(precision="float3").fit([[0.0], [1.0]], [0.0, 1.0])
