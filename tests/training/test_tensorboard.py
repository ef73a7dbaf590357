"""What TensorBoard would read is what the training recorded."""

import builtins
import struct

import pytest

from bochner.training import AbstractCallback, Record
from bochner.training.tensorboard import TensorBoardLogger


def record(step, held_out_mnll=None):
    return Record(step, 1.0, 0.5, "q(W)", 0.01, -200.0 - step, -150.0, 50.0 + step, held_out_mnll)


def read_scalars(folder):
    """Each scalar's values by step, from the one event file: length, checksum, event, checksum."""
    event_pb2 = pytest.importorskip("tensorboardX.proto.event_pb2")
    (path,) = folder.glob("events.out.tfevents.*")
    content, found = path.read_bytes(), {}
    while content:
        (length,) = struct.unpack("<Q", content[:8])
        event = event_pb2.Event.FromString(content[12 : 12 + length])
        content = content[16 + length :]
        for value in event.summary.value:
            found.setdefault(value.tag, {})[event.step] = value.simple_value
    return found


def test_each_record_is_written_at_its_step(tmp_path):
    pytest.importorskip("tensorboardX", reason="tensorboardX is not installed")
    logger = TensorBoardLogger(tmp_path, n_rows=100)
    assert isinstance(logger, AbstractCallback)
    logger.on_record(record(10))
    logger.on_record(record(20, held_out_mnll=1.25))
    logger.on_end()
    scalars = read_scalars(tmp_path)
    assert scalars["training/bound"] == pytest.approx({10: -2.1, 20: -2.2})
    assert scalars["training/expected_log_likelihood"] == pytest.approx({10: -1.5, 20: -1.5})
    assert scalars["training/kl"] == pytest.approx({10: 0.6, 20: 0.7})
    assert scalars["training/learning_rate"] == pytest.approx({10: 0.01, 20: 0.01})
    assert scalars["held_out/mnll"] == pytest.approx({20: 1.25})


def test_nothing_is_written_where_nothing_was_recorded(tmp_path):
    pytest.importorskip("tensorboardX", reason="tensorboardX is not installed")
    TensorBoardLogger(tmp_path / "runs").on_end()
    assert not (tmp_path / "runs").exists()


def test_a_missing_package_is_named_before_training(tmp_path, monkeypatch):
    original = builtins.__import__

    def without_tensorboard(name, *args, **kwargs):
        if name.startswith("tensorboardX"):
            raise ImportError(name)
        return original(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_tensorboard)
    with pytest.raises(ImportError, match="pip install tensorboardX"):
        TensorBoardLogger(tmp_path)
