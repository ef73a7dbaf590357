"""No command overwrites what it reads, none works for a place that cannot be written, and no fitted model is lost."""

import errno
import os
import re
import shutil
import stat

import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

from bochner import DeepGPRegressor, load
from bochner.cli.output import check_folder, refuse_inputs
from tests.cli.conftest import SMALL, make_frame

TRAINING = ["--target", "price", "--ignore", "id", "--max-steps", "3", "--quiet", *SMALL]


def in_one_line(result):
    return " ".join(result.output.split())


def contents(folder):
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def no_room(*arguments):
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.fixture
def folder(files, tmp_path, monkeypatch):
    """A folder of a user's own files, which a command runs in; `broken.csv` is no table, so no work succeeds."""
    shutil.copy(files / "prices.bochner", tmp_path / "m.bochner")
    shutil.copy(files / "prices.bochner", tmp_path / "m.json")
    shutil.copy(files / "flats.csv", tmp_path / "t.csv")
    (tmp_path / "broken.csv").write_bytes(b"a\n\xff\xfe\n1,2,3\n")
    (tmp_path / "settings.toml").write_text('target = "price"\n')
    (tmp_path / "symbolic.csv").symlink_to("broken.csv")
    os.link(tmp_path / "broken.csv", tmp_path / "hard.csv")
    (tmp_path / "model-link.csv").symlink_to("m.bochner")
    (tmp_path / "link.png").symlink_to("broken.csv")
    (tmp_path / "states").mkdir()
    (tmp_path / "states" / "step-0000000003.checkpoint").write_text("state")
    (tmp_path / "parts").mkdir()
    pyarrow.parquet.write_table(
        pa.Table.from_pandas(make_frame()), tmp_path / "parts" / "1.parquet"
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


FIT = ["fit", "broken.csv", "--target", "price", "--model"]
PREDICT, SAMPLE, REPORT = (
    [name, "m.bochner", "broken.csv", "-o"] for name in ("predict", "sample", "report")
)
CHECK = ["check", "m.bochner", "broken.csv", "--plot"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([*FIT, "broken.csv"], "--model broken.csv would overwrite TABLE"),
        ([*FIT, "./broken.csv"], "would overwrite TABLE"),
        ([*FIT, "symbolic.csv"], r"would overwrite TABLE \(broken.csv\)"),
        ([*FIT, "hard.csv"], r"would overwrite TABLE \(broken.csv\)"),
        ([*FIT, "t.csv", "--validation", "t.csv"], "would overwrite --validation"),
        ([*FIT, "settings.toml", "--config", "settings.toml"], "would overwrite --config"),
        ([*FIT, "states", "--checkpoint", "states"], "states is a folder"),
        ([*FIT, "new", "--checkpoint", "new"], "--checkpoint new would overwrite --model"),
        ([*FIT, "new", "--tensorboard", "broken.csv"], "--tensorboard broken.csv would overwrite TABLE"),
        ([*FIT, "new", "--checkpoint", "t.csv"], "--checkpoint must name a folder; .* is a file"),
        (
            [*FIT, "states/step-0000000003.checkpoint", "--checkpoint", "states", "--resume"],
            "would overwrite the checkpoint step-0000000003",
        ),
        (
            ["fit", "parts", "--target", "price", "--model", "parts/m.bochner"],
            r"lies in TABLE \(parts\)",
        ),
        ([*PREDICT, "broken.csv"], "--output broken.csv would overwrite TABLE"),
        ([*PREDICT, "symbolic.csv"], "would overwrite TABLE"),
        ([*PREDICT, "hard.csv"], "would overwrite TABLE"),
        ([*PREDICT, "m.bochner"], "would overwrite MODEL"),
        ([*PREDICT, "model-link.csv"], r"would overwrite MODEL \(m.bochner\)"),
        (["predict", "m.bochner", "parts", "-o", "parts/2.parquet"], r"lies in TABLE \(parts\)"),
        ([*SAMPLE, "hard.csv"], "would overwrite TABLE"),
        ([*SAMPLE, "m.bochner"], "would overwrite MODEL"),
        ([*REPORT, "broken.csv"], "would overwrite TABLE"),
        ([*REPORT, "m.bochner"], "would overwrite MODEL"),
        ([*CHECK, "link.png"], r"--plot link.png would overwrite TABLE \(broken.csv\)"),
        ([*CHECK, "plot.xyz"], "--plot must end in one of .*png"),
        (["export", "m.bochner", "-o", "m.bochner"], "would overwrite MODEL"),
        (["export", "m.json", "-o", "m.jax"], "--output m.json would overwrite MODEL"),
        (["export", "m.bochner", "-o", "/dev/stdout"], "must name a file"),
    ],
)  # fmt: skip
def test_outputs_that_are_inputs_are_refused_before_any_work(call, folder, words, message):
    before = contents(folder)
    assert re.search(message, in_one_line(call(*words, code=1)))
    assert contents(folder) == before


def test_what_is_read_from_standard_input_is_not_overwritten(folder):
    before = os.dup(0)
    try:
        with open("t.csv") as file:
            os.dup2(file.fileno(), 0)
            with pytest.raises(ValueError, match="would overwrite TABLE"):
                refuse_inputs("--output", "t.csv", {"TABLE": "-"})
            refuse_inputs("--output", "hard.csv", {"TABLE": "-"})
    finally:
        os.dup2(before, 0)
        os.close(before)


def test_devices_are_no_inputs_that_could_be_lost(tmp_path):
    refuse_inputs("--output", "/dev/null", {"TABLE": "/dev/null"})
    refuse_inputs("--output", tmp_path / "new", {"TABLE": tmp_path / "missing", "--config": None})


FILES = [
    [*FIT, "{place}"],
    [*PREDICT, "{place}.csv"],
    [*SAMPLE, "{place}.parquet"],
    [*REPORT, "{place}.html"],
    [*CHECK, "{place}.png"],
    ["export", "broken.csv", "-o", "{place}"],
    ["datasets", "get", "nothing", "-o", "{place}.csv"],
]
FOLDERS = [[*FIT, "new", "--checkpoint", "{place}"], ["demo", "-o", "{place}"]]


@pytest.mark.parametrize("words", FILES)
def test_a_missing_folder_is_noticed_before_any_work(call, folder, words):
    before = contents(folder)
    result = call(*[word.format(place="missing/file") for word in words], code=1)
    assert re.search(r"missing/file\S* does not exist. Make it first", in_one_line(result))
    assert contents(folder) == before
    assert not (folder / "missing").exists()


@pytest.mark.parametrize("words", [*FILES, *FOLDERS])
def test_a_full_disk_is_noticed_before_any_work(call, folder, monkeypatch, words):
    monkeypatch.setattr("os.fsync", no_room)
    before = contents(folder)
    result = call(*[word.format(place="full") for word in words], code=1)
    assert "cannot be written (No space left on device). Make room" in in_one_line(result)
    assert contents(folder) == before


def test_a_folder_may_be_new_within_one_that_can_be_written(tmp_path):
    check_folder("--checkpoint", tmp_path / "new" / "run", {})
    assert not list(tmp_path.iterdir())


def test_settings_that_a_model_file_cannot_hold_are_refused_before_any_work(call, folder):
    result = call(*FIT, "new", "--n-mc-predict", 200_000, code=1)
    assert "n_mc_predict of at most 100,000" in in_one_line(result)


@pytest.fixture
def during_the_training(monkeypatch):
    """Have something happen between the checks of `fit` and its end."""

    def arrange(happens):
        fit = DeepGPRegressor.fit

        def fit_meanwhile(*arguments, **options):
            happens()
            return fit(*arguments, **options)

        monkeypatch.setattr(DeepGPRegressor, "fit", fit_meanwhile)

    return arrange


@pytest.mark.parametrize("lost", ["disk", "folder"])
def test_a_model_that_cannot_be_written_at_the_end_goes_to_a_second_place(
    call, files, tmp_path, monkeypatch, during_the_training, lost
):
    place, here = tmp_path / "place", tmp_path / "here"
    place.mkdir()
    here.mkdir()
    monkeypatch.chdir(here)

    def lose_the_folder():
        place.rmdir()
        place.write_text("")

    if lost == "disk":
        monkeypatch.setattr("os.replace", no_room)
    else:
        during_the_training(lose_the_folder)
    words = ["fit", files / "flats.csv", "--model", place / "m.bochner", *TRAINING]
    message = call(*words, code=1).output
    (saved,) = here.iterdir()
    assert f"is in {saved} instead: move it from there" in message
    assert saved.suffix == ".bochner"
    assert load(saved).predict(files / "flats.csv").shape == (300,)
    assert place.is_file() or not list(place.iterdir())


def test_a_folder_that_is_removed_during_the_training_is_made_again(
    call, files, tmp_path, during_the_training
):
    place = tmp_path / "place"
    place.mkdir()
    during_the_training(place.rmdir)
    call("fit", files / "flats.csv", "--model", place / "m.bochner", *TRAINING)
    assert list(contents(tmp_path)) == ["place/m.bochner"]


def test_a_model_that_can_be_written_nowhere_is_an_error(call, files, tmp_path, monkeypatch):
    monkeypatch.setattr("os.replace", no_room)
    monkeypatch.setattr("tempfile.mkstemp", no_room)
    words = ["fit", files / "flats.csv", "--model", tmp_path / "m.bochner", *TRAINING]
    assert "is lost" in in_one_line(call(*words, code=1))
    assert not list(tmp_path.iterdir())


def test_predictions_that_fail_halfway_leave_the_old_file_and_nothing_else(
    call, files, tmp_path, monkeypatch
):
    out = tmp_path / "out.csv"
    out.write_text("old")
    monkeypatch.setattr("os.replace", no_room)
    words = ["predict", files / "prices.bochner", files / "new.csv", "-o", out, "--quiet"]
    assert "what was there before is unchanged" in in_one_line(call(*words, code=1))
    assert contents(tmp_path) == {"out.csv": b"old"}


def test_standard_output_may_be_named_as_a_file(call, files):
    model, table = files / "prices.bochner", files / "new.csv"
    page = call("report", model, table, "-o", "/dev/stdout", "--quiet").stdout
    assert page.startswith("<!doctype html>")
    assert page.endswith("</html>\n")
    printed = call("predict", model, table, "-o", "/dev/stdout", "--quiet").stdout
    assert printed == call("predict", model, table, "--quiet").stdout


def test_a_pipe_gets_the_table(call, files, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        call("predict", files / "prices.bochner", files / "new.csv", "-o", pipe, "--quiet")
        assert os.read(reader, 30).startswith(b'"mean","std","lower","upper"\n')
    finally:
        os.close(reader)


def test_an_export_replaces_an_earlier_one_and_nothing_else(call, files, tmp_path, monkeypatch):
    pytest.importorskip("flatbuffers")
    monkeypatch.chdir(tmp_path)
    model = files / "prices.bochner"
    (tmp_path / "x.json").write_text('{"mine": 1}')
    result = call("export", model, "-o", "x", code=1)
    assert "x.json exists and is not of an earlier export" in in_one_line(result)
    assert contents(tmp_path) == {"x.json": b'{"mine": 1}'}
    call("export", model, "-o", "x", "--overwrite", "--quiet")
    assert contents(tmp_path).keys() == {"x", "x.json", "x.mlirbc"}
    call("export", model, "-o", "x", "--quiet")
    for name in ("x", "x.mlirbc"):
        (tmp_path / name).write_text("mine")
        before = contents(tmp_path)
        result = call("export", model, "-o", "x", code=1)
        assert f"Error: {name} exists and is not of an earlier export" in in_one_line(result)
        assert contents(tmp_path) == before
        call("export", model, "-o", "x", "--overwrite", "--quiet")


def test_a_data_set_is_written_as_a_whole_table(call, tmp_path):
    call("datasets", "get", "step", "-o", tmp_path / "step.csv", "--quiet")
    assert len(pd.read_csv(tmp_path / "step.csv")) == 50
    assert list(contents(tmp_path)) == ["step.csv"]


@pytest.mark.parametrize("link", [None, "link.csv"])
def test_private_predictions_stay_private_when_they_are_replaced(call, files, tmp_path, link):
    out = tmp_path / "out.csv"
    out.write_text("old")
    out.chmod(0o600)
    named = out
    if link is not None:
        named = tmp_path / link
        named.symlink_to("out.csv")
    call("predict", files / "prices.bochner", files / "new.csv", "-o", named, "--quiet")
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    assert len(pd.read_csv(out)) == 300
    assert named.is_symlink() == (link is not None)
