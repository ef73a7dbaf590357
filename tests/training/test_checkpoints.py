"""A training that is stopped at any moment and goes on ends with the same numbers, bit for bit."""

import os
import random
import signal

import jax
import numpy as np
import pytest

from bochner.rows import spool as module
from bochner.rows.spool import Spool, StepsOnDisk
from bochner.training import (
    Budget,
    CheckpointError,
    Checkpoints,
    HeldOut,
    Plan,
    TrainingDivergedError,
    TrainingStoppedError,
    train,
)
from tests import examples
from tests.mutations import edit_arrays, edit_header, joined, parts_of
from tests.training import problems

PLAN = Plan(theta_from=40, omega_from=0, n_mc=1, n_mc_final=2, n_mc_final_from=0.5)
MARK = {"seed": 1}
N_MUTATED = int(os.environ.get("BOCHNER_FUZZ_CHECKPOINTS", "12"))


class KilledError(Exception):
    """Ends the process, as far as the training can tell."""


class KillAt:
    """A callback that ends the training at some record."""

    def __init__(self, n_records):
        self.left = n_records

    def on_record(self, record):
        self.left -= 1
        if self.left == 0:
            raise KilledError

    def on_end(self):
        pass


def run(data=None, checkpoints=None, callbacks=(), **options):
    return train(
        problems.model(), data or problems.table(), plan=PLAN, batch_size=20, callbacks=callbacks,
        budget=Budget(max_steps=120), learning_rate=0.03, checkpoints=checkpoints,
        key=jax.random.key(3), **options,
    )  # fmt: skip


def in_folder(folder, *, resume=False, fingerprint=MARK):
    return Checkpoints(folder, fingerprint, resume=resume, seconds_between=0.0)


def assert_equal(one, other):
    for a, b in zip(jax.tree.leaves(one.model), jax.tree.leaves(other.model), strict=True):
        np.testing.assert_array_equal(a, b)
    assert [(r.step, r.elbo, r.held_out_mnll) for r in one.history] == [
        (r.step, r.elbo, r.held_out_mnll) for r in other.history
    ]


@pytest.fixture(scope="module")
def undisturbed():
    return run()


@pytest.mark.filterwarnings("ignore:.*starts anew")
@pytest.mark.parametrize("records", [[1], [7, 20], [30, 1, 1], [99]])
def test_a_killed_training_goes_on_to_the_same_numbers(tmp_path, undisturbed, records):
    for n in records:
        with pytest.raises(KilledError):
            run(checkpoints=in_folder(tmp_path, resume=True), callbacks=[KillAt(n)])
    assert_equal(run(checkpoints=in_folder(tmp_path, resume=True)), undisturbed)
    assert len(list(tmp_path.glob("*.checkpoint"))) == 2


def test_early_stopping_and_the_best_model_survive(tmp_path):
    def held_out():
        return HeldOut(lambda model: float(abs(model.layers[0].q_W.mean[0, 0])), patience=3)

    whole = run(held_out=held_out())
    assert whole.n_steps < 120
    with pytest.raises(KilledError):
        run(checkpoints=in_folder(tmp_path), callbacks=[KillAt(10)], held_out=held_out())
    assert_equal(run(checkpoints=in_folder(tmp_path, resume=True), held_out=held_out()), whole)


def test_a_signal_ends_the_chunk_and_writes_a_checkpoint(tmp_path, undisturbed):
    class Signal(KillAt):
        def on_record(self, record):
            self.left -= 1
            if self.left == 0:
                os.kill(os.getpid(), signal.SIGTERM)

    before = signal.getsignal(signal.SIGTERM)
    checkpoints = Checkpoints(tmp_path, MARK, seconds_between=1e9)
    with pytest.raises(TrainingStoppedError, match="Go on from the checkpoint") as caught:
        run(checkpoints=checkpoints, callbacks=[Signal(33)])
    assert caught.value.signal == signal.SIGTERM
    assert signal.getsignal(signal.SIGTERM) == before
    assert_equal(run(checkpoints=in_folder(tmp_path, resume=True)), undisturbed)


def damage_by_truncation(path):
    path.write_bytes(path.read_bytes()[:-100])


def damage_by_a_flipped_bit(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))


@pytest.mark.parametrize(
    "damage",
    [damage_by_truncation, damage_by_a_flipped_bit, os.remove, lambda p: p.write_bytes(b"")],
)
def test_the_one_before_a_damaged_checkpoint_is_used(tmp_path, undisturbed, damage):
    with pytest.raises(KilledError):
        run(checkpoints=in_folder(tmp_path), callbacks=[KillAt(50)])
    newest = max(tmp_path.glob("*.checkpoint"))
    damage(newest)
    if newest.exists():
        with pytest.warns(RuntimeWarning, match="one before it is"):
            found = run(checkpoints=in_folder(tmp_path, resume=True))
    else:
        found = run(checkpoints=in_folder(tmp_path, resume=True))
    assert_equal(found, undisturbed)


def test_a_full_disk_is_a_warning_and_the_old_checkpoint_stays(tmp_path, undisturbed, monkeypatch):
    with pytest.raises(KilledError):
        run(checkpoints=in_folder(tmp_path), callbacks=[KillAt(20)])
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    checkpoints = in_folder(tmp_path, resume=True)

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.warns(RuntimeWarning, match=r"could not be written.*No space left"):
            found = run(checkpoints=checkpoints)
    assert_equal(found, undisturbed)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_nothing_is_overwritten_and_nothing_is_mixed_up(tmp_path):
    with pytest.raises(KilledError):
        run(checkpoints=in_folder(tmp_path), callbacks=[KillAt(5)])
    with pytest.raises(CheckpointError, match="earlier training"):
        in_folder(tmp_path)
    other = in_folder(tmp_path, resume=True, fingerprint={"seed": 2})
    with pytest.raises(CheckpointError, match="seed was 1 and is 2 now"):
        run(checkpoints=other)
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(CheckpointError, match="must be a folder"):
        in_folder(file)


def test_damaged_checkpoints_of_later_steps_make_way_for_new_ones(tmp_path, undisturbed):
    for step in (998, 999):
        (tmp_path / f"step-{step:010d}.checkpoint").write_bytes(b"no")
    with pytest.warns(RuntimeWarning, match="starts anew"), pytest.raises(KilledError):
        run(checkpoints=in_folder(tmp_path, resume=True), callbacks=[KillAt(30)])
    assert all(path.stat().st_size > 100 for path in tmp_path.glob("*.checkpoint"))
    assert_equal(run(checkpoints=in_folder(tmp_path, resume=True)), undisturbed)


def test_two_trainings_cannot_share_a_folder(tmp_path):
    first, second = in_folder(tmp_path), in_folder(tmp_path)
    with (
        first.in_use(),
        pytest.raises(CheckpointError, match="another training is under way"),
        second.in_use(),
    ):
        pass
    with pytest.raises(KilledError):
        run(checkpoints=first, callbacks=[KillAt(5)])
    with pytest.raises(CheckpointError, match="earlier training"):
        run(checkpoints=second)


def test_without_a_checkpoint_resuming_starts_anew_and_says_so(tmp_path, undisturbed):
    with pytest.warns(RuntimeWarning, match="no checkpoint in .* starts anew"):
        found = run(checkpoints=in_folder(tmp_path / "new", resume=True))
    assert_equal(found, undisturbed)


def test_rows_on_disk_go_on_at_their_place(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "PART_ROWS", 60)
    monkeypatch.setattr(module, "BLOCK_ROWS", 7)
    generator = np.random.default_rng(0)
    X = generator.uniform(-1, 1, size=(500, examples.D_IN))
    with Spool(d_in=examples.D_IN, n_targets=1, classes=False) as spool:
        spool.append(X, np.sin(3 * X[:, :1]), np.ones(500))
        assert isinstance(spool.in_steps(20, (0,)), StepsOnDisk)
        whole = run(spool)
        with pytest.raises(KilledError):
            run(spool, checkpoints=in_folder(tmp_path), callbacks=[KillAt(41)])
        assert_equal(run(spool, checkpoints=in_folder(tmp_path, resume=True)), whole)


def test_folders_named_like_checkpoints_are_left_alone(tmp_path, undisturbed):
    for step in (0, 60, 10**9):
        (tmp_path / f"step-{step:010d}.checkpoint").mkdir()
    with pytest.raises(KilledError):
        run(checkpoints=in_folder(tmp_path), callbacks=[KillAt(50)])
    assert_equal(run(checkpoints=in_folder(tmp_path, resume=True)), undisturbed)
    assert sum(path.is_dir() for path in tmp_path.iterdir()) == 3


def test_what_a_killed_process_left_half_written_is_removed(tmp_path):
    for name in (f".{'0' * 32}.partial", ".mine.partial"):
        (tmp_path / name).write_text("")
    run(checkpoints=in_folder(tmp_path))
    assert [path.name for path in tmp_path.glob(".*")] == [".mine.partial"]


@pytest.mark.filterwarnings("ignore:.*non-finite")
def test_odd_contents_with_a_right_digest_are_an_error_in_words_or_go_on(tmp_path):
    with pytest.raises(KilledError):
        run(checkpoints=in_folder(tmp_path / "first"), callbacks=[KillAt(97)])
    content = max((tmp_path / "first").glob("*.checkpoint")).read_bytes()
    parts, n_refused = parts_of(content), 0
    for number in range(N_MUTATED):
        r = random.Random(number)
        folder = tmp_path / str(number)
        folder.mkdir()
        changed = joined(*r.choice([edit_header, edit_header, edit_arrays])(r, *parts))
        (folder / "step-0000000117.checkpoint").write_bytes(changed)
        refused = None
        try:
            run(checkpoints=in_folder(folder, resume=True))
        except (CheckpointError, TrainingDivergedError) as error:
            refused = str(error)
        except BaseException as error:
            error.add_note(f"this was case {number}")
            raise
        assert refused is None or 20 < len(refused) < 1000
        n_refused += refused is not None
    assert n_refused > N_MUTATED / 3
