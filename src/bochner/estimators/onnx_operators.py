"""A rule for each operation of JAX that our programs use: the ONNX operators that compute the same."""

import string
from typing import Any

import numpy as np
from jax.lax import GatherScatterMode
from onnx import helper

from bochner.estimators.onnx_graph import (
    Graph,
    NotInOnnxError,
    Rule,
    Value,
    described,
    element_type,
    evaluate,
    plain_type,
)

_SAME = {
    "add": "Add", "sub": "Sub", "mul": "Mul", "div": "Div", "max": "Max", "min": "Min", "pow": "Pow",
    "neg": "Neg", "exp": "Exp", "log": "Log", "sqrt": "Sqrt", "abs": "Abs", "sign": "Sign", "sin": "Sin",
    "cos": "Cos", "tanh": "Tanh", "floor": "Floor", "ceil": "Ceil", "logistic": "Sigmoid",
    "and": "And", "or": "Or", "not": "Not", "xor": "Xor",
    "eq": "Equal", "lt": "Less", "lt_to": "Less", "le": "LessOrEqual", "le_to": "LessOrEqual",
    "gt": "Greater", "ge": "GreaterOrEqual", "stop_gradient": "Identity", "copy": "Identity",
}  # fmt: skip
_REDUCED = {"reduce_sum": "ReduceSum", "reduce_max": "ReduceMax", "reduce_min": "ReduceMin"}
_END = np.iinfo(np.int64).max


def _number(equation: Any, value: float) -> np.ndarray:
    return np.array(value, plain_type(equation.invars[0].aval.dtype))


def _same(operator: str) -> Rule:
    return lambda graph, equation, *given: graph.add(operator, *given)


def _reduced(operator: str) -> Rule:
    def rule(graph: Graph, equation: Any, x: Value) -> str:
        axes = graph.whole(*equation.params["axes"])
        return graph.add(operator, x, axes, keepdims=0)

    return rule


def _reduced_truth(operator: str) -> Rule:
    def rule(graph: Graph, equation: Any, x: Value) -> str:
        counted = graph.add("Cast", x, to=element_type(np.int64))
        axes = graph.whole(*equation.params["axes"])
        found = graph.add(operator, counted, axes, keepdims=0)
        return graph.add("Cast", found, to=element_type(np.bool_))

    return rule


def _not_equal(graph: Graph, equation: Any, x: Value, y: Value) -> str:
    return graph.add("Not", graph.add("Equal", x, y))


def _is_finite(graph: Graph, equation: Any, x: Value) -> str:
    return graph.add("Less", graph.add("Abs", x), _number(equation, np.inf))


def _square(graph: Graph, equation: Any, x: Value) -> str:
    return graph.add("Mul", x, x)


def _integer_power(graph: Graph, equation: Any, x: Value) -> str:
    power = equation.params["y"]
    return graph.add("Mul", x, x) if power == 2 else graph.add("Pow", x, _number(equation, power))


def _reciprocal_root(graph: Graph, equation: Any, x: Value) -> str:
    return graph.add("Reciprocal", graph.add("Sqrt", x))


def _rounded(graph: Graph, equation: Any, x: Value) -> str:
    if int(equation.params["rounding_method"]) != 1:
        raise NotInOnnxError("rounding halves away from zero")
    return graph.add("Round", x)


def _log1p(graph: Graph, equation: Any, x: Value) -> str:
    """Compute `log(u) x / (u - 1)` of `u = 1 + x`, in which rounding cancels; where u is 1 the answer is x."""
    one = _number(equation, 1)
    u = graph.add("Add", x, one)
    is_one = graph.add(
        "Or", graph.add("Equal", u, one), graph.add("Not", _is_finite(graph, equation, u))
    )
    apart = graph.add("Where", is_one, one, graph.add("Sub", u, one))
    found = graph.add("Div", graph.add("Mul", graph.add("Log", u), x), apart)
    return graph.add("Where", graph.add("Equal", u, one), x, found)


def _expm1(graph: Graph, equation: Any, x: Value) -> str:
    """Compute a series where exp(x) is so near to one that its digits are lost."""
    near = graph.add("Less", graph.add("Abs", x), _number(equation, 0.02))
    series: Value = _number(equation, 1 / 120)
    for factor in (1 / 24, 1 / 6, 1 / 2, 1.0):
        series = graph.add("Add", graph.add("Mul", series, x), _number(equation, factor))
    plain = graph.add("Sub", graph.add("Exp", x), _number(equation, 1))
    return graph.add("Where", near, graph.add("Mul", series, x), plain)


def _clamp(graph: Graph, equation: Any, low: Value, x: Value, high: Value) -> str:
    return graph.add("Min", graph.add("Max", x, low), high)


def _select(graph: Graph, equation: Any, which: Value, *cases: Value) -> str:
    if len(cases) != 2:
        raise NotInOnnxError("a choice among more than two")
    return graph.add("Where", which, cases[1], cases[0])


def _cast(graph: Graph, equation: Any, x: Value) -> str:
    return graph.add("Cast", x, to=element_type(equation.params["new_dtype"]))


def _broadcast(graph: Graph, equation: Any, x: Value, *sizes: Value) -> str:
    shape, kept = equation.params["shape"], equation.params["broadcast_dimensions"]
    new = [axis for axis in range(len(shape)) if axis not in kept]
    x = graph.add("Unsqueeze", x, graph.whole(*new)) if new else x
    return graph.add("Expand", x, graph.shape(shape))


def _reshape(graph: Graph, equation: Any, x: Value, *sizes: Value) -> str:
    return graph.add("Reshape", x, graph.shape(equation.params["new_sizes"]))


def _squeeze(graph: Graph, equation: Any, x: Value) -> str:
    return graph.add("Squeeze", x, graph.whole(*equation.params["dimensions"]))


def _transpose(graph: Graph, equation: Any, x: Value) -> str:
    return graph.add("Transpose", x, perm=list(map(int, equation.params["permutation"])))


def _concatenate(graph: Graph, equation: Any, *parts: Value) -> str:
    return graph.add("Concat", *parts, axis=int(equation.params["dimension"]))


def _stack(graph: Graph, equation: Any, *parts: Value) -> str:
    axis = int(equation.params["axis"])
    raised = [graph.add("Unsqueeze", part, graph.whole(axis)) for part in parts]
    return graph.add("Concat", *raised, axis=axis)


def _slice(graph: Graph, equation: Any, x: Value) -> str:
    params = equation.params
    starts, ends = params["start_indices"], params["limit_indices"]
    ends = [n if isinstance(n, int) else _END for n in ends]
    steps = params["strides"] or [1] * len(starts)
    given = [graph.whole(*map(int, one)) for one in (starts, ends, range(len(starts)), steps)]
    return graph.add("Slice", x, *given)


def _split(graph: Graph, equation: Any, x: Value) -> list[str]:
    sizes, axis = equation.params["sizes"], int(equation.params["axis"])
    return graph.node("Split", x, graph.whole(*map(int, sizes)), n_outputs=len(sizes), axis=axis)


def _product(graph: Graph, equation: Any, left: Value, right: Value) -> str:
    (summed_left, summed_right), (shared_left, shared_right) = equation.params["dimension_numbers"]
    letters = iter(string.ascii_letters)
    of_left = [next(letters) for _ in equation.invars[0].aval.shape]
    of_right = [next(letters) for _ in equation.invars[1].aval.shape]
    for mine, other in zip(
        (*summed_left, *shared_left), (*summed_right, *shared_right), strict=True
    ):
        of_right[other] = of_left[mine]
    shared = [of_left[i] for i in shared_left]
    free = [c for i, c in enumerate(of_left) if i not in (*summed_left, *shared_left)]
    free += [c for i, c in enumerate(of_right) if i not in (*summed_right, *shared_right)]
    equation_text = f"{''.join(of_left)},{''.join(of_right)}->{''.join(shared + free)}"
    return graph.add("Einsum", left, right, equation=equation_text)


def _fill(equation: Any) -> np.ndarray:
    """Give what JAX takes for an entry out of range: NaN, or a number far off, unless something else is said."""
    value, dtype = equation.params["fill_value"], np.dtype(equation.invars[0].aval.dtype)
    if value is None and dtype.kind in "iu":
        value = np.iinfo(dtype).min if dtype.kind == "i" else np.iinfo(dtype).max
    return _number(equation, np.nan if value is None else value)


def _gather(graph: Graph, equation: Any, x: Value, indices: Value) -> str:
    """Pick single entries along some axes, and all along the others, by `GatherND`."""
    numbers, sizes = equation.params["dimension_numbers"], equation.params["slice_sizes"]
    shape = equation.invars[0].aval.shape
    together = list(map(int, numbers.operand_batching_dims))
    picked = list(map(int, numbers.start_index_map))
    whole = [axis for axis in range(len(shape)) if axis not in together + picked]
    if any(sizes[axis] != 1 for axis in picked) or any(sizes[i] != shape[i] for i in whole):
        raise NotInOnnxError("a gather of slices")
    mode = equation.params["mode"]
    if mode == GatherScatterMode.ONE_HOT:
        raise NotInOnnxError("a gather by one-hot vectors")
    n_axes = len(equation.invars[1].aval.shape) - 1
    of_together = list(map(int, numbers.start_indices_batching_dims))
    others = [axis for axis in range(n_axes) if axis not in of_together]
    x = graph.add("Transpose", x, perm=[*together, *picked, *whole])
    indices = graph.add("Transpose", indices, perm=[*of_together, *others, n_axes])
    last = graph.whole(*(shape[axis] - 1 for axis in picked))
    inside = graph.add("Min", graph.add("Max", indices, graph.whole(0)), last)
    found = graph.add("GatherND", x, inside, batch_dims=len(together))
    if mode == GatherScatterMode.FILL_OR_DROP:
        same = graph.add("Cast", graph.add("Equal", inside, indices), to=element_type(np.int64))
        is_inside = graph.add("ReduceMin", same, graph.whole(n_axes), keepdims=0)
        is_inside = graph.add("Cast", is_inside, to=element_type(np.bool_))
        if whole:
            last_axes = graph.whole(*(n_axes + i for i in range(len(whole))))
            is_inside = graph.add("Unsqueeze", is_inside, last_axes)
        found = graph.add("Where", is_inside, found, _fill(equation))
    # Where each axis of the result comes from: the indices, or an axis of x, which is new where one entry was picked.
    kept = [i for i in range(len(shape)) if i not in (*numbers.collapsed_slice_dims, *together)]
    offsets = list(map(int, numbers.offset_dims))
    of_indices, of_x = iter(range(n_axes)), iter(kept)
    wanted = [
        ("x", next(of_x)) if place in offsets else ("index", next(of_indices))
        for place in range(n_axes + len(kept))
    ]
    there = [("index", axis) for axis in of_together + others] + [("x", axis) for axis in whole]
    found = graph.add("Transpose", found, perm=[there.index(one) for one in wanted if one in there])
    new = [place for place, one in enumerate(wanted) if one not in there]
    return graph.add("Unsqueeze", found, graph.whole(*new)) if new else found


def _scan(graph: Graph, equation: Any, *given: Value) -> list[str]:
    params = equation.params
    if params["reverse"]:
        raise NotInOnnxError("a loop that runs backwards")
    n_held, n_carried = params["num_consts"], params["num_carry"]
    held, carried, slices = (
        given[:n_held],
        given[n_held : n_held + n_carried],
        given[n_held + n_carried :],
    )
    inner = params["jaxpr"]
    body = graph.body()
    outside = inner.jaxpr.invars[n_held:]
    names = [body.name() for _ in outside]
    found = evaluate(body, inner.jaxpr, inner.consts, [*held, *names], RULES)
    # What leaves a body must be made in it.
    outputs = [body.add("Identity", value) for value in found]
    inputs = [described(name, v.aval) for name, v in zip(names, outside, strict=True)]
    results = [
        described(name, v.aval) for name, v in zip(outputs, inner.jaxpr.outvars, strict=True)
    ]
    if not slices:  # ONNX counts the steps of a loop by what it runs over
        steps = np.zeros(params["length"], np.int64)
        inputs.append(described(body.name(), steps[0]))
        slices = (steps,)
    return graph.node(
        "Scan",
        *(*carried, *slices),
        n_outputs=len(outputs),
        body=helper.make_graph(body.nodes, body.name(), inputs, results),
        num_scan_inputs=len(slices),
    )


RULES: dict[str, Rule] = {
    **{name: _same(operator) for name, operator in _SAME.items()},
    **{name: _reduced(operator) for name, operator in _REDUCED.items()},
    "reduce_or": _reduced_truth("ReduceMax"),
    "reduce_and": _reduced_truth("ReduceMin"),
    "ne": _not_equal,
    "is_finite": _is_finite,
    "square": _square,
    "integer_pow": _integer_power,
    "rsqrt": _reciprocal_root,
    "round": _rounded,
    "log1p": _log1p,
    "expm1": _expm1,
    "clamp": _clamp,
    "select_n": _select,
    "convert_element_type": _cast,
    "broadcast_in_dim": _broadcast,
    "reshape": _reshape,
    "squeeze": _squeeze,
    "transpose": _transpose,
    "concatenate": _concatenate,
    "stack": _stack,
    "slice": _slice,
    "split": _split,
    "dot_general": _product,
    "gather": _gather,
    "scan": _scan,
}
"""By the names of JAX's operations."""
