"""Mutated model files: each is refused with one kind of error, or opens as a model that works.

Half of the cases change bytes and leave the digest alone; they may open only where arrays and header are the same as
before. The other half change header or arrays and compute the digest anew, so that every later check is reached.
A case is a number: `mutated(number)` repeats it. `BOCHNER_FUZZ_CASES` asks for more of them.
"""

import contextlib
import json
import os
import random
import resource
import signal
import sys
import tracemalloc
import warnings

import jax
import numpy as np
import pytest

from bochner.estimators.files import from_parts
from bochner.fitting.sources import Encoded
from bochner.system.saving import ModelFileError, parse_arrays
from tests.make_model_files import rows
from tests.mutations import FILES, ORIGINALS, PARTS, joined, mutated, parts_of

N_CASES = int(os.environ.get("BOCHNER_FUZZ_CASES", "20000"))
N_PARTS = 4
SECONDS_A_CASE = 10
MOST_MEMORY = 300_000_000
N_PREDICTED = 6  # in each part, since a prediction may take a compilation
FORBIDDEN = {
    "os.system", "os.exec", "os.spawn", "os.posix_spawn", "os.fork", "subprocess.Popen",
    "pickle.find_class", "socket.connect",
}  # fmt: skip


class Watch:
    """Notes what opening a file must not do; an audit hook cannot be taken away, so it can be turned off."""

    def __init__(self):
        self.events, self.on = [], False
        sys.addaudithook(self._hear)

    def _hear(self, event, arguments):
        if self.on and event in FORBIDDEN:
            self.events.append(event)

    def __enter__(self):
        self.on = True

    def __exit__(self, *_):
        self.on = False


@pytest.fixture(scope="module")
def watch():
    return Watch()


@pytest.fixture
def limited():
    """A context that ends by a `TimeoutError` what takes too long."""

    def ring(*_):
        raise TimeoutError(f"a file took more than {SECONDS_A_CASE} s to open")

    @contextlib.contextmanager
    def limit():
        signal.setitimer(signal.ITIMER_REAL, SECONDS_A_CASE)
        yield
        signal.setitimer(signal.ITIMER_REAL, 0)

    before = signal.signal(signal.SIGALRM, ring)
    yield limit
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def named(number):
    """Add the number of the case to whatever goes wrong."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"this was mutated({number})")
        raise


def opened(content):
    """The model of a file, or None where it is refused in the right way."""
    try:
        return from_parts(*parse_arrays(content, "case"))
    except ModelFileError as error:
        message = str(error)
    assert 10 < len(message) < 1000
    return None


def is_an_original(content):
    """Whether a file holds what one of the originals does; a splice may be another one whole."""
    return any(same_contents(content, original) for original in range(len(ORIGINALS)))


def same_contents(content, original):
    (arrays, text), (others, other_text) = parts_of(content), PARTS[original]
    return (
        text == other_text
        and arrays.keys() == others.keys()
        and all(array.tobytes() == others[name].tobytes() for name, array in arrays.items())
        and all(array.shape == others[name].shape for name, array in arrays.items())
    )


def assert_works(model):
    """A prediction has the right shape, is of numbers or warns, and probabilities that are numbers sum to one."""
    classes = getattr(model, "classes_", None)
    X = rows(3).to_numpy()[:, :1].repeat(model.fitted_.d_in, axis=1).view(Encoded)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = model.predict(X) if classes is None else model.predict_proba(X)
    told = any("are not finite" in str(one.message) for one in caught)
    assert np.isfinite(found).all() or told, "predictions that are no numbers are told"
    if classes is None:
        assert found.shape == ((3,) if model.fitted_.task.one_target else (3, model.n_targets_))
    else:
        assert found.shape == (3, len(classes))
        assert not np.isfinite(found).all() or np.allclose(found.sum(axis=1), 1)


def peak_memory():
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


@pytest.mark.parametrize("part", range(N_PARTS))
def test_a_mutated_file_is_refused_or_works(part, limited, watch):
    peak, unchanged, accepted = peak_memory(), [], []
    numbers = range(part * N_CASES // N_PARTS, (part + 1) * N_CASES // N_PARTS)
    for number in numbers:
        content, recomputed = mutated(number)
        with named(number):
            with limited(), watch:
                model = opened(content)
            assert not watch.events
            if model is not None:
                assert recomputed or is_an_original(content)
                deep = [fit.model for fit in model.fitted_.predictor.deep]
                assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(deep))
                (accepted if recomputed else unchanged).append(number)
    assert peak_memory() - peak < MOST_MEMORY
    assert len(accepted) > 0.01 * len(numbers), "too few cases reach the end"
    print(
        f"{len(numbers)} files: {len(accepted)} with new contents open, {len(unchanged)} with the old"
    )
    for number in random.Random(part).sample(accepted, min(N_PREDICTED, len(accepted))):
        with named(number):
            assert_works(opened(mutated(number)[0]))


def test_a_number_gives_the_same_file_each_time():
    files = [[mutated(number)[0] for number in range(400)] for _ in range(2)]
    assert files[0] == files[1]


@pytest.mark.parametrize("original", range(len(ORIGINALS)))
def test_the_originals_open(original):
    assert opened(ORIGINALS[original]) is not None
    assert same_contents(joined(*PARTS[original]), original)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_layers", 10**9),
        ("n_layers", 999),
        ("width", 10**12),
        ("width", list(range(1, 10**5))),
        ("n_random_features", 10**12),
        ("n_random_features", [10**12] * 3),
        ("n_random_features", 10**6),
        ("n_mc_predict", 10**9),
        ("kernel", ["rbf"] * 10**5),
    ],
)
@pytest.mark.parametrize(
    ("file", "place"),
    [
        ("regressor-1", []),
        ("regressor-2", ["fitted", "predictor", "deep"]),
        ("mixture-2", ["fitted", "predictor", "parts", -1, "deep"]),
    ],
)
def test_a_file_that_asks_for_much_is_refused_at_once_and_in_little_memory(
    name, value, file, place, limited
):
    arrays, text = PARTS[FILES.index(file)]
    header = json.loads(text)
    inside = header
    for key in place:
        inside = inside[key]
    inside["config"][name] = value
    content = joined(arrays, json.dumps(header))
    tracemalloc.start()
    try:
        with limited():
            assert opened(content) is None
        assert tracemalloc.get_traced_memory()[1] < 20_000_000 + 20 * len(content)
    finally:
        tracemalloc.stop()


# What a part may be left without, or may be of several types.
OPTIONAL = {"feature_names", "encoder", "target", "judged"}


def without_or_wrong(header):
    """The header with each value at its top, and inside the fitted estimator, taken away or of another type."""
    for place in ((), ("fitted",), ("fitted", "predictor")):
        inside = header
        for key in place:
            inside = inside.get(key, {})
        for name, value in list(inside.items()):
            wrong = [7, {"a": 1}, [[]]] if isinstance(value, str) else ["x", {"a": 1}, [[]]]
            if value == {} or (place and name in ("names", "encoder", "target", "rows")):
                wrong = wrong[1:]
            if name not in OPTIONAL or place:
                del inside[name]
                yield name, json.dumps(header)
            for each in wrong:
                inside[name] = each
                yield name, json.dumps(header)
            inside[name] = value


@pytest.mark.parametrize("original", range(len(ORIGINALS)))
def test_no_part_can_be_taken_away_or_be_of_another_type(original):
    arrays, text = PARTS[original]
    for name, changed in without_or_wrong(json.loads(text)):
        assert opened(joined(arrays, changed)) is None, name
    for name, array in arrays.items():
        rest = {key: value for key, value in arrays.items() if key != name}
        if name != "background":  # which the first format has not
            assert opened(joined(rest, text)) is None, name
        if array.dtype.kind == "f" and array.size:
            nothing = joined(rest | {name: np.full_like(array, np.nan)}, text)
            assert opened(nothing) is None, name
