"""Ways to change a model file: its bytes under the old digest, or what it says under a new one."""

import copy
import json
import random
import warnings

import numpy as np

from bochner.system.saving import pack
from tests.make_model_files import FOLDER

FILES = (
    "regressor-1", "classifier-1", "table-1", "regressor-2", "classifier-2", "table-2", "mixture-2",
    "classes-2", "landmarks-2", "targets-2",
)  # fmt: skip
ORIGINALS = [(FOLDER / f"{name}.bochner").read_bytes() for name in FILES]
CODE = "__import__('os').system('touch executed')"
VALUES = [
    None, True, False, 0, 1, -1, 2, 3, 7, 1000, 10**6, 10**9, 10**12, 2**31, 2**63, 2**64, -(2**63),
    10**30, 10**400, 0.0, -0.0, 0.5, -1.5, 1e-320, 1e300, -1e300, 1e-30, {"$float": "nan"},
    {"$float": "inf"}, {"$float": "-inf"}, {"$float": "x"}, {"$float": []}, "", "a", "rbf", "never",
    "gaussian", "student-t", "softmax", "bernoulli", "object", "<U1000000000", "O", "float64",
    "orthogonal", "var-fixed", "prior-fixed", "matern12", "ü", "\ud800", "\x00", "x" * 100_000, CODE,
    "!!python/object:os.system", "../../etc/passwd", [], [1], [[]], [None], [2, 2], [1, 10**12],
    ["rbf", "rbf"], list(range(1000)), {}, {"a": 1}, {"tuple": [1]}, {"dict": [[1, 2]]},
    {"dict": [[[], 2]]}, {"tuple": 3}, {"__reduce__": [CODE]},
]  # fmt: skip
NEW_NAMES = [
    "new",
    "device",
    "checkpoint",
    "__class__",
    "training",
    "encoder",
    "target",
    "class_weight",
]


def mutated(number):
    """The file of a case, and whether its digest was computed anew."""
    r = random.Random(number)
    original = r.randrange(len(ORIGINALS))
    if number % 2 == 0:
        return r.choice(BYTE_CHANGES)(r, ORIGINALS[original]), False
    return joined(*r.choice(PART_CHANGES)(r, *PARTS[original])), True


def parts_of(content):
    """The arrays and the header's text of a file, read by other means than the library's."""
    n_head = int.from_bytes(content[:8], "little")
    head = json.loads(content[8 : 8 + n_head])
    metadata = head.pop("__metadata__")
    dtypes = {
        "F64": np.float64, "F32": np.float32, "I64": np.int64, "I32": np.int32, "U8": np.uint8,
        "U32": np.uint32,
    }  # fmt: skip
    arrays = {}
    for name, view in head.items():
        start, stop = view["data_offsets"]
        data = content[8 + n_head + start : 8 + n_head + stop]
        arrays[name] = np.frombuffer(data, dtypes[view["dtype"]]).reshape(view["shape"])
    return arrays, metadata["bochner"]


def joined(arrays, text):
    """A file with a right digest, whatever it holds."""
    arrays = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    return pack(arrays, text)


PARTS = [parts_of(content) for content in ORIGINALS]


# Changes of bytes.


def flip_bits(r, content):
    changed = bytearray(content)
    for _ in range(r.choice([1, 1, 2, 8, 64])):
        changed[r.randrange(len(changed))] ^= 1 << r.randrange(8)
    return bytes(changed)


def edit_bytes(r, content):
    changed = bytearray(content)
    for _ in range(r.choice([1, 2, 16])):
        value = r.choice([0, 255, r.randrange(256), *b'{}[]":,0919eE-'])
        changed[r.randrange(len(changed))] = value
    return bytes(changed)


def truncate(r, content):
    return content[: r.choice([r.randrange(16), r.randrange(len(content)), len(content) - 1])]


def insert(r, content):
    at = r.choice([0, 8, r.randrange(len(content)), len(content)])
    return content[:at] + r.randbytes(r.choice([1, 8, 100])) + content[at:]


def swap_blocks(r, content):
    size = r.choice([1, 4, 32, 512])
    a = r.randrange(len(content) - 2 * size)
    b = r.randrange(a + size, len(content) - size)
    changed = bytearray(content)
    changed[a : a + size], changed[b : b + size] = content[b : b + size], content[a : a + size]
    return bytes(changed)


def remove_block(r, content):
    at, size = r.randrange(len(content)), r.choice([1, 8, 100])
    return content[:at] + content[at + size :]


def overwrite_length(r, content):
    length = r.choice([0, 1, 2, 100, len(content), 2**31, 2**32, 2**62, 2**63, 2**64 - 1])
    return length.to_bytes(8, "little") + content[8:]


def edit_head(r, content):
    """Change what safetensors notes about one array: its type, shape or place. The order of the notes may change."""
    n_head = int.from_bytes(content[:8], "little")
    head = json.loads(content[8 : 8 + n_head])
    view = head[r.choice([name for name in head if name != "__metadata__"])]
    numbers = [r.choice([0, 1, -1, 2, 2**40, 2**63, 2**64, 1.5, None, "1", 10**400]) for _ in "abc"]
    types = ["F16", "F32", "F64", "I64", "U8", "BOOL", "BF16", "X"]
    view[r.choice(sorted(view))] = r.choice([*types, numbers, numbers[:2], numbers[:1], []])
    text = json.dumps(head, sort_keys=r.random() < 0.5).encode()
    return len(text).to_bytes(8, "little") + text + content[8 + n_head :]


def grow_sparsely(r, content):
    """Let the head promise more of one array than there is, or pad the file with zeros as sparse files are."""
    zeros = bytes(r.choice([1, 1000, 10**6]))
    return content + zeros if r.random() < 0.5 else edit_head(r, content) + zeros


def splice(r, content):
    other = r.choice(ORIGINALS)
    at = r.randrange(min(len(content), len(other)))
    return content[:at] + other[at:]


# Changes of what the file says.


def edit_header(r, arrays, text):
    header = json.loads(text)
    # Such numbers would hide the rest.
    paths = [p for p in places(header) if p and (not is_common(p) or r.random() < 0.1)]
    for _ in range(r.choice([1, 1, 1, 2, 3])):
        *outer, key = r.choice(paths)
        try:
            inside = header
            for each in outer:
                inside = inside[each]
            edit_item(r, inside, key)
        except (KeyError, IndexError, TypeError, AttributeError, OverflowError):
            continue  # another change of the same case took the place away, or it holds no number
    return arrays, json.dumps(header)


def is_common(path):
    """Whether a place is one of the many numbers of a history, or of what a model makes of columns."""
    return not {"history", "history_"}.isdisjoint(path) or {"rows", "columns"} <= {*path}


def edit_item(r, inside, key):
    what = r.choice(["value", "value", "value", "remove", "rename", "add", "nudge"])
    if what == "value":
        inside[key] = copy.deepcopy(r.choice(VALUES))
    elif what == "remove":
        del inside[key]
    elif what == "rename":
        inside[r.choice(["x", "", f"{key}_", CODE])] = inside.pop(key)
    elif what == "add":
        inside[r.choice(NEW_NAMES)] = copy.deepcopy(r.choice(VALUES))
    else:
        inside[key] = inside[key] * r.choice([-1, 2, 10, 0.5]) + r.choice([-1, 0, 1])


def places(value, path=()):
    """All paths into a tree of JSON."""
    yield path
    if isinstance(value, dict):
        for key, item in value.items():
            yield from places(item, (*path, key))
    if isinstance(value, list):
        for i, item in enumerate(value):
            yield from places(item, (*path, i))


def edit_text(r, arrays, text):
    """Change the characters of the header, so that it often is no JSON."""
    changed = r.choice([edit_bytes, edit_bytes, truncate])(r, text.encode())
    return arrays, changed.decode("latin-1")


def nest(r, arrays, text):
    depth = r.choice([10, 500, 5000, 100_000])
    deep = r.choice(["[" * depth + "]" * depth, '{"a":' * depth + "1" + "}" * depth, "[" * depth])
    key = r.choice(
        [
            "config",
            "parameters",
            "history_",
            "classes",
            "width",
            "new",
            "encoder",
            "fitted",
            "predictor",
            "rows",
        ]
    )
    if f'"{key}": ' in text:
        return arrays, text.replace(f'"{key}": ', f'"{key}": {deep}, "{key}_": ', 1)
    return arrays, f'{text[:-1]}, "{key}": {deep}}}'


def replace_text(r, arrays, text):
    others = ["", "null", "[]", "{}", "1", '"a"', "NaN", "1" * 10_000, '{"a": 1, "a": 2}', "\x00"]
    return arrays, r.choice([*others, '{"format_version": 1}', '{"format_version": 1e400}'])


def edit_arrays(r, arrays, text):
    arrays = dict(arrays)
    name = r.choice(sorted(arrays))
    r.choice(ARRAY_CHANGES)(r, arrays, name)
    return arrays, text


def edit_both(r, arrays, text):
    return edit_arrays(r, *edit_header(r, arrays, text))


def drop(r, arrays, name):
    del arrays[name]


def rename(r, arrays, name):
    others = ["x", f"{name}x", "input.new", "training.x", "model.blocks[9].q_W.mean", ""]
    arrays[r.choice(others)] = arrays.pop(name)


def add(r, arrays, name):
    arrays[r.choice(["new", "input.x", "model.x", "training.x", ""])] = np.zeros(r.randrange(4))


def reshape(r, arrays, name):
    array = arrays[name]
    shapes = [(-1,), (1, -1), (-1, 1), (array.size, 1, 1), (1, 1, -1)]
    arrays[name] = r.choice([array.reshape(r.choice(shapes)), array.T, np.tile(array, 2)])


def many_empty(r, arrays, name):
    arrays.update({f"new.{i}": np.zeros(0, np.float32) for i in range(r.choice([10, 2000]))})


def empty(r, arrays, name):
    arrays[name] = np.zeros(r.choice([(0,), (0, 3), (1000, 0, 0), (2**40, 0)]), arrays[name].dtype)


def cast(r, arrays, name):
    kinds = [np.float16, np.float32, np.float64, np.int32, np.uint8, bool, np.int64]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        arrays[name] = arrays[name].astype(r.choice(kinds))


def set_value(r, arrays, name):
    array = arrays[name].copy()
    values = [np.nan, np.inf, -np.inf, 0.0, -1.0, 1e30, -1e30, 1e-40, 5.0]
    if array.dtype.kind != "f":
        values = [0, 1, -1, 2, 255, 2**31]
    if array.size:
        array.flat[r.randrange(array.size)] = np.array(r.choice(values)).astype(array.dtype)
    arrays[name] = array


BYTE_CHANGES = (
    flip_bits, edit_bytes, truncate, insert, swap_blocks, remove_block, overwrite_length, edit_head,
    splice, grow_sparsely,
)  # fmt: skip
PART_CHANGES = (
    edit_header, edit_header, edit_header, edit_header, edit_text, nest, replace_text, edit_arrays,
    edit_arrays, edit_both,
)  # fmt: skip
ARRAY_CHANGES = (drop, rename, add, reshape, empty, many_empty, cast, set_value, set_value)
