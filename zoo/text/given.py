"""Checks of the texts and token ids that a user gives to a tokenizer or a task."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ..errors import InputError


def given_texts(value: Any, name: str) -> list[str]:
    """One text or several as a list; InputError: one is no text, or there is none.  name: the argument's."""
    if isinstance(value, str):
        return [check_text(value, name)]
    texts = [check_text(text, name, i) for i, text in enumerate(given_items(value, name))]
    if not texts:
        raise InputError(f"{name} is empty, expected at least one text")
    return texts


def given_items(value: Any, name: str, wanted: str = "a text or a list of texts") -> Iterable[Any]:
    """The items of a list, tuple, array, generator or column of a table; InputError for what has no items in order."""
    if is_table(value):
        raise InputError(f"{name} is a table ({type(value).__name__}): pass one column of it, such as df['text']")
    no_items = str | bytes | bytearray | memoryview | Mapping | set | frozenset
    if isinstance(value, no_items) or not isinstance(value, Iterable) or getattr(value, "ndim", 1) == 0:
        raise InputError(f"{name} is {kind_of(value)}, expected {wanted}")
    return value


def is_table(value: Any) -> bool:
    """True for a frame of pandas or polars, a table of Arrow and the like, whose items are columns, names or rows."""
    kind = type(value)  # not the value: the labels of a pandas Series are attributes of it, too
    fields = getattr(getattr(value, "dtype", None), "names", None)
    return hasattr(kind, "columns") or hasattr(kind, "column_names") or bool(fields)


def plain_item(value: Any) -> Any:
    """An item of a column: the value of an Arrow scalar, anything else as it is."""
    return value.as_py() if hasattr(type(value), "as_py") else value


def check_text(value: Any, name: str, index: int | None = None) -> str:
    """The text that was passed as the argument `name`, or as its item `index`; InputError: it is none."""
    if not isinstance(value, str) and not isinstance(value := plain_item(value), str):
        raise InputError(f"is {kind_of(value)}, expected a text (str)", argument=name, index=index)
    try:
        value.encode()
    except UnicodeEncodeError as e:
        problem = f"has a lone surrogate, U+{ord(value[e.start]):04X}, at character {e.start}"
        raise InputError(problem, argument=name, index=index) from None
    return value


def kind_of(value: object) -> str:
    """The type of a value that should have been a text, for error messages."""
    if value is None:
        return "None"
    if type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, float) and value != value):
        return f"a missing value ({value}: leave it out, or fill it in)"
    return f"of type {type(value).__name__}{' (decode it first)' if isinstance(value, bytes | bytearray) else ''}"


def given_ids(ids: Iterable[int] | np.ndarray) -> list[int]:
    """Token ids (T,) as a list; InputError: they are no row of whole numbers that a vocabulary can have."""
    array = np.asarray(ids if isinstance(ids, np.ndarray) else list(ids))
    if array.size == 0:
        return []
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise InputError(f"ids of shape {array.shape} and type {array.dtype}, expected one row of whole numbers")
    if array.min() < 0 or array.max() >= 1 << 32:
        raise InputError(f"ids from {array.min()} to {array.max()}, expected 0 to {(1 << 32) - 1}")
    return array.tolist()
