"""Checks of the texts and token ids that a user gives to a tokenizer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..errors import InputError


def given_texts(value: str | Sequence[str], name: str) -> list[str]:
    """One text or several as a list; InputError: one is no text, or there is none.  name: the argument's."""
    if isinstance(value, str):
        return [check_text(value, name)]
    if not isinstance(value, list | tuple | np.ndarray):
        raise InputError(f"{name} is {kind_of(value)}, expected a str or a list of str")
    if not len(value):
        raise InputError(f"{name} is empty, expected at least one text")
    return [check_text(text, name, i) for i, text in enumerate(value)]


def check_text(value: Any, name: str, index: int | None = None) -> str:
    """The text that was passed as the argument `name`, or as its item `index`; InputError: it is none."""
    if not isinstance(value, str):
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
