"""Lengths that are known only when a graph runs.

A `Dim` is an int with its value in the trace, so that a model's Python code runs unchanged, and an expression in the
lengths of the graph's inputs, from which nodes compute it.  Equal expressions are equal.  Any other comparison is
decided by the value in the trace and recorded as a guard, which is what the graph assumes about its inputs.
"""

from __future__ import annotations

import ast
import functools
import operator
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .graph import GraphBuilder

MAX_EXPRESSION = 4000  # characters

# A sum of products: (sorted factors of a product) -> its coefficient.
Terms = dict[tuple[str, ...], int]


class Repeated(list):
    """The result of `[x] * dim`: the items and the number of repeats."""

    def __init__(self, items: list[Any], times: Dim):
        super().__init__(items)
        self.times = times


class Dim(int):
    """A dynamic length; as an int it has its value in the trace."""

    graph: GraphBuilder
    terms: Terms

    def __new__(cls, value: int, graph: GraphBuilder, terms: Terms) -> Dim:
        self = int.__new__(cls, value)
        self.graph, self.terms = graph, terms
        return self

    @property
    def text(self) -> str:
        """The expression, with names, integers, +, -, *, // and parentheses."""
        parts = []
        for factors, count in self.terms.items():
            shown = "*".join(factors)
            parts.append(shown if count == 1 and factors else f"{count}*{shown}" if factors else str(count))
        return " + ".join(parts).replace("+ -", "- ")

    def __repr__(self) -> str:
        return f"Dim({self.text}, {int(self)})"

    def _sum(self, other: Any, sign: int, own: int = 1) -> Any:
        if not isinstance(other, int):
            return NotImplemented
        terms = {factors: own * count for factors, count in self.terms.items()}
        for factors, count in terms_of(other).items():
            terms[factors] = terms.get(factors, 0) + sign * count
        return _dim(self.graph, own * _int(self) + sign * _int(other), terms)

    def __add__(self, other: Any) -> Any:
        return self._sum(other, 1)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self._sum(other, -1)

    def __rsub__(self, other: Any) -> Any:
        return self._sum(other, 1, -1)

    def __neg__(self) -> Any:
        return self._sum(0, 1, -1)

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, list):
            return Repeated(other, self)
        if not isinstance(other, int):
            return NotImplemented
        terms: Terms = {}
        for a, m in self.terms.items():
            for b, n in terms_of(other).items():
                factors = tuple(sorted(a + b))
                terms[factors] = terms.get(factors, 0) + m * n
        return _dim(self.graph, _int(self) * _int(other), terms)

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> Any:
        return _quotient(self, other) if isinstance(other, int) else NotImplemented

    def __rfloordiv__(self, other: Any) -> Any:
        return _quotient(other, self) if isinstance(other, int) else NotImplemented

    def __mod__(self, other: Any) -> Any:
        return self - self // other * other if isinstance(other, int) else NotImplemented

    def __truediv__(self, other: Any) -> Any:
        return float(self) / other

    def __rtruediv__(self, other: Any) -> Any:
        return other / float(self)

    def __float__(self) -> float:
        return float(int(self))

    def __int__(self) -> int:
        """A plain number; from here on the graph is valid for this length only."""
        self.graph.guard(self, "==", _int(self))
        return _int(self)

    def _compare(self, other: Any, name: str, decide: Callable[[Any, Any], bool]) -> Any:
        if not isinstance(other, int):
            return NotImplemented
        apart = self - other
        if not isinstance(apart, Dim):  # they differ by a number, whatever the inputs
            return decide(apart, 0)
        found = decide(_int(self), _int(other))
        self.graph.guard(self, name if found else NEGATIONS[name], other)
        return found

    def __eq__(self, other: Any) -> Any:
        return self._compare(other, "==", operator.eq)

    def __ne__(self, other: Any) -> Any:
        return self._compare(other, "!=", operator.ne)

    def __lt__(self, other: Any) -> Any:
        return self._compare(other, "<", operator.lt)

    def __le__(self, other: Any) -> Any:
        return self._compare(other, "<=", operator.le)

    def __gt__(self, other: Any) -> Any:
        return self._compare(other, ">", operator.gt)

    def __ge__(self, other: Any) -> Any:
        return self._compare(other, ">=", operator.ge)

    def __bool__(self) -> bool:
        return self != 0

    __hash__ = int.__hash__


NEGATIONS = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


def _int(value: int) -> int:
    return int.__int__(value)


def hint(value: int) -> int:
    """The length in the trace; no decision may depend on it, since no guard is recorded."""
    return _int(value)


def is_fixed(value: int) -> bool:
    """Return True if a length does not depend on the inputs."""
    return not isinstance(value, Dim)


def is_same(a: int, b: int) -> bool:
    """Return True if two lengths are equal for all inputs; records no guard."""
    apart = a - b
    return is_fixed(apart) and apart == 0


def terms_of(value: int) -> Terms:
    return value.terms if isinstance(value, Dim) else {(): value}


def text_of(value: int) -> str:
    return value.text if isinstance(value, Dim) else str(value)


def _dim(graph: GraphBuilder, value: int, terms: Terms) -> int:
    kept = {factors: count for factors, count in sorted(terms.items(), reverse=True) if count}
    if not kept.keys() - {()}:
        return kept.get((), 0)
    return Dim(value, graph, kept)


def _quotient(a: int, b: int) -> int:
    graph = a.graph if isinstance(a, Dim) else b.graph  # type: ignore[attr-defined]
    if is_fixed(b) and is_fixed(rest := terms_of(a).get((), 0)) and rest // b:  # the constant's whole part
        return _quotient(a - rest // b * b, b) + rest // b
    divisor = list(terms_of(b).items())
    if len(divisor) == 1:  # exact where every product has all factors of the divisor
        (factors, count), terms = divisor[0], {}
        for whole, n in terms_of(a).items():
            rest = list(whole)
            if n % count or any(rest.count(f) < factors.count(f) for f in factors):
                break
            for f in factors:
                rest.remove(f)
            terms[tuple(rest)] = n // count
        else:
            return _dim(graph, _int(a) // _int(b), terms)
    name = f"(({text_of(a)})//({text_of(b)}))"
    graph.quotients[name] = a, b
    return Dim(_int(a) // _int(b), graph, {(name,): 1})


def evaluate(text: str, lengths: Mapping[str, int]) -> Any:
    """The value of a guard or an expression for these lengths of a graph's inputs; ValueError if it has none."""

    def value(node: ast.AST) -> Any:
        if isinstance(node, ast.Name):
            return lengths[node.id]
        if isinstance(node, ast.Constant) and type(node.value) is int:
            return node.value
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -value(node.operand)
        if isinstance(node, ast.BinOp):
            return ARITHMETIC[type(node.op)](value(node.left), value(node.right))
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            return COMPARISONS[type(node.ops[0])](value(node.left), value(node.comparators[0]))
        raise TypeError

    try:
        return value(_parse(text))
    except (ArithmeticError, LookupError, MemoryError, RecursionError, SyntaxError, TypeError, ValueError):
        raise ValueError(f"{text!r:.200} is not an expression of lengths {', '.join(lengths)}") from None


@functools.lru_cache(maxsize=1024)
def _parse(text: str) -> ast.expr:
    if len(text) > MAX_EXPRESSION:
        raise ValueError
    return ast.parse(text, mode="eval").body


ARITHMETIC: dict[type, Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}
COMPARISONS: dict[type, Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
