"""Render a chat template with jinja2's sandbox, as transformers does; the job of a confined process (see `child`)."""

from __future__ import annotations

import functools
import json
from datetime import datetime
from typing import Any

import jinja2
import jinja2.constants  # here, since `lipsum` and errors would import them where no file can be opened
import jinja2.debug
from jinja2 import nodes
from jinja2.exceptions import SecurityError, TemplateError, TemplateSyntaxError, UndefinedError
from jinja2.ext import Extension, loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace

MAX_MESSAGE = 2000  # characters of an error's message

# Python reads files when it first needs some codecs and modules: of the parser, and of some filters.
_WARM_UP = r"""{{ '\u00e9' | urlencode ~ [1.5] | pprint ~ '{:>3}'.format(1) ~ strftime_now('%Y') }}
{{ {'a': [1]} | tojson(indent=1) | striptags | wordwrap(9) }}{{ lipsum(1) }}"""


class RefusedError(TemplateError):
    """A template's own error about the messages, by raise_exception."""


class Generation(Extension):
    """{% generation %} ... {% endgeneration %} marks an assistant's text, for training; it writes its contents."""

    tags = {"generation"}  # noqa: RUF012  (jinja2's declaration)

    def parse(self, parser: Any) -> nodes.Node:
        line = next(parser.stream).lineno
        return nodes.Scope(parser.parse_statements(("name:endgeneration",), drop_needle=True), lineno=line)


class _Dict:
    """`dict` without the attributes of Python's class."""

    def __call__(self, *args: Any, **kwargs: Any) -> dict[Any, Any]:
        return dict(*args, **kwargs)

    def fromkeys(self, *args: Any, **kwargs: Any) -> dict[Any, Any]:
        return dict.fromkeys(*args, **kwargs)


class _Namespace(Namespace):
    """`namespace(...)` without names that begin with an underscore."""

    def __init__(*args: Any, **kwargs: Any):
        self, *rest = args
        values = dict(*rest, **kwargs)
        for name in values:
            _check_name(name)
        Namespace.__init__(self, values)

    def __setitem__(self, name: str, value: Any) -> None:
        _check_name(name)
        Namespace.__setitem__(self, name, value)


def _check_name(name: Any) -> None:
    if isinstance(name, str) and name.startswith("_"):
        raise SecurityError(f"a namespace has no attribute {name!r}")


def _tojson(
    x: Any, ensure_ascii: bool = False, indent: int | None = None, separators: Any = None, sort_keys: bool = False
) -> str:
    """JSON as it is; jinja2's own filter would escape it for HTML."""
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _raise(message: Any) -> None:
    raise RefusedError(message)


def _environment() -> jinja2.Environment:
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols]
    )
    environment.filters["tojson"] = _tojson
    environment.globals.update(raise_exception=_raise, dict=_Dict(), namespace=_Namespace)
    return environment


ENVIRONMENT = _environment()
_compile = functools.lru_cache(maxsize=1)(ENVIRONMENT.from_string)


def prepare() -> None:
    render(_WARM_UP, {}, (2026, 1, 1), 1 << 16)


def render(source: str, variables: dict[str, Any], clock: tuple[int, ...], most: int) -> bytes:
    """Kind, line (0: unknown) and text, `b"text 0\\n..."`: the rendered text, or an error's message of another kind."""
    template = None
    line, now = 0, datetime(*clock)  # type: ignore[arg-type]
    try:
        template = _compile(source)
        kind, text = "text", _render(template, {"strftime_now": now.strftime, **variables}, most)
        data = text.encode()
    except Exception as e:
        line = getattr(e, "lineno", None) or _line(e, template)
        kind, text = _describe(e)
        data = text[:MAX_MESSAGE].encode(errors="replace")
    return f"{kind} {line}\n".encode() + data


def _render(template: jinja2.Template, variables: dict[str, Any], most: int) -> str:
    parts: list[str] = []
    for part in template.root_render_func(template.new_context(variables)):
        most -= len(part)
        if most < 0:
            raise MemoryError("it writes too much")
        parts.append(part)
    return "".join(parts)


def _describe(error: Exception) -> tuple[str, str]:
    """Kind and message of an error."""
    if isinstance(error, TemplateSyntaxError):
        return "syntax", error.message or ""
    if isinstance(error, SecurityError):
        return "forbidden", str(error)
    if isinstance(error, UndefinedError):
        return "undefined", str(error)
    if isinstance(error, RefusedError):
        return "refused", str(error)
    if isinstance(error, MemoryError):
        return "stopped", str(error) or "it takes too much memory"
    if isinstance(error, RecursionError):
        return "stopped", "it is nested too deeply"
    if isinstance(error, UnicodeEncodeError):
        return "fails", f"it writes half of a surrogate pair at character {error.start}"
    return "fails", f"{type(error).__name__}: {error}"


def _line(error: Exception, template: jinja2.Template | None) -> int:
    """The template's line at which an error was raised."""
    line, trace = 0, error.__traceback__
    while template is not None and trace is not None:
        if trace.tb_frame.f_globals.get("__jinja_template__") is template:
            line = template.get_corresponding_lineno(trace.tb_lineno)
        trace = trace.tb_next
    return line
