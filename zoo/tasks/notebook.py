"""Results as notebooks show them: tables of HTML, and pictures.  Every text is escaped."""

from __future__ import annotations

import base64
import functools
import io
from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

if TYPE_CHECKING:
    from PIL import Image

T = TypeVar("T")
MAX_ROWS = 200  # a notebook holds what it shows
MAX_INPUTS = 20
MAX_SIDE = 800  # pixels of a picture


class Rows(list[T]):
    """A list of named tuples, or of such lists: a list in every respect, which a notebook shows as a table."""

    def _repr_html_(self) -> str:
        if not self or hasattr(self[0], "_fields"):
            return html_table(self)
        parts = [f"<p>{i}</p>{_html(one)}" for i, one in enumerate(self[:MAX_INPUTS])]
        return "\n".join([*parts, _html_of_more(len(self) - MAX_INPUTS)])


def as_rows(found: Any) -> Any:
    """A list of named tuples, of such lists or of what a notebook can show, as `Rows`; anything else as it is."""
    if type(found) is not list or not found:
        return found
    rows = [as_rows(one) for one in found]
    return Rows(rows) if all(map(_is_shown, rows)) else found


def _is_shown(one: Any) -> bool:
    return hasattr(one, "_fields") or hasattr(one, "_repr_html_") or (type(one) is list and not one)


def with_rows(call: Callable[..., Any]) -> Callable[..., Any]:
    """A task's `__call__` whose lists are `Rows`."""

    @functools.wraps(call)
    def with_shown_result(self: Any, *args: Any, **options: Any) -> Any:
        return as_rows(call(self, *args, **options))

    return with_shown_result


def html_table(rows: Iterable[Any]) -> str:
    """Named tuples as a table, a column for each field."""
    rows = list(rows)
    if not rows:
        return "<p>none</p>"
    lines = ["".join(f"<th>{escape(name)}</th>" for name in rows[0]._fields)]
    lines += ["".join(f"<td>{escape(_text(value))}</td>" for value in row) for row in rows[:MAX_ROWS]]
    body = "\n".join(f"<tr>{line}</tr>" for line in lines)
    return f"<table>\n{body}\n</table>{_html_of_more(len(rows) - MAX_ROWS)}"


def html_picture(image: Image.Image) -> str:
    """A picture within the page, made smaller if it is larger than MAX_SIDE."""
    small, data = image.copy(), io.BytesIO()
    small.thumbnail((MAX_SIDE, MAX_SIDE))
    small.save(data, "PNG")
    return f'<img src="data:image/png;base64,{base64.b64encode(data.getvalue()).decode()}">'


def _html(value: Any) -> str:
    if hasattr(value, "_repr_html_"):
        return value._repr_html_()
    return html_table([] if value == [] else [value])


def _html_of_more(count: int) -> str:
    return f"<p>and {count} more</p>" if count > 0 else ""


def _text(value: Any) -> str:
    if isinstance(value, float | np.floating):
        return f"{value:.4f}"
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return ", ".join(map(_text, value))
    return str(value)
