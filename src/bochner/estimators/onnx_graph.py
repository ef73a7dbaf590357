"""Programs that JAX traces, as graphs of ONNX operators."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
import onnx
from jax.extend import core
from onnx import helper, numpy_helper

OPSET = 18
"""The version of ONNX's operators that graphs are made of."""

_IR_VERSION = 9  # of the file format, which goes with this version of operators
_BATCH = "batch"

Value = str | np.ndarray
"""The name of a tensor, or what is known before any rows come."""


class NotInOnnxError(ValueError):
    """A program computes with something that no rule puts into ONNX's operators."""


@dataclasses.dataclass(frozen=True, eq=False)
class Graph:
    """Nodes that are being put together; the bodies of loops share constants with what is around them.

    Attributes:
        nodes: in order.
        constants: by their contents.
        made: how many names there are.
    """

    nodes: list[Any]
    constants: dict[Any, Any]
    made: list[str]

    @classmethod
    def empty(cls) -> "Graph":
        """Begin."""
        return cls([], {}, [])

    def body(self) -> "Graph":
        """Begin the body of a loop."""
        return Graph([], self.constants, self.made)

    def name(self) -> str:
        """Give a name that no other tensor has."""
        self.made.append("")
        return f"t{len(self.made)}"

    def node(
        self, operator: str, *inputs: Value, n_outputs: int = 1, **attributes: Any
    ) -> list[str]:
        """Add a node; give the names of its outputs."""
        outputs = [self.name() for _ in range(n_outputs)]
        names = [self.tensor(value) for value in inputs]
        self.nodes.append(helper.make_node(operator, names, outputs, **attributes))
        return outputs

    def add(self, operator: str, *inputs: Value, **attributes: Any) -> str:
        """Add a node with one output."""
        return self.node(operator, *inputs, **attributes)[0]

    def tensor(self, value: Value) -> str:
        """Give the name of a tensor, of a new constant where it is known."""
        if isinstance(value, str):
            return value
        array = value.astype(plain_type(value.dtype))
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self.constants:
            self.constants[key] = numpy_helper.from_array(array, self.name())
        return self.constants[key].name

    def whole(self, *numbers: int) -> str:
        """Give a constant list of whole numbers."""
        return self.tensor(np.array(numbers, np.int64))

    def shape(self, sizes: Sequence[Any]) -> str:
        """Give a shape, which may have the number of rows in it."""
        if all(isinstance(n, int) for n in sizes):
            return self.whole(*sizes)
        pieces = []
        for n in sizes:
            if not isinstance(n, int) and str(n) != _BATCH:
                raise NotInOnnxError(f"a shape of {n} rows")
            pieces.append(self.whole(n) if isinstance(n, int) else _BATCH)
        return self.add("Concat", *pieces, axis=0)


def plain_type(dtype: Any) -> Any:
    """Give the type that stands for it in a graph: all whole numbers are alike there."""
    dtype = np.dtype(dtype)
    if dtype.kind in "iu":
        return np.dtype(np.int64)
    if dtype not in (np.float32, np.float64, np.bool_):
        raise NotInOnnxError(f"numbers of type {dtype}")
    return dtype


def element_type(dtype: Any) -> int:
    """Give ONNX's number of a type."""
    return helper.np_dtype_to_tensor_dtype(plain_type(dtype))


def described(name: str, aval: Any) -> Any:
    """Say which type and shape a tensor has, the number of rows left open."""
    dims = [n if isinstance(n, int) else _BATCH for n in aval.shape]
    return helper.make_tensor_value_info(name, element_type(aval.dtype), dims)


Rule = Callable[..., str | list[str]]
"""From a graph, an equation and the values of its inputs to the names of its outputs."""


def evaluate(
    graph: Graph,
    jaxpr: Any,
    constants: Sequence[Any],
    inputs: Sequence[Value],
    rules: dict[str, Rule],
) -> list[Value]:
    """Add the nodes of a program; what does not depend on the rows is computed here and now."""
    values: dict[Any, Value] = {}

    def read(atom: Any) -> Value:
        if isinstance(atom, core.Literal):
            aval: Any = atom.aval
            return np.asarray(atom.val, aval.dtype)
        return values[atom]

    values.update(zip(jaxpr.constvars, map(np.asarray, constants), strict=True))
    values.update(zip(jaxpr.invars, inputs, strict=True))
    for equation in jaxpr.eqns:
        given = [read(atom) for atom in equation.invars]
        inner = equation.params.get("jaxpr", equation.params.get("call_jaxpr"))
        name = equation.primitive.name
        if isinstance(inner, core.ClosedJaxpr) and name != "scan":
            found = evaluate(graph, inner.jaxpr, inner.consts, given, rules)
        elif all(isinstance(value, np.ndarray) for value in given) and _is_of_known_size(equation):
            found = _computed(equation, given)
        elif name in rules:
            found = rules[name](graph, equation, *given)
            found = [found] if isinstance(found, str) else found
        else:
            raise NotInOnnxError(f"the operation {name!r}")
        values.update(zip(equation.outvars, found, strict=True))
    return [read(atom) for atom in jaxpr.outvars]


def _is_of_known_size(equation: Any) -> bool:
    return all(isinstance(n, int) for out in equation.outvars for n in out.aval.shape)


def _computed(equation: Any, given: Sequence[Any]) -> list[Value]:
    found = equation.primitive.bind(*given, **equation.params)
    found = found if equation.primitive.multiple_results else [found]
    return [np.asarray(one) for one in found]


def onnx_model(
    program: Callable[[jax.Array], dict[str, jax.Array]], d_in: int, schema: str
) -> bytes:
    """Give a program of a matrix in single precision, of any number of rows, as the bytes of an ONNX file.

    Args:
        program: to be traced; its outputs have a row for each of the inputs.
        d_in: columns of the matrix.
        schema: a text that goes with the file, as the entry `"schema"` of its metadata.
    """
    from bochner.estimators.onnx_operators import RULES

    (batch,) = jax.export.symbolic_shape(_BATCH)
    rows = jax.ShapeDtypeStruct((batch, d_in), np.float32)
    traced, structure = jax.make_jaxpr(program, return_shape=True)(rows)
    graph = Graph.empty()
    sizes = helper.make_node("Shape", ["X"], [_BATCH], start=0, end=1)
    graph.nodes.append(sizes)
    found = evaluate(graph, traced.jaxpr, traced.consts, ["X"], RULES)
    outputs = []
    for name, value, shape in zip(structure, found, structure.values(), strict=True):
        graph.nodes.append(helper.make_node("Identity", [graph.tensor(value)], [name]))
        outputs.append(described(name, shape))
    constants = list(graph.constants.values())
    made = helper.make_graph(graph.nodes, "bochner", [described("X", rows)], outputs, constants)
    model = helper.make_model(
        made,
        producer_name="bochner",
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=_IR_VERSION,
    )
    helper.set_model_props(model, {"schema": schema})
    onnx.checker.check_model(model)
    return model.SerializeToString()
