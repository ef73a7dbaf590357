"""Which path a training takes: kernels on one NVIDIA GPU where they are faster, XLA elsewhere."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bochner import Deep, DeepGPRegressor
from bochner.distributed import Asynchronous
from bochner.fitting.config import Config
from bochner.fitting.recipes import Situation, fill
from bochner.gp.reparameterization import DrawWeights, LocalReparameterization
from bochner.kernels import RBF
from bochner.ops import PRECISIONS, AutomaticLayer, PallasLayer, XlaLayer
from bochner.ops.fused_layer import Precision, layer
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

    monkeypatch.setattr(layer, "_has_kernels", lambda _: on_gpu)
    monkeypatch.setattr(engine, "run_chunk", seen)
    chosen = PallasLayer(Precision.TF32, where_faster=True)
    unchanged = AutomaticLayer(Precision.TF32), XlaLayer(), PallasLayer(interpret=True)
    for path in unchanged:
        with pytest.raises(SeenError) as found:
            short_training(reparameterization=kind(path))
        automatic = on_gpu and isinstance(path, AutomaticLayer)
        assert found.value.args == (kind(chosen if automatic else path),)


@dataclasses.dataclass
class Device:
    """What is asked of a device."""

    device_kind: str
    compute_capability: str = "0.0"


@pytest.mark.parametrize(
    ("device", "expected"),
    [
        (Device("NVIDIA H200", "9.0"), True),
        (Device("NVIDIA GeForce RTX 3090", "8.6"), True),
        (Device("NVIDIA RTX PRO 6000", "12.0"), True),
        (Device("NVIDIA GeForce RTX 2080", "7.5"), False),
        (Device("AMD Instinct MI300X", "9.4"), False),
        (Device("cpu"), False),
    ],
    ids=lambda value: value.device_kind if isinstance(value, Device) else str(value),
)
def test_kernels_want_a_card_that_has_their_instructions(device, expected):
    assert layer._has_kernels(device) == expected


@pytest.mark.parametrize("name", PRECISIONS)
def test_precision_is_a_setting_that_changes_nothing_on_a_cpu(name):
    def predictions(**options):
        model = DeepGPRegressor(
            Deep(max_steps=3, theta_from=0, **options), preset="paper", random_state=0
        ).fit(np.arange(8.0)[:, None], np.arange(8.0))
        return model.config_["precision"], model.predict([[2.5]])

    (found, mean), (default, of_default) = predictions(precision=name), predictions()
    assert (found, default) == (name, "float32")
    assert mean == of_default


def test_precision_reaches_the_layers():
    situation = Situation(100, 2, classification=False)
    filled = fill({"precision": "tf32"}, "paper", situation)
    config = Config.checked({**filled, "preset": "paper", "seed": 0}, ["gaussian"])
    assert config.reparameterization == DrawWeights(AutomaticLayer(Precision.TF32))


def test_asynchronous_workers_refuse_rounded_products_before_they_start():
    with pytest.raises(ValueError, match=r"multiply in float32; got `precision=\"tf32\"`"):
        Asynchronous(2).check(averaging=0.0, kl_warmup=0.0, precision="tf32")


def test_an_unknown_precision_is_refused_before_any_work():
    with pytest.raises(ValueError, match=r"`precision` must be one of .*Did you mean 'float32'"):
        DeepGPRegressor(Deep(precision="float3")).fit([[0.0], [1.0]], [0.0, 1.0])
