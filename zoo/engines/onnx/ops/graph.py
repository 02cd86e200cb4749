"""The graph that a trace records: nodes as named tuples, constants as arrays.

Nothing here needs the package onnx; `zoo.engines.onnx.proto` writes the format.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ....quant import QuantRows
from .dims import NEGATIONS, Dim, terms_of, text_of

MICROSOFT = "com.microsoft"  # the domain of ONNX Runtime's own operators
_STANDARD_OPERATORS = """
Abs Add And ArgMax AveragePool Cast Clip Concat Conv ConvTranspose Cos CumSum DepthToSpace Div DynamicQuantizeLinear
Equal Exp Expand Floor Gather GatherND Gelu Gemm Greater GreaterOrEqual GridSample HardSigmoid HardSwish Identity
InstanceNormalization LayerNormalization LeakyRelu Less LessOrEqual Log MatMul MatMulInteger Max MaxPool Min Mod Mul
Neg Not Or Pad Pow Range ReduceMax ReduceMean ReduceSum Relu Reshape Resize ScatterElements Shape Sigmoid Sin Slice
Softmax Softplus Split Sqrt Squeeze Sub Tanh Tile TopK Transpose Unsqueeze Where
"""
_MICROSOFT = """
DynamicQuantizeMatMul GroupQueryAttention MatMulIntegerToFloat MatMulNBits MultiHeadAttention RotaryEmbedding
"""
# The operators that graphs are made of, by domain; an export with any other was not written by zoo, and is refused.
OPERATORS = {"": frozenset(_STANDARD_OPERATORS.split()), MICROSOFT: frozenset(_MICROSOFT.split())}
DTYPES = (np.dtype(np.float32), np.dtype(np.int64), np.dtype(np.bool_))


class Node(NamedTuple):
    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: dict[str, Any]
    domain: str = ""

    def nodes(self) -> Iterator[Node]:
        """The node itself and those of its branches."""
        yield self
        for value in self.attributes.values():
            for node in value.nodes if isinstance(value, Branch) else ():
                yield from node.nodes()


class Branch(NamedTuple):
    """A graph inside the graph, which reads the names around it and has no constants of its own.

    outputs, inputs: their names, types and shapes; a length that is not fixed is None.
    """

    nodes: tuple[Node, ...]
    outputs: tuple[tuple[str, np.dtype, tuple[int | None, ...] | None], ...]
    inputs: tuple[tuple[str, np.dtype, tuple[int | None, ...] | None], ...] = ()


def fixed_lengths(shape: Sequence[int]) -> tuple[int | None, ...]:
    """A shape whose dynamic lengths are None."""
    return tuple(None if isinstance(n, Dim) else int(n) for n in shape)


class Recipe:
    """Makes arrays from a weight when they are written; a thread has those of only one recipe in memory at a time."""

    _here: ClassVar[Any] = threading.local()  # its `latest`: the recipe, and what it made

    def __init__(self, make: Callable[[], Sequence[np.ndarray]]):
        self.make = make

    def array(self, index: int) -> np.ndarray:
        owner, made = getattr(Recipe._here, "latest", (None, ()))
        if owner is not self:
            del made
            Recipe.forget()
            made = self.make()
            Recipe._here.latest = self, made
        return made[index]

    @staticmethod
    def forget() -> None:
        """Let go of what this thread made last."""
        Recipe._here.latest = None, ()


class Made(NamedTuple):
    """Array `number` of a recipe."""

    recipe: Recipe
    number: int
    shape: tuple[int, ...]
    dtype: np.dtype

    def array(self) -> np.ndarray:
        return self.recipe.array(self.number)


class Stored(NamedTuple):
    """A constant: an array, one that is made later, or arrays and quantised matrices concatenated by rows."""

    parts: tuple[np.ndarray | QuantRows | Made, ...]

    @property
    def dtype(self) -> np.dtype:
        first = self.parts[0]
        return np.dtype(np.float32) if isinstance(first, QuantRows) else first.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        first = self.parts[0].shape
        return first if len(self.parts) == 1 else (sum(len(p) for p in self.parts), *first[1:])

    def array(self) -> np.ndarray:
        """The C-contiguous array; one that is stored so is not copied."""
        parts = [
            p.dequantise() if isinstance(p, QuantRows) else p.array() if isinstance(p, Made) else p for p in self.parts
        ]
        # ascontiguousarray would turn a scalar into a vector.
        return np.asarray(parts[0] if len(parts) == 1 else np.concatenate(parts), order="C")


class GraphBuilder:
    """Nodes, constants, and guards on the inputs' lengths.

    standard: use only operators of the ONNX standard, for any runtime.  precision: an object whose
    `linear(x, weight, bias)` and `embedding(ids, table)` may add nodes of their own, or return None for plain ones.
    on_cpu: no other processor runs the graph.
    """

    def __init__(self, standard: bool = False, precision: Any = None, on_cpu: bool = False):
        self.standard, self.precision, self.on_cpu = standard, precision, on_cpu
        self.nodes: list[Node] = []
        self.constants: dict[str, Stored] = {}
        self.guards: dict[str, None] = {}  # in order, as "T <= 512"
        self.quotients: dict[str, tuple[int, int]] = {}
        self.names: dict[int, str] = {}  # of weights, by the identity of their arrays
        self.memo: dict[Any, Any] = {}  # values that several ops share
        self._known: dict[Any, str] = {}
        self._measured: dict[str, tuple[str, int]] = {}  # name of a length -> (input, axis)
        self._lengths: dict[Any, str] = {}
        self._count = 0

    def node(
        self, op: str, inputs: list[str] | tuple[str, ...], outputs: int = 1, domain: str = "", **attributes: Any
    ) -> Any:
        """Append a node -> the name of its output, or the names of several."""
        assert op in OPERATORS[domain], f"list {op} in OPERATORS, so that exports with it are accepted"
        names = tuple(f"{op.lower()}_{self._count + i}" for i in range(outputs))
        self._count += outputs
        self.nodes.append(Node(op, tuple(inputs), names, attributes, domain))
        return names[0] if outputs == 1 else names

    def choose(self, condition: str, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
        """The result of `then` where a bool is True when the graph runs, else that of `otherwise`.

        Only for graphs that stay in the cache: an export with branches would be refused.
        """
        (first, y), (second, _) = self._branch(then), self._branch(otherwise)
        name = f"if_{self._count}"
        self._count += 1
        self.nodes.append(Node("If", (condition,), (name,), {"then_branch": first, "else_branch": second}))
        return type(y)(self, name, y.shape, y.dtype)

    def _branch(self, make: Callable[[], Any]) -> tuple[Branch, Any]:
        """A branch with the nodes that `make` adds, which nothing outside of it may use, and its result."""
        outside = self.nodes, self.memo, self._lengths
        self.nodes, self.memo, self._lengths = [], dict(self.memo), dict(self._lengths)
        try:
            y = make()
            return Branch(tuple(self.nodes), ((y.name, y.dtype, None),)), y
        finally:
            self.nodes, self.memo, self._lengths = outside

    def loop(self, most: int, state: Sequence[Any], step: Callable[..., Any]) -> tuple[str, ...]:
        """The names of arrays with an axis of their own, the first, for the steps of a loop: up to `most`.

        state: arrays before the first step.  step: of the arrays of the state -> a bool, whether another step follows,
        the state's next arrays, and the results of the step, one for each name.

        Only for graphs that stay in the cache: an export with a loop would be refused.
        """
        count, self._count = self._count, self._count + 1
        names = [f"state_{count}_{i}" for i in range(len(state))]
        given = [type(one)(self, name, one.shape, one.dtype) for name, one in zip(names, state, strict=True)]
        outside = self.nodes, self.memo, self._lengths
        self.nodes, self.memo, self._lengths = [], dict(self.memo), dict(self._lengths)
        try:
            goes_on, after, results = step(*given)
            # An output of its own for each: one array may be both state and result.
            named = {f"next_{count}_{i}": one for i, one in enumerate(after)}
            named |= {f"result_{count}_{i}": one for i, one in enumerate(results)}
            nodes = (*self.nodes, *(Node("Identity", (one.name,), (name,), {}) for name, one in named.items()))
        finally:
            self.nodes, self.memo, self._lengths = outside
        outputs = [(goes_on.name, goes_on.dtype, ())]
        outputs += [(name, one.dtype, fixed_lengths(one.shape)) for name, one in named.items()]
        inputs = [(f"step_{count}", np.dtype(np.int64), ()), (f"goes_{count}", np.dtype(np.bool_), ())]
        inputs += [(one.name, one.dtype, fixed_lengths(one.shape)) for one in given]
        body = Branch(nodes, tuple(outputs), tuple(inputs))
        found = tuple(f"loop_{count}_{i}" for i in range(len(state) + len(results)))
        first = [self.store(np.array(most, np.int64)), self.store(np.array(True)), *(one.name for one in state)]
        self.nodes.append(Node("Loop", tuple(first), found, {"body": body}))
        return found[len(state) :]

    def store(self, *parts: np.ndarray | QuantRows | Made, name: str | None = None) -> str:
        """Add a constant and return its name; the same arrays, and small equal ones, are stored once."""
        first = parts[0]
        if len(parts) == 1 and isinstance(first, np.ndarray) and first.size <= 64:
            key = (first.dtype.str, first.shape, first.tobytes())
        else:
            arrays = (p.arrays if isinstance(p, QuantRows) else (p,) for p in parts)
            key = tuple(id(array) for some in arrays for array in some)
        if key not in self._known:
            name = self.names.get(id(first)) if name is None else name
            if name is None or name in self.constants:
                name = f"constant_{len(self.constants)}"
            self.constants[name] = Stored(parts)
            self._known[key] = name
        return self._known[key]

    def guard(self, a: int, comparison: str, b: int) -> None:
        """Record a guard.  A plain number, if there is one, goes to the right."""
        if not isinstance(a, Dim):
            a, b = b, a
            comparison = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}.get(comparison, comparison)
        assert comparison in NEGATIONS
        self.guards[f"{text_of(a)} {comparison} {text_of(b)}"] = None

    def input_dim(self, name: str, value: int, tensor: str, axis: int) -> Dim:
        """A length that the graph reads off one of its inputs."""
        self._measured.setdefault(name, (tensor, axis))
        return Dim(value, self, {(name,): 1})

    def length(self, value: int) -> str:
        """A tensor (1,) of int64 that holds a length."""
        if not isinstance(value, Dim):
            return self.store(np.array([value], np.int64))
        key = ("dim", *value.terms.items())
        if key not in self._lengths:
            total = None
            for factors, count in terms_of(value).items():
                names = [self._factor(f) for f in factors]
                if count != 1 or not names:
                    names.append(self.store(np.array([count], np.int64)))
                product = names[0]
                for other in names[1:]:
                    product = self.node("Mul", [product, other])
                total = product if total is None else self.node("Add", [total, product])
            assert total is not None
            self._lengths[key] = total
        return self._lengths[key]

    def _factor(self, name: str) -> str:
        if name not in self._lengths:
            if name in self.quotients:
                a, b = self.quotients[name]
                self._lengths[name] = self.node("Div", [self.length(a), self.length(b)])
            else:
                tensor, axis = self._measured[name]
                self._lengths[name] = self.node("Shape", [tensor], start=axis, end=axis + 1)
        return self._lengths[name]

    def lengths(self, shape: tuple[int, ...]) -> str:
        """A tensor (N,) of int64 that holds a shape."""
        if not any(isinstance(n, Dim) for n in shape):
            return self.store(np.array(shape, np.int64))
        if len(shape) == 1:
            return self.length(shape[0])
        key = ("shape", *(text_of(n) for n in shape))
        if key not in self._lengths:
            self._lengths[key] = self.node("Concat", [self.length(n) for n in shape], axis=0)
        return self._lengths[key]
