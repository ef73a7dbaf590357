"""Pairs, ranks, verdicts and the list of failings, from records made here."""

import numpy as np
import pytest

from benchmarks.suite import (
    comparison,
    history,
    pairing,
    readme,
    records,
    standing,
    summary,
    systems,
    tables,
)
from benchmarks.suite.work import packed

OURS = systems.OURS[0]
N_TEST = {name: tables.n_rows(name) // 10 for name in tables.NAMES}


def record(system, name, split, densities, *, stopped=False, **scores):
    mean = float(np.mean(densities))
    found = {
        "log_likelihood": mean,
        "log_likelihood_new": mean,
        "crps": -mean,
        "rmse": 2.0,
        **scores,
    }
    for percent in (50, 90, 99):
        found.setdefault(f"coverage_{percent}", percent / 100)
    return {
        "system": system, "data": name, "split": split, "law": "a law", "scores": found,
        "densities": packed(densities), "stopped": stopped, "fit_cpu_seconds": 1.0, "predict_cpu_seconds": 0.1,
        "memory_mb": 5, "commit": "abc", "clean": True, "date": "2026-01-02", "processor": "P", "cores": 2,
    }  # fmt: skip


def by_key(*found):
    return {records.key_of(one): one for one in found}


def densities(name, split, mean, noise=0.1):
    generator = np.random.default_rng(split)
    return mean + noise * generator.normal(size=N_TEST[name])


def test_a_lead_beyond_noise_wins_and_one_within_it_ties():
    one = {
        split: record(OURS, "servo", split, densities("servo", split, 0.0)) for split in range(10)
    }
    for lead, verdict in ((0.5, "loss"), (-0.5, "win"), (0.0, "tie")):
        other = {
            split: record("linear", "servo", split, densities("servo", split + 50, lead))
            for split in range(10)
        }
        assert pairing.difference(one, other, "servo").verdict == verdict


def test_a_row_that_is_tested_in_several_splits_counts_once_in_the_error():
    generator = np.random.default_rng(0)
    of_rows = generator.normal(size=tables.n_rows("servo"))

    def of_split(split):
        rows = np.random.default_rng(split).permutation(len(of_rows))[: len(of_rows) // 10]
        return of_rows[rows]

    one = {split: record(OURS, "servo", split, of_split(split)) for split in range(10)}
    zero = {split: record("linear", "servo", split, 0 * of_split(split)) for split in range(10)}
    seen = np.unique(
        np.concatenate(
            [
                np.random.default_rng(s).permutation(len(of_rows))[: len(of_rows) // 10]
                for s in range(10)
            ]
        )
    )
    assert len(seen) < 10 * N_TEST["servo"]
    expected = of_rows[seen].std(ddof=1) / np.sqrt(len(seen))
    assert pairing.difference(one, zero, "servo").error == pytest.approx(expected, rel=1e-3)


def test_ranks_count_tables_that_all_have_and_leave_out_systems_with_few():
    found = []
    for name, lead in (("servo", 0.2), ("yacht", -0.2), ("tae", 0.1), ("sonar", 0.1)):
        split = tables.splits_of(name)[0]
        found.append(record(OURS, name, split, densities(name, 0, lead)))
        found.append(record("linear", name, split, densities(name, 0, 0.0)))
    found.append(record("LightGBM", "servo", 0, densities("servo", 0, 9.0)))
    ranking = standing.ranking(by_key(*found), tables.NAMES)
    assert set(ranking.tables) == {"servo", "yacht", "tae", "sonar"}
    assert ranking.n_splits == 4
    assert ranking.ranks[OURS][0] == 1.25
    assert ranking.ranks["linear"][0] == 1.75
    assert ranking.left_out == {"LightGBM": 1}


def test_rivals_that_have_come_less_far_than_ours_are_ranked_over_the_splits_that_all_have():
    found = []
    for name in ("servo", "yacht", "tae", "sonar", "heart", "autompg"):
        for split in tables.splits_of(name)[:2]:
            found.append(record(OURS, name, split, densities(name, split, 0.0)))
            found.append(record("constant", name, split, densities(name, split, -9.0)))
            if name in ("servo", "tae") and split == 0:
                found += [
                    record(rival, name, split, densities(name, split, lead))
                    for rival, lead in (("LightGBM", -1.0), ("CatBoost", 1.0), ("NGBoost", -2.0))
                ]
    ranking = standing.ranking(by_key(*found), tables.NAMES)
    assert ranking.names == ("CatBoost", OURS, "LightGBM", "NGBoost", "constant")
    assert set(ranking.tables) == {"servo", "tae"}
    assert ranking.n_splits == 2


def test_without_records_nothing_is_ranked():
    ranking = standing.ranking({}, tables.NAMES)
    assert (ranking.names, ranking.tables, ranking.n_splits) == ((), (), 0)


def test_stopped_fits_are_not_ranked():
    found = by_key(record(OURS, "servo", 0, densities("servo", 0, 0.0), stopped=True))
    assert standing.by_split(found, OURS, "servo") == {}
    assert "*stopped*" in "\n".join(summary._scores(found, "x", lambda one: 1.0))


def test_every_failing_is_named():
    bad = record(OURS, "wine_red", 10, densities("wine_red", 0, -1.0), coverage_90=0.6)
    failed = {
        "system": OURS,
        "data": "tae",
        "split": 3,
        "failed": "ValueError: no",
        "stopped": False,
    }
    constant = record("constant", "wine_red", 10, densities("wine_red", 1, 0.0))
    text = "\n".join(standing.shames(by_key(bad, failed, constant)))
    assert "wine_red: 0.987 ± 0.011 nats below constant" in text
    assert "wine_red: 90 % intervals cover 60.0 %" in text
    assert "tae, split 3: failed, ValueError: no" in text


def test_classes_are_judged_by_what_chance_gives():
    rows = densities("sonar", 0, -0.5)
    good = record(OURS, "sonar", 0, rows, ece=0.10, ece_by_chance=0.12)
    bad = record(OURS, "sonar", 0, rows, ece=0.20, ece_by_chance=0.12)
    assert standing.shames(by_key(good)) == []
    assert standing.shames(by_key(bad)) == ["sonar: calibration error 0.200, by chance up to 0.120"]


def test_records_outlive_a_cut_off_line_and_the_newest_counts(tmp_path):
    first = record("linear", "servo", 0, np.zeros(16))
    records.append(tmp_path, first)
    path = records.path_of(tmp_path, "linear")
    path.write_text(path.read_text() + '{"system": "lin')
    records.append(tmp_path, {**first, "commit": "newer"})
    (found,) = records.read(tmp_path, ["linear"]).values()
    assert found["commit"] == "newer"
    records.tidy(tmp_path, ["linear"])
    assert len(path.read_text().splitlines()) == 1


def test_the_summary_says_who_leads_and_where_we_fail(tmp_path):
    pytest.importorskip("matplotlib")
    for name in ("servo", "autompg", "tae"):
        for split in tables.splits_of(name)[:2]:
            one = {"coverage_90": 0.2} if name == "servo" else {}
            records.append(
                tmp_path / "suite", record(OURS, name, split, densities(name, split, 0.0), **one)
            )
            records.append(
                tmp_path / "suite", record("CatBoost", name, split, densities(name, split, 0.3))
            )
    text = summary.write(tmp_path / "suite", tmp_path).read_text()
    assert "| CatBoost | 0 | 0 | 3 |" in text
    assert f"| **{OURS}** | 2.00 | 2.00 | 1.50 |" in text
    assert "- servo: 90 % intervals cover 20.0 %" in text
    assert "servo (167)" in text
    assert (tmp_path / "suite.png").stat().st_size > 5_000
    assert not (tmp_path / "history.jsonl").exists()

    assert f"Fits so far: {OURS} 6 of 349; CatBoost 6 of 259." in text
    head = "Mean rank over 3 of the 28 tables below 3,000 rows, on the 6 splits that all of these have:"
    assert text.count("Mean rank") == text.count(head) == 1


def test_the_summary_is_written_from_no_records_and_from_those_of_rivals_alone(tmp_path):
    pytest.importorskip("matplotlib")
    empty = summary.write(tmp_path / "none", tmp_path / "new").read_text()
    assert "There is no record yet." in empty
    for name in ("servo", "tae"):
        for system, lead in (("linear", 0.0), ("constant", -1.0)):
            found = record(system, name, 0, densities(name, 0, lead))
            records.append(tmp_path / "suite", found)
    failed = {
        "system": "NGBoost", "data": "tae", "split": 0, "failed": "ValueError: no", "stopped": False,
    }  # fmt: skip
    records.append(tmp_path / "suite", failed)
    text = summary.write(tmp_path / "suite", tmp_path).read_text()
    assert "| linear | 1.00 | 1.00 | 1.50 |" in text
    assert "There is no record of it yet." in text
    assert "- NGBoost on tae, split 0: ValueError: no" in text
    assert "suite.png" not in text
    assert not (tmp_path / "suite.png").exists()


def test_the_readme_takes_the_ranking_between_its_marks(tmp_path):
    path = tmp_path / "README.md"
    before = readme.README.read_text(encoding="utf-8")
    path.write_text(before, encoding="utf-8")
    found = by_key(
        record(OURS, "servo", 0, densities("servo", 0, 0.5)),
        record("linear", "servo", 0, densities("servo", 0, 0.0)),
    )
    readme.write(summary.in_short(found), path)
    text = path.read_text(encoding="utf-8")
    assert f"| **{OURS}** | 1.00 |  |  |  |" in text
    assert "| linear | 2.00 | 1 | 0 | 0 |" in text
    assert readme.updated(text, []) == readme.updated(before, [])


def test_changes_against_other_records_are_found(tmp_path):
    for folder, mean in (("new", 0.4), ("old", 0.0)):
        records.append(tmp_path / folder, record(OURS, "servo", 0, densities("servo", 0, mean)))
        records.append(tmp_path / folder, record("linear", "servo", 0, densities("servo", 0, 0.0)))
    found = {
        system: gain for system, _, gain in comparison.changes(tmp_path / "new", tmp_path / "old")
    }
    assert found[OURS].verdict == "win"
    assert found["linear"].verdict == "tie"


def test_a_full_run_becomes_one_line_of_history(tmp_path):
    pytest.importorskip("matplotlib")
    found = by_key(
        *(
            record(OURS, name, split, densities(name, split, 0.0))
            for name in tables.NAMES
            for split in tables.splits_of(name)
        )
    )
    history.keep(found, tmp_path)
    history.keep(found, tmp_path)
    assert len((tmp_path / "history.jsonl").read_text().splitlines()) == 1
    assert history.entry(dict(list(found.items())[1:])) is None
