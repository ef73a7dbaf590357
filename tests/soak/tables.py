"""Random tables, as people bring them: columns of many types, few rows or many, gaps, constants, odd units."""

import dataclasses
import random

import numpy as np
import pandas as pd

TARGET = "the target"
_WORDS = ["red", "green", "blue, light", 'a "quoted" one', "ünï", "", "NA?", "x" * 200, "7 %"]


@dataclasses.dataclass
class RandomTable:
    """A table with a target, and what is known about it.

    Attributes:
        frame: all columns.
        task: of the target.
        is_plain: it must be learned from; any other may be refused in words.
    """

    frame: pd.DataFrame
    task: str
    is_plain: bool

    def matrix(self):
        """The columns of numbers as X, and the target as y."""
        numbers = self.frame.drop(columns=TARGET).select_dtypes("number").astype(float)
        return numbers.fillna(0.0).to_numpy(), self.frame[TARGET].to_numpy()


def random_table(r: random.Random) -> RandomTable:
    """Draw a table."""
    generator = np.random.default_rng(r.randrange(2**32))
    is_plain = r.random() < 0.8
    n = int(10 ** r.uniform(1.3, 2.5)) if is_plain else r.choice([1, 2, 3, 5, 10, 30, 100])
    makers = PLAIN if is_plain else PLAIN + ODD
    hidden = generator.normal(size=n)
    columns = {"a": hidden + 0.5 * generator.normal(size=n)}
    for i in range(r.choice([0, 1, 2, 3, 5, 12])):
        columns[r.choice([f"c{i}", f"c {i}", f"ç{i}", f"{i}"])] = r.choice(makers)(r, generator, n)
    task = r.choice(["regression", "regression", "classification"])
    signal = hidden + 0.3 * generator.normal(size=n)
    kinds = TARGETS[task] if is_plain else TARGETS[task] + ODD_TARGETS[task]
    columns[TARGET] = r.choice(kinds)(r, generator, signal)
    frame = pd.DataFrame(columns)
    order = r.sample(list(frame), len(frame.columns))
    return RandomTable(frame.reindex(columns=order), task, is_plain)


# Columns.


def numbers(r, generator, n):
    return generator.normal(size=n) * 10.0 ** r.randint(-9, 9) + r.choice([0, 0, 1, -100])


def skewed(r, generator, n):
    return np.exp(r.choice([1, 3]) * generator.normal(size=n))


def whole_numbers(r, generator, n):
    return generator.integers(0, r.choice([2, 5, 100, 10**9]), n)


def with_gaps(r, generator, n):
    column = generator.normal(size=n)
    column[generator.random(n) < r.choice([0.05, 0.5, 0.9])] = np.nan
    column[0] = 1.0
    return column


def words(r, generator, n):
    chosen = r.sample(_WORDS, r.randint(2, len(_WORDS)))
    return generator.choice(np.array(chosen, dtype=object), n)


def truths(r, generator, n):
    return generator.random(n) < r.choice([0.5, 0.02])


def dates(r, generator, n):
    days = generator.integers(0, 4000, n).astype("timedelta64[D]")
    return np.datetime64("2015-01-01", "ns") + days


def constant(r, generator, n):
    return np.full(n, r.choice([0.0, 1.0, -7e5]))


def many_words(r, generator, n):
    return np.array([f"item {i}" for i in generator.integers(0, 10 * n, n)], dtype=object)


def tiny(r, generator, n):
    return 1e-300 * generator.normal(size=n)


def huge(r, generator, n):
    return 1e200 * generator.normal(size=n)


def with_infinity(r, generator, n):
    column = generator.normal(size=n)
    column[generator.integers(n)] = r.choice([np.inf, -np.inf, 1e308])
    return column


def all_missing(r, generator, n):
    return np.full(n, np.nan)


def nearly_numbers(r, generator, n):
    column = generator.normal(size=n).round(3).astype(str).astype(object)
    column[generator.integers(n)] = r.choice(["-", "unknown", "1,5", "1e999", "\x00", "=1+1"])
    return column


PLAIN = [numbers, numbers, skewed, whole_numbers, with_gaps, words, truths, dates, constant]
ODD = [many_words, tiny, huge, with_infinity, all_missing, nearly_numbers]


# Targets.


def in_units(r, generator, signal):
    return signal * 10.0 ** r.randint(-9, 9) + r.choice([0.0, 1.0, 1e3])


def positive(r, generator, signal):
    return np.exp(2 * signal)


def counts(r, generator, signal):
    return generator.poisson(np.exp(np.clip(signal, -3, 3) + 2)) + 0.0


def two_classes(r, generator, signal):
    return both(np.where(signal > 0, *r.choice([(1, 0), ("yes", "no"), (True, False)])))


def several_classes(r, generator, signal):
    names = np.array(r.choice([["a", "b", "c"], [10, 20, 30]]))
    return both(names[np.digitize(signal, [-0.5, 0.5])])


def both(labels):
    """See to it that there are two classes."""
    if len(set(labels.tolist())) < 2:
        labels[0] = "other" if labels.dtype.kind in "UO" else not labels[0]
    return labels


def constant_target(r, generator, signal):
    return np.full(len(signal), r.choice([0.0, 3.5]))


def tiny_target(r, generator, signal):
    return 1e-300 * signal


def huge_target(r, generator, signal):
    return 1e200 * signal


def target_with_gaps(r, generator, signal):
    target = signal.copy()
    target[generator.integers(len(target))] = r.choice([np.nan, np.inf])
    return target


def one_class(r, generator, signal):
    return np.full(len(signal), "only")


def rare_class(r, generator, signal):
    labels = np.full(len(signal), "common", dtype=object)
    labels[0] = "rare"
    return labels


def missing_labels(r, generator, signal):
    labels = np.where(signal > 0, "a", "b").astype(object)
    labels[0] = None
    return labels


TARGETS = {
    "regression": [in_units, in_units, positive, counts],
    "classification": [two_classes, several_classes],
}
ODD_TARGETS = {
    "regression": [constant_target, tiny_target, huge_target, target_with_gaps],
    "classification": [one_class, rare_class, missing_labels],
}
