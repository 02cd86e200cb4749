"""The expressions of a template, as closures over plain values, with jinja2's own filters and tests."""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Mapping
from typing import Any

import jinja2
from jinja2 import nodes
from jinja2.exceptions import SecurityError, TemplateRuntimeError, TemplateSyntaxError
from jinja2.ext import Extension, loopcontrols
from jinja2.filters import FILTERS
from jinja2.runtime import Context, LoopContext, Macro, Undefined
from jinja2.sandbox import SandboxedFormatter, safe_range
from jinja2.tests import TESTS
from jinja2.utils import Cycler, Joiner, missing

from .scope import RefusedError, Scope, Value
from .values import Function, Namespace, attribute, closed, text_of

# Of jinja2's filters `attr` looks into Python objects, `random` is not repeatable, and `urlize` makes HTML by patterns
# that take long to match.  `lipsum` makes words, at random.
_REFUSED = ("attr", "random", "urlize", "lipsum")
_USED = (
    "abs batch capitalize center count d default dictsort e escape filesizeformat first float forceescape format "
    "groupby indent int join last length list lower items map min max pprint reject rejectattr replace reverse round "
    "safe select selectattr slice sort string striptags sum title trim truncate unique upper urlencode wordcount "
    "wordwrap xmlattr"
)
USED = _USED.split()


class Generation(Extension):
    """{% generation %} ... {% endgeneration %}: marks what an assistant said, for training; it writes what it holds."""

    tags = {"generation"}  # noqa: RUF012  (jinja2's declaration)

    def parse(self, parser: Any) -> nodes.Node:
        line = next(parser.stream).lineno
        return nodes.Scope(parser.parse_statements(("name:endgeneration",), drop_needle=True), lineno=line)


def tojson(
    x: Any, ensure_ascii: bool = False, indent: int | None = None, separators: Any = None, sort_keys: bool = False
) -> str:
    """JSON as it is; jinja2's own filter would escape it for HTML."""
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _refuse(name: str) -> Callable[..., Any]:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise SecurityError(f"{name!r} is not for chat templates")

    return refuse


class Environment(jinja2.Environment):
    """What jinja2's parser, filters and tests ask of an environment; attributes lead to nothing but `values`."""

    def __init__(self) -> None:
        super().__init__(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols])
        self.filters = {name: FILTERS[name] for name in USED} | {"tojson": tojson}
        self.filters |= {name: _refuse(name) for name in _REFUSED if name in FILTERS}
        self.tests = dict(TESTS)
        self.globals = {}

    def getattr(self, obj: Any, attribute: str) -> Any:
        if (found := _attribute_of(obj, attribute)) is not NotImplemented:
            return found
        try:
            return closed(obj[attribute])
        except (TypeError, LookupError):
            return Undefined(obj=obj, name=attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        try:
            return closed(obj[argument])
        except (TypeError, LookupError):
            if isinstance(argument, str) and (found := _attribute_of(obj, argument)) is not NotImplemented:
                return found
            return Undefined(obj=obj, name=argument)


def _attribute_of(value: Any, name: str) -> Any:
    if type(value) is str and name == "format":
        return Function(lambda *args, **kwargs: SandboxedFormatter(ENVIRONMENT).vformat(value, args, kwargs))
    return attribute(value, name)


ENVIRONMENT = Environment()
CONTEXT = Context(ENVIRONMENT, {}, None, {})


def _raise(message: Any) -> None:
    raise RefusedError(str(message))


def _dict(*args: Any, **kwargs: Any) -> dict[Any, Any]:
    return dict(*args, **kwargs)


GLOBALS: dict[str, Any] = {
    "range": Function(safe_range),
    "dict": Function(_dict, {"fromkeys": Function(dict.fromkeys)}),
    "namespace": Function(Namespace),
    "cycler": Function(Cycler),
    "joiner": Function(Joiner),
    "raise_exception": Function(_raise),
    "lipsum": Function(_refuse("lipsum")),
}


WRITTEN = " written"  # in the scope of a block, what was written in it
_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "gt": operator.gt,
    "gteq": operator.ge,
    "lt": operator.lt,
    "lteq": operator.le,
    "in": lambda value, among: value in among,
    "notin": lambda value, among: value not in among,
}
_OPERATORS: dict[type, Callable[[Any, Any], Any]] = {
    nodes.Add: operator.add,
    nodes.Sub: operator.sub,
    nodes.Mul: operator.mul,
    nodes.Div: operator.truediv,
    nodes.FloorDiv: operator.floordiv,
    nodes.Mod: operator.mod,
    nodes.Pow: operator.pow,
}
_SIGNS: dict[type, Callable[[Any], Any]] = {nodes.Not: operator.not_, nodes.Neg: operator.neg, nodes.Pos: operator.pos}


def value_of(node: Any) -> Value:
    if combine := _OPERATORS.get(type(node)):
        left, right = value_of(node.left), value_of(node.right)
        return lambda scope: combine(left(scope), right(scope))
    if sign := _SIGNS.get(type(node)):
        operand = value_of(node.node)
        return lambda scope: sign(operand(scope))
    make = _VALUES.get(type(node))
    if make is None:
        raise TemplateSyntaxError(f"{type(node).__name__.lower()} is not for chat templates", node.lineno)
    return make(node)


def written_text(scope: Scope) -> Any:
    return scope.values[WRITTEN]


def _name(node: nodes.Name) -> Value:
    name = node.name
    if name == "self":
        raise TemplateSyntaxError("`self` is not for chat templates", node.lineno)

    def find(scope: Scope | None) -> Any:
        while scope is not None:
            if name in scope.values:
                value = scope.values[name]
                return Undefined(name=name) if value is missing else value
            scope = scope.parent
        return Undefined(name=name)

    return find


def _const(node: nodes.Const) -> Value:
    value = node.value
    return lambda scope: value


def _list(node: nodes.List) -> Value:
    items = [value_of(item) for item in node.items]
    return lambda scope: [item(scope) for item in items]


def _tuple(node: nodes.Tuple) -> Value:
    items = [value_of(item) for item in node.items]
    return lambda scope: tuple(item(scope) for item in items)


def _dictionary(node: nodes.Dict) -> Value:
    items = [(value_of(pair.key), value_of(pair.value)) for pair in node.items]
    return lambda scope: {key(scope): value(scope) for key, value in items}


def _and(node: nodes.And) -> Value:
    left, right = value_of(node.left), value_of(node.right)
    return lambda scope: left(scope) and right(scope)


def _or(node: nodes.Or) -> Value:
    left, right = value_of(node.left), value_of(node.right)
    return lambda scope: left(scope) or right(scope)


def _compare(node: nodes.Compare) -> Value:
    first = value_of(node.expr)
    rest = [(_COMPARISONS[operand.op], value_of(operand.expr)) for operand in node.ops]

    def compare(scope: Scope) -> Any:
        left, found = first(scope), True
        for holds, value in rest:
            right = value(scope)
            found = holds(left, right)
            if not found:
                return found
            left = right
        return found

    return compare


def _concat(node: nodes.Concat) -> Value:
    parts = [value_of(part) for part in node.nodes]
    return lambda scope: "".join([text_of(part(scope)) for part in parts])


def _conditional(node: nodes.CondExpr) -> Value:
    test, then = value_of(node.test), value_of(node.expr1)
    if node.expr2 is None:
        hint = f"the inline if-expression on line {node.lineno} evaluated to false and no else section was defined."
        return lambda scope: then(scope) if test(scope) else Undefined(hint)
    otherwise = value_of(node.expr2)
    return lambda scope: then(scope) if test(scope) else otherwise(scope)


def _attribute(node: nodes.Getattr) -> Value:
    value, name = value_of(node.node), node.attr
    return lambda scope: ENVIRONMENT.getattr(value(scope), name)


def _item(node: nodes.Getitem) -> Value:
    value = value_of(node.node)
    if not isinstance(node.arg, nodes.Slice):
        key = value_of(node.arg)
        return lambda scope: ENVIRONMENT.getitem(value(scope), key(scope))
    ends = [None if end is None else value_of(end) for end in (node.arg.start, node.arg.stop, node.arg.step)]

    def cut(scope: Scope) -> Any:
        whole = value(scope)
        return closed(whole[slice(*(None if end is None else end(scope) for end in ends))])

    return cut


def _arguments(node: Any) -> Callable[[Scope], tuple[list[Any], dict[str, Any]]]:
    values = [value_of(value) for value in node.args]
    named = [(pair.key, value_of(pair.value)) for pair in node.kwargs]
    more = None if node.dyn_args is None else value_of(node.dyn_args)
    more_named = None if node.dyn_kwargs is None else value_of(node.dyn_kwargs)

    def arguments(scope: Scope) -> tuple[list[Any], dict[str, Any]]:
        args = [value(scope) for value in values]
        kwargs = {key: value(scope) for key, value in named}
        if more is not None:
            args.extend(more(scope))
        if more_named is not None:
            given = dict(more_named(scope))
            if twice := given.keys() & kwargs.keys():
                raise TypeError(f"the argument {min(twice)!r} is given twice")
            kwargs.update(given)
        return args, kwargs

    return arguments


def call_of(node: nodes.Call) -> Callable[..., Any]:
    function, arguments = value_of(node.node), _arguments(node)

    def call(scope: Scope, more: Mapping[str, Any] | None = None) -> Any:
        scope.run.step()
        called = function(scope)
        args, kwargs = arguments(scope)
        if more:
            kwargs.update(more)
        if type(called) in (Function, Macro, LoopContext, Joiner):
            return closed(called(*args, **kwargs))
        if isinstance(called, Undefined):
            return called()  # an error of jinja2's, that names what is undefined
        raise TypeError(f"a value of type {type(called).__name__} cannot be called")

    return call


def filter_of(node: nodes.Filter) -> Value:
    value = written_text if node.node is None else value_of(node.node)
    name, arguments = node.name, _arguments(node)

    def change(scope: Scope) -> Any:
        if name not in ENVIRONMENT.filters:  # an error once it is used: jinja2 takes unknown ones where they are not
            raise TemplateRuntimeError(f"there is no filter {name!r} for chat templates")
        of = value(scope)
        args, kwargs = arguments(scope)
        return closed(ENVIRONMENT.call_filter(name, of, args, kwargs, CONTEXT, CONTEXT.eval_ctx))

    return change


def _test(node: nodes.Test) -> Value:
    value, name, arguments = value_of(node.node), node.name, _arguments(node)

    def test(scope: Scope) -> Any:
        if name not in ENVIRONMENT.tests:
            raise TemplateRuntimeError(f"there is no test {name!r}")
        of = value(scope)
        args, kwargs = arguments(scope)
        return closed(ENVIRONMENT.call_test(name, of, args, kwargs, CONTEXT, CONTEXT.eval_ctx))

    return test


_VALUES: dict[type, Callable[[Any], Value]] = {
    nodes.Name: _name,
    nodes.Const: _const,
    nodes.List: _list,
    nodes.Tuple: _tuple,
    nodes.Dict: _dictionary,
    nodes.And: _and,
    nodes.Or: _or,
    nodes.Compare: _compare,
    nodes.Concat: _concat,
    nodes.CondExpr: _conditional,
    nodes.Getattr: _attribute,
    nodes.Getitem: _item,
    nodes.Call: call_of,
    nodes.Filter: filter_of,
    nodes.Test: _test,
}
