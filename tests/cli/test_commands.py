import json
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from typer.main import get_command

import bochner
from bochner import load
from bochner.cli import app
from bochner.cli.settings import known_settings
from tests.cli.conftest import SMALL, make_frame


def test_every_command_has_help(call):
    listed = call("--help").output
    for name in (
        "fit", "predict", "evaluate", "cv", "compare", "report", "info", "sample", "export", "demo",
    ):  # fmt: skip
        assert name in listed
        assert "--help" in call(name, "--help").output
    assert "Exit codes" in listed
    assert bochner.__version__ in call("--version").output


def test_predictions_are_those_of_python(call, files):
    out = files / "out.csv"
    call("predict", files / "prices.bochner", files / "new.csv", "-o", out, "--quantiles", "0.25,0.75",
         "--samples", 3, "--keep", "id", "--quiet")  # fmt: skip
    found = pd.read_csv(out)
    model = load(files / "prices.bochner")
    mean, std = model.predict(files / "new.csv", return_std=True)
    np.testing.assert_allclose(found["mean"], mean, rtol=1e-5)
    np.testing.assert_allclose(found["std"], std, rtol=1e-5)
    interval = model.predict_interval(files / "new.csv")
    np.testing.assert_allclose(found[["lower", "upper"]], interval, rtol=1e-5)
    assert (found["q0.25"] < found["q0.75"]).all()
    assert found["id"].tolist() == make_frame(seed=1)["id"].tolist()
    assert found["sample_0"].std() > 0
    assert not np.allclose(found["sample_0"], found["sample_1"])


def test_a_kept_column_is_never_lost(call, files, tmp_path):
    make_frame(10).assign(mean=1.0).to_csv(tmp_path / "t.csv", index=False)
    words = ["predict", files / "prices.bochner", tmp_path / "t.csv", "--keep", "mean"]
    assert "rename it" in " ".join(call(*words, code=1).output.split())


def test_classes_come_with_their_probabilities(call, files):
    out = files / "classes.parquet"
    call("predict", files / "colors.bochner", files / "new.csv", "-o", out, "--quiet")
    found = pd.read_parquet(out)
    np.testing.assert_allclose(found["probability_green"] + found["probability_red"], 1.0)
    best = np.where(found["probability_red"] > 0.5, "red", "green")
    assert found["class"].tolist() == best.tolist()


def test_standard_input_and_output(call, files):
    text = (files / "new.csv").read_text()
    printed = call("predict", files / "prices.bochner", "-", typed=text).stdout
    assert printed.splitlines()[0] == '"mean","std","lower","upper"'
    assert len(printed.splitlines()) == 301


def test_metrics_are_those_of_python(call, files):
    printed = json.loads(
        call("evaluate", files / "prices.bochner", files / "new.csv", "--json", "--quiet").stdout
    )
    known = load(files / "prices.bochner").evaluate(files / "new.csv", "price")
    assert printed.pop("rows") == 300
    assert printed == pytest.approx(known, rel=1e-4)
    assert printed["rmse"] < 1.5
    classes = call("evaluate", files / "colors.bochner", files / "new.csv", "--json", "-q").stdout
    assert json.loads(classes)["error_rate"] < 0.5


def test_info_tells_inputs_target_and_settings(call, files):
    found = json.loads(call("info", files / "prices.bochner", "--json").stdout)
    assert found["inputs"] == ["size", "color"]
    assert found["target"] == "price"
    assert found["config"]["max_steps"] == 400
    assert "size, color" in call("info", files / "prices.bochner").stdout


def test_samples_are_functions(call, files):
    out = files / "functions.csv"
    call("sample", files / "prices.bochner", files / "new.csv", "--n", 4, "-o", out, "--quiet")
    found = pd.read_csv(out)
    assert list(found) == ["f0", "f1", "f2", "f3"]
    model = load(files / "prices.bochner")
    X = model._checked_inputs(files / "new.csv")
    np.testing.assert_allclose(
        found["f2"], model.sample_functions(4, random_state=0)[2](X), rtol=1e-5
    )


def test_flags_override_the_file_of_settings(call, files, tmp_path):
    config = tmp_path / "settings.toml"
    config.write_text(
        'target = "price"\nignore = ["id", "size"]\nmax-steps = 30\n'
        'n_random_features = [8, 9]\nwidth = 2\nkernel = "matern32"\n'
    )
    out = tmp_path / "m.bochner"
    printed = call("fit", files / "flats.csv", "--config", config, "--model", out, "--kernel", "rbf",
                   "--theta-from", "never", "--no-ard", "--gradients", "clipped", "--json",
                   "--quiet").stdout  # fmt: skip
    stored = load(out).config_
    assert load(out).fitted_.encoder.input_names == ["color"]
    assert json.loads(printed)["config"]["kernel"] == stored["kernel"] == "rbf"
    assert stored["n_random_features"] == (8, 9)
    assert (stored["max_steps"], stored["theta_from"], stored["ard"]) == (30, "never", False)
    assert stored["gradients"] == "clipped"
    config.write_text("max_step = 3\n")
    message = call("fit", files / "flats.csv", "--config", config, code=1).output
    assert "no setting 'max_step'. Did you mean 'max_steps'?" in " ".join(message.split())


def test_every_setting_has_a_flag():
    options = {parameter.name for parameter in get_command(app).commands["fit"].params}
    assert set(known_settings()) <= options


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("model = 5", "`model` must be text"),
        ("ignore = 3", "`ignore` must be names"),
        ('model = "m"\nseed = -1', "`seed` must be a whole number"),
        ('model = "m"\ncheckpoint-seconds = "x"', "`checkpoint_seconds` must be a number"),
        ("model = ", "not valid TOML"),
    ],
)
def test_wrong_values_in_the_file_of_settings_are_told(call, files, tmp_path, text, message):
    config = tmp_path / "settings.toml"
    config.write_text(f'target = "price"\n{text}\n')
    words = ["fit", files / "flats.csv", "--config", config, "--quiet"]
    assert message in " ".join(call(*words, code=1).output.split())


def test_a_table_without_rows_is_told(call, files, tmp_path):
    (tmp_path / "empty.csv").write_text("size,color,price\n")
    for words in (
        ["fit", tmp_path / "empty.csv", "--target", "price", "--model", tmp_path / "m"],
        ["predict", files / "prices.bochner", tmp_path / "empty.csv"],
        ["evaluate", files / "prices.bochner", tmp_path / "empty.csv"],
    ):
        assert "has no rows" in " ".join(call(*words, code=1).output.split())


def test_a_validation_table_is_used_and_reported(call, files, tmp_path):
    printed = call("fit", files / "flats.csv", "--target", "price", "--model", tmp_path / "m.bochner",
                   "--validation", files / "new.csv", "--max-steps", 50, "--ignore", "id", "--json",
                   "--quiet", *SMALL).stdout  # fmt: skip
    assert json.loads(printed)["validation_rmse"] > 0
    history = load(tmp_path / "m.bochner").history_
    assert any(record["held_out_mnll"] is not None for record in history)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["fit", "{flats}", "--model", "m"], "--target is missing"),
        (["fit", "{flats}", "--target", "prize", "--model", "m"], "no column 'prize'"),
        (["fit", "nothing.csv", "--target", "a", "--model", "m"], "nothing.csv"),
        (["fit", "{flats}", "--target", "price", "--model", "m", "--kernel", "rbff"], "Did you mean 'rbf'"),
        (["fit", "{flats}", "--target", "price", "--model", "m", "--task", "sorting"], "`task` must be one of"),
        (["fit", "{flats}", "--target", "price", "--model", "m", "--task", "classification"], "class"),
        (["fit", "{flats}", "--target", "color", "--model", "m", "--task", "regression"], "color"),
        (["fit", "{flats}", "--target", "price", "--model", "m", "--resume"], "`resume` needs"),
        (["fit", "{flats}", "--target", "price", "--model", "no/folder/m"], "does not exist"),
        (["predict", "{flats}", "{flats}"], "not a model file"),
        (["predict", "nothing.bochner", "{flats}"], "no model file"),
        (["predict", "{model}", "{flats}", "-o", "out.xls"], "must end in .csv or .parquet"),
        (["predict", "{model}", "{flats}", "--quantiles", "0.5,2"], "between 0 and 1"),
        (["predict", "{model}", "{flats}", "--keep", "nothing"], "no column 'nothing'"),
        (["report", "{model}", "{flats}", "-o", "."], "is a folder"),
        (["evaluate", "{model}", "{flats}", "--target", "prize"], "prize"),
        (["datasets", "get", "power-plant"], "Did you mean 'powerplant'"),
    ],
)  # fmt: skip
def test_mistakes_get_one_line_and_exit_code_one(
    call, files, monkeypatch, tmp_path, words, message
):
    monkeypatch.chdir(tmp_path)
    names = {"{flats}": files / "flats.csv", "{model}": files / "prices.bochner"}
    result = call(*[names.get(word, word) for word in words], code=1)
    assert message in " ".join(result.output.split())
    assert "Traceback" not in result.output
    assert not list(tmp_path.iterdir())


def test_errors_for_machines_are_json(call, files):
    result = call("evaluate", files / "prices.bochner", "nothing.csv", "--json", code=1)
    assert "nothing.csv" in json.loads(result.stdout)["error"]


def test_a_wrong_flag_is_exit_code_two(call):
    assert "No such option" in call("fit", "t.csv", "--targett", "x", code=2).output


def test_datasets_are_listed_and_written(call, tmp_path):
    listed = json.loads(call("datasets", "list", "--json").stdout)["datasets"]
    assert listed["powerplant"]["n_rows"] == 9568
    if not os.environ.get("BOCHNER_DATA"):
        pytest.skip("the environment variable BOCHNER_DATA is not set")
    call("datasets", "get", "yacht", "-o", tmp_path / "yacht.csv", "--quiet")
    assert len(pd.read_csv(tmp_path / "yacht.csv")) == 308


def test_images_made_on_the_fly_are_not_written_as_a_table(call, tmp_path):
    result = call("datasets", "get", "mnist8m", "-o", tmp_path / "digits.csv", code=1)
    assert "made on the fly" in " ".join(result.output.split())
    assert not list(tmp_path.iterdir())


def test_a_model_worse_than_a_simple_one_is_told_as_an_error_and_written(call, tmp_path):
    make_frame().to_csv(tmp_path / "flats.csv", index=False)
    result = call(
        "fit", tmp_path / "flats.csv", "--target", "price", "--model", tmp_path / "model",
        "--ignore", "id", "--max-steps", 3, "--validation-fraction", 0.3, *SMALL,
    )  # fmt: skip
    assert result.output.count("worse than a simple one (linear") == 1
    assert "Error: the fitted model" in result.output
    model = load(tmp_path / "model")
    assert model.summary_["log_likelihood"] < model.summary_["linear"]
    assert [member["name"] for member in model.members_ if member["weight"] > 0] == ["deep"]


def test_without_settings_members_predict_together_and_fit_and_info_list_them(call, files):
    printed = json.loads(call("info", files / "stack.bochner", "--json").stdout)
    members = printed["members"]
    assert members == sorted(members, key=lambda member: -member["weight"])
    assert sum(member["weight"] for member in members) == pytest.approx(1.0)
    assert {"name", "log_likelihood", "weight", "seconds"} == set(members[0])
    left_out = printed["left_out"]
    assert left_out["n_rows"] == 300
    assert left_out["log_likelihood"] > left_out["linear"] > left_out["constant"]
    fitted = json.loads(
        call("fit", files / "flats.csv", "--target", "price", "--model", files / "again.bochner",
             "--ignore", "id", "--json", "--quiet").stdout
    )  # fmt: skip
    assert fitted["left_out"] == pytest.approx(left_out)
    shown = call("info", files / "stack.bochner").stdout
    assert "Members that predict together" in shown
    assert members[0]["name"] in shown
    assert f"{left_out['log_likelihood']:.4g} (linear {left_out['linear']:.4g}" in shown


def test_every_command_knows_a_stack(call, files, tmp_path):
    model, table = files / "stack.bochner", files / "new.csv"
    metrics = json.loads(call("evaluate", model, table, "--json").stdout)
    assert metrics["rmse"] < 1.5
    call("predict", model, table, "-o", tmp_path / "p.csv", "-q", "--draws", 10)
    found = pd.read_csv(tmp_path / "p.csv")
    np.testing.assert_allclose(found["mean"], load(model).predict(table), rtol=1e-5)
    call("sample", model, table, "-o", tmp_path / "s.csv", "-q", "--n", 2)
    assert list(pd.read_csv(tmp_path / "s.csv")) == ["f0", "f1"]
    call("report", model, table, "-o", tmp_path / "r.html", "-q")
    assert "Which members predict" in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_a_member_without_parameters_cannot_be_checked_and_the_message_names_those_that_can(
    call, files
):
    pytest.importorskip("blackjax")
    words = ("check", files / "stack.bochner", files / "flats.csv", "--member", "constant")
    message = " ".join(call(*words, code=1).output.split())
    assert "must be one of those that can be checked" in message or "--members deep" in message


def test_help_flows_to_the_width_of_the_terminal_and_shows_defaults(call, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    printed = call("fit", "--help-all").output
    assert "chosen from the size of the table. Types of columns" in printed
    assert "regression or classification.  [default: auto]" in printed
    assert "such as rbf, arccos1" in printed


_IMPORTED = "import sys, {}; print(sorted({{'jax', 'sklearn', 'equinox', 'numpy', 'pyarrow'}} & set(sys.modules)))"


@pytest.mark.parametrize("module", ["bochner", "bochner.cli"])
def test_help_waits_for_no_heavy_import(module):
    command = [sys.executable, "-c", _IMPORTED.format(module)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_texts_that_a_spreadsheet_would_run_are_quoted_where_asked(call, files, tmp_path):
    rows = make_frame(30)
    rows["id"] = [["=cmd|' /C calc'!A0", "+1", "-x", "@a", "fine"][i % 5] for i in range(30)]
    rows["=n"] = 1
    rows.to_csv(tmp_path / "t.csv", index=False)
    words = [
        "predict",
        files / "prices.bochner",
        tmp_path / "t.csv",
        "--keep",
        "id",
        "--keep",
        "=n",
    ]
    found = {}
    for escaped in (False, True):
        out = tmp_path / f"{escaped}.csv"
        call(*words, "-o", out, "--quiet", *(["--escape-formulas"] if escaped else []))
        found[escaped] = pd.read_csv(out)
    assert found[False]["id"].tolist() == rows["id"].tolist()
    assert found[True]["id"].tolist()[:5] == ["'=cmd|' /C calc'!A0", "'+1", "'-x", "'@a", "fine"]
    assert list(found[True]) == ["id", "'=n", *list(found[False])[2:]]
    np.testing.assert_array_equal(found[True].iloc[:, 2:], found[False].iloc[:, 2:])
