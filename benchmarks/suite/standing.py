"""Where the systems stand: ranks by each score, wins and losses, and every table where ours must be ashamed."""

import dataclasses
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from scipy.stats import rankdata

from benchmarks.suite import systems, tables
from benchmarks.suite.pairing import Difference, common_splits, difference, is_whole
from benchmarks.suite.records import Key, Record

OURS = systems.OURS[0]
_SHARE_TO_BE_RANKED = 0.7
_POINTS, _BINOMIAL_ERRORS = 0.015, 3.0
_ECE_MARGIN = 0.01
_FLOORS = ("constant", "linear")
_FAR_BELOW = 0.03


@dataclasses.dataclass(frozen=True)
class Score:
    """One of the scores by which systems are ranked.

    Attributes:
        title: as people call it.
        of: takes it from a record's scores; lower is better.
    """

    title: str
    of: Callable[[Mapping[str, float]], float]


SCORES = (
    Score("log-likelihood", lambda scores: -scores["log_likelihood"]),
    Score("CRPS or Brier", lambda scores: scores.get("crps", scores.get("brier", np.nan))),
    Score("RMSE or error", lambda scores: scores.get("rmse", scores.get("error_rate", np.nan))),
)


@dataclasses.dataclass(frozen=True)
class Ranking:
    """Mean ranks over the tables that all ranked systems have.

    Attributes:
        names: of the systems, the best by log-likelihood first.
        ranks: mean rank of each system by each score.
        tables: that were counted.
        n_splits: of these tables, which all ranked systems have.
        left_out: systems with too few whole records, and how many tables each has.
    """

    names: tuple[str, ...]
    ranks: dict[str, tuple[float, ...]]
    tables: tuple[str, ...]
    n_splits: int
    left_out: dict[str, int]


def by_split(records: Mapping[Key, Record], system: str, name: str) -> dict[int, Record]:
    """Give the whole records of a system on a table, by split, those that all systems run."""
    found = {split: records.get((system, name, split)) for split in tables.splits_of(name)}
    return {split: record for split, record in found.items() if record and is_whole(record)}


def ranking(records: Mapping[Key, Record], names: Sequence[str]) -> Ranking:
    """Rank the systems that have about as many of the tables as is usual, over the splits that all of these have."""
    candidates = [name for name in systems.NAMES if name == OURS or name not in systems.OURS]
    counts = {
        system: sum(bool(by_split(records, system, name)) for name in names)
        for system in candidates
    }
    usual = np.median([count for count in counts.values() if count] or [0])
    ranked = [system for system in candidates if counts[system] > _SHARE_TO_BE_RANKED * usual]
    left_out = {
        system: counts[system]
        for system in candidates
        if counts[system] > 0 and system not in ranked
    }
    counted, places = {}, {system: [] for system in ranked}
    for name in names:
        splits = common_splits(records, ranked, name) if ranked else ()
        if not splits:
            continue
        counted[name] = len(splits)
        for score in SCORES:
            values = [
                np.mean([score.of(records[system, name, split]["scores"]) for split in splits])
                for system in ranked
            ]
            for system, place in zip(ranked, rankdata(values), strict=True):
                places[system].append(place)
    ranks = {
        system: tuple(np.reshape(found, (-1, len(SCORES))).mean(axis=0).tolist())
        for system, found in places.items()
        if found
    }
    order = tuple(sorted(ranks, key=lambda system: ranks[system][0]))
    return Ranking(order, ranks, tuple(counted), sum(counted.values()), left_out)


def differences(records: Mapping[Key, Record], rival: str) -> dict[str, Difference]:
    """Compare our default with a rival on every table that both have."""
    found = {}
    for name in tables.NAMES:
        ours, theirs = by_split(records, OURS, name), by_split(records, rival, name)
        one = difference(ours, theirs, name)
        if one is not None:
            found[name] = one
    return found


def verdicts(records: Mapping[Key, Record], rival: str) -> Counter[str]:
    """Count wins, ties and losses of our default against a rival."""
    return Counter(one.verdict for one in differences(records, rival).values())


def shames(records: Mapping[Key, Record]) -> list[str]:
    """Say in words where our default is below a constant or a linear model, covers badly, or has failed."""
    found = []
    for rival in _FLOORS:
        for name, one in differences(records, rival).items():
            if one.value < -max(_FAR_BELOW, 2 * one.error):
                found.append(f"{name}: {-one.value:.3f} ± {one.error:.3f} nats below {rival}")
    for name in tables.NAMES:
        ours = by_split(records, OURS, name)
        if ours:
            found += [f"{name}: {text}" for text in _miscalibration(list(ours.values()))]
        for split in tables.splits_of(name):
            record = records.get((OURS, name, split))
            if record is not None and "failed" in record:
                found.append(f"{name}, split {split}: failed, {record['failed']}")
    return found


def _miscalibration(records: Sequence[Record]) -> list[str]:
    scores = [record["scores"] for record in records]
    n_rows = sum(len(record["densities"]) * 3 // 8 for record in records)  # two bytes in base64
    found = []
    if "ece" in scores[0]:
        ece, chance = (np.mean([one[name] for one in scores]) for name in ("ece", "ece_by_chance"))
        if ece > chance + _ECE_MARGIN:
            found.append(f"calibration error {ece:.3f}, by chance up to {chance:.3f}")
        return found
    for percent in (50, 90, 99):
        covered, said = np.mean([one[f"coverage_{percent}"] for one in scores]), percent / 100
        allowed = _BINOMIAL_ERRORS * np.sqrt(said * (1 - said) / n_rows) + _POINTS
        if abs(covered - said) > allowed:
            found.append(f"{percent} % intervals cover {100 * covered:.1f} %")
    return found


def best_rival(records: Mapping[Key, Record], name: str) -> tuple[str, Difference] | None:
    """Give the system that our default has the least lead over on a table, and that lead."""
    ours = by_split(records, OURS, name)
    found = [
        (rival, one)
        for rival in systems.NAMES
        if rival not in systems.OURS
        and (one := difference(ours, by_split(records, rival, name), name)) is not None
    ]
    return min(found, key=lambda one: one[1].value, default=None)
