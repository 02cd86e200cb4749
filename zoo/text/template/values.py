"""What a template's expressions can be: plain data, and functions that make plain data of plain data.

jinja2 looks attributes up in Python objects, and its sandbox forbids some.  Here nothing is looked up in an object:
a name leads to an entry of a dict, or to one of the methods listed below, or nowhere.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Mapping
from typing import Any

from jinja2.exceptions import SecurityError
from jinja2.filters import _GroupTuple as Group
from jinja2.runtime import LoopContext, Macro, Undefined
from jinja2.sandbox import is_internal_attribute, modifies_known_mutable
from jinja2.utils import Cycler, Joiner
from markupsafe import Markup

_TEXT = (
    "capitalize casefold center count endswith expandtabs find index isalnum isalpha isascii isdecimal isdigit "
    "isidentifier islower isnumeric isprintable isspace istitle isupper join ljust lower lstrip partition removeprefix "
    "removesuffix replace rfind rindex rjust rpartition rsplit rstrip split splitlines startswith strip swapcase title "
    "translate upper zfill"
)
TEXT = frozenset(_TEXT.split())
_LOOP = "index index0 revindex revindex0 first last length depth depth0 previtem nextitem"
METHODS: dict[type, frozenset[str]] = {
    str: TEXT,
    Markup: TEXT,
    list: frozenset({"copy", "count", "index"}),
    tuple: frozenset({"count", "index"}),
    Group: frozenset({"count", "index"}),
    dict: frozenset({"copy", "get", "items", "keys", "values"}),
    Cycler: frozenset({"next", "reset"}),
    LoopContext: frozenset({"changed", "cycle"}),
}
FIELDS: dict[type, frozenset[str]] = {
    Group: frozenset({"grouper", "list"}),
    Cycler: frozenset({"current"}),
    LoopContext: frozenset(_LOOP.split()),
}


class Function:
    """What a template can call."""

    __slots__ = ("_call", "attributes")

    def __init__(self, call: Callable[..., Any], attributes: Mapping[str, Function] | None = None):
        self._call, self.attributes = call, attributes or {}

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self._call(*args, **kwargs)

    def __repr__(self) -> str:
        raise SecurityError("a function cannot be printed")


class Namespace:
    """`namespace(...)`: the one thing that a template can change."""

    __slots__ = ("values",)

    def __init__(self, /, *args: Any, **kwargs: Any):
        self.values: dict[Any, Any] = {}
        for name, value in dict(*args, **kwargs).items():
            self.put(name, value)

    def put(self, name: Any, value: Any) -> None:
        if isinstance(name, str) and name.startswith("_"):
            raise SecurityError(f"a namespace has no attribute {name!r}")
        self.values[name] = value

    def __repr__(self) -> str:
        return f"<Namespace {self.values!r}>"


_ITERATORS = (
    *(types.GeneratorType, type(reversed([])), type(reversed("")), type(iter([])), type(iter(""))),
    *(type(iter({})), type(reversed(range(0))), type(reversed({})), zip, map, filter),
)
_VIEWS = (type({}.keys()), type({}.values()), type({}.items()))
_PRINTED = frozenset(
    [
        *(types.NoneType, bool, int, float, complex, str, Markup, list, tuple, dict, range, set, *_VIEWS),
        *(Group, Undefined, Namespace, LoopContext, Macro),
    ]
)
_KINDS = _PRINTED | {Function, Cycler, Joiner, *_ITERATORS}


def closed(value: Any) -> Any:
    """The value, if it is of the kinds that a template may hold."""
    if type(value) not in _KINDS:
        raise SecurityError(f"it makes a value of type {type(value).__name__}")
    return value


def text_of(value: Any) -> str:
    """The text as which a value is written."""
    kind = type(value)
    if kind is str:
        return value
    if kind not in _PRINTED:
        raise SecurityError(f"a value of type {kind.__name__} cannot be printed")
    return str(value)


@functools.cache
def _names(kind: type) -> frozenset[str]:
    return frozenset(dir(kind))


def attribute(value: Any, name: str) -> Any:
    """What Python would call `value.name`; NotImplemented if there is nothing of that name."""
    kind = type(value)
    if kind is Undefined:
        return value[name]  # an error of jinja2's, that names what is undefined
    if kind is Namespace:
        return value.values.get(name, NotImplemented)
    if kind is Function:
        return value.attributes.get(name, NotImplemented)
    if name in METHODS.get(kind, ()):
        return Function(getattr(value, name))
    if name in FIELDS.get(kind, ()):
        return closed(getattr(value, name))
    if name not in _names(kind):
        return NotImplemented
    hint = f"access to attribute {name!r} of {kind.__name__!r} object is unsafe."
    if name.startswith("_") or is_internal_attribute(value, name) or modifies_known_mutable(value, name):
        return Undefined(hint, obj=value, name=name, exc=SecurityError)  # as in jinja2's sandbox, an error once used
    raise SecurityError(hint)
