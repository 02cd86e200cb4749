"""jinja2's sandbox as transformers sets it up for chat templates, with bounds on what a template may compute.

A template comes with a checkpoint: it is somebody else's program.  The sandbox keeps it away from Python; the bounds
keep it from running for ever and from filling the memory.
"""

from __future__ import annotations

import functools
import json
import re
import threading
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import jinja2
from jinja2 import nodes
from jinja2.exceptions import SecurityError, TemplateError
from jinja2.ext import Extension, loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace
from jinja2.visitor import NodeTransformer

STEPS = 1_000_000  # passes through loops, and calls, of one rendering
SIZE = 1 << 24  # characters of a text, or items of a list, that a template makes
# Filters, and methods of a text, that make as much as a number says.
_WIDE = {"batch", "center", "expandtabs", "indent", "ljust", "rjust", "slice", "truncate", "wordwrap", "zfill"}

# Of a format: a width that a value gives, "%*d" or "{:{}}".
_COMPUTED = re.compile(r"%(\([^)]*\))?[-+ #0-9.]*\*|\{[^{}]*[:!][^{}]*\{")


class TooMuchError(TemplateError):
    """A template that computes for too long, or makes something too large."""


class Generation(Extension):
    """{% generation %} ... {% endgeneration %}: marks what an assistant said, for training; here it has no effect."""

    tags = {"generation"}  # noqa: RUF012  (jinja2's declaration)

    def parse(self, parser: Any) -> nodes.Node:
        line = next(parser.stream).lineno
        return nodes.Scope(parser.parse_statements(("name:endgeneration",), drop_needle=True), lineno=line)


class Environment(ImmutableSandboxedEnvironment):
    intercepted_binops = frozenset(["+", "*", "**", "%"])

    def __init__(self) -> None:
        super().__init__(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols])
        self._steps = threading.local()
        del self.globals["lipsum"]  # any number of words, at its leisure
        self.filters = {name: _bounded(name, function) for name, function in self.filters.items()}
        self.filters |= {"tojson": _tojson, "_counted": _counted, "_joined": _joined}
        self.globals |= {"raise_exception": _raise, "strftime_now": _now, "namespace": _Namespace, "dict": _Dict()}

    def begin(self) -> None:
        """A rendering begins in this thread."""
        self._steps.left = STEPS

    def step(self) -> None:
        self._steps.left -= 1
        if self._steps.left < 0:
            raise TooMuchError(f"it takes more than {STEPS} steps")

    def call(__self, __context: Any, __obj: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N805  (jinja2's names)
        __self.step()
        of = getattr(__obj, "__self__", None)
        if isinstance(of, str):
            _check(getattr(__obj, "__name__", ""), of, args, kwargs)
        return _sized(super().call(__context, __obj, *args, **kwargs))

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        wrapped = super().wrap_str_format(value)
        if wrapped is not None:
            _check_format(value.__self__)
        return wrapped

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        if operator == "+" and isinstance(left, str | list | tuple) and isinstance(right, str | list | tuple):
            _most(len(left) + len(right))
        elif operator == "*" and any(isinstance(x, str | list | tuple) for x in (left, right)):
            one, other = (left, right) if isinstance(left, str | list | tuple) else (right, left)
            _most(len(one) * other if isinstance(other, int) else 0)
        elif operator == "*" and isinstance(left, int) and isinstance(right, int):
            _most(left.bit_length() + right.bit_length())
        elif operator == "**" and isinstance(right, int):
            _most(abs(right) * max(64, left.bit_length() if isinstance(left, int) else 0))
        elif operator == "%" and isinstance(left, str):
            _check_format(left)
        return super().call_binop(context, operator, left, right)

    def _generate(self, source: nodes.Template, *args: Any, **kwargs: Any) -> str:
        return super()._generate(_Bounds().visit(source), *args, **kwargs)


class _Bounds(NodeTransformer):
    """Every loop counts its passes, and every joining of texts looks at their lengths."""

    def visit_For(self, node: nodes.For) -> nodes.For:  # noqa: N802  (the visitor's convention)
        self.generic_visit(node)
        node.iter = nodes.Filter(node.iter, "_counted", [], [], None, None, lineno=node.lineno)
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Expr:  # noqa: N802  (the visitor's convention)
        self.generic_visit(node)
        return nodes.Filter(nodes.List(node.nodes), "_joined", [], [], None, None, lineno=node.lineno)


class _Counted:
    def __init__(self, environment: Environment, values: Any):
        self.environment, self.values = environment, values

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[Any]:
        for value in self.values:
            self.environment.step()
            yield value


# With the context in its signature a filter is not computed while the template is compiled.
@jinja2.pass_context
def _counted(context: Any, values: Any) -> _Counted:
    return _Counted(context.environment, values)


@jinja2.pass_context
def _joined(context: Any, values: list[Any]) -> str:
    texts = [str(value) for value in values]
    _most(sum(map(len, texts)))
    return "".join(texts)


class _Dict:
    """`dict` without the attributes of Python's."""

    def __call__(self, *args: Any, **kwargs: Any) -> dict[Any, Any]:
        return dict(*args, **kwargs)

    def fromkeys(self, *args: Any) -> dict[Any, Any]:
        return dict.fromkeys(*args)


class _Namespace(Namespace):
    """`namespace` without attributes that begin with an underscore."""

    def __init__(*args: Any, **kwargs: Any) -> None:
        self, args = args[0], args[1:]
        values = dict(*args, **kwargs)
        for name in values:
            _check_name(name)
        Namespace.__init__(self, values)

    def __setitem__(self, name: str, value: Any) -> None:
        _check_name(name)
        super().__setitem__(name, value)


def _check_name(name: Any) -> None:
    if isinstance(name, str) and name.startswith("_"):
        raise SecurityError(f"a namespace has no attribute {name!r}")


def _raise(message: Any) -> None:
    raise TemplateError(str(message))


def _now(format: str) -> str:
    return datetime.now().strftime(format)


def _tojson(
    x: Any, ensure_ascii: bool = False, indent: int | None = None, separators: Any = None, sort_keys: bool = False
) -> str:
    """JSON as it is; jinja2's own filter would escape it for HTML."""
    _most(indent if isinstance(indent, int) else 0)
    return _sized(json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys))


def _bounded(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)  # jinja2's marks on it too
    def bounded(*args: Any, **kwargs: Any) -> Any:
        rest = args[1:] if hasattr(function, "jinja_pass_arg") else args  # after the context, if it takes that
        _check(name, rest[0] if rest else None, rest[1:], kwargs)
        return _sized(function(*args, **kwargs))

    return bounded


def _check(name: str, of: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Refuse a call of a filter, or of a method of a text, whose result would be too large to make."""
    if name in _WIDE:
        _most(max((abs(x) for x in (*args, *kwargs.values()) if isinstance(x, int)), default=0))
    elif name == "replace" and len(args) > 1 and all(isinstance(x, str) for x in (of, *args[:2])):
        _most(of.count(args[0]) * len(args[1]))
    elif name == "join":
        items, between = (args[0] if args else (), of) if isinstance(of, str) else (of, args[0] if args else "")
        if isinstance(items, list | tuple):
            _most(sum(len(x) if isinstance(x, str) else 16 for x in items) + len(str(between)) * len(items))
    elif name == "format" and isinstance(of, str):
        _check_format(of)


def _check_format(text: str) -> None:
    """A width with many digits would pad to as many characters; one that is computed is not known before."""
    if _COMPUTED.search(text.replace("%%", "")):
        raise TooMuchError("a format takes its width from a value")
    run = 0
    for c in text:
        run = run + 1 if c.isdigit() else 0
        _most(10**run if run > 5 else 0)


def _sized(value: Any) -> Any:
    if isinstance(value, str | list | tuple):
        _most(len(value))
    return value


def _most(size: int) -> None:
    if size > SIZE:
        raise TooMuchError(f"it makes something of size {size}, beyond {SIZE}")
