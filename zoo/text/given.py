"""Checks of the texts and token ids that a user gives to a tokenizer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from ..errors import InputError


def given_texts(value: str | Sequence[str], name: str) -> list[str]:
    """One text or several as a list; InputError: one is no text, or there is none.  name: the argument's."""
    if isinstance(value, str):
        texts = [value]
    elif isinstance(value, list | tuple | np.ndarray):
        texts = list(value)
    else:
        raise InputError(f"{name} is {_kind(value)}, expected a str or a list of str")
    if not texts:
        raise InputError(f"{name} is empty, expected at least one text")
    for i, text in enumerate(texts):
        index = None if isinstance(value, str) else i
        if not isinstance(text, str):
            raise InputError(f"is {_kind(text)}, expected a str", argument=name, index=index)
        try:
            text.encode()
        except UnicodeEncodeError as error:
            code = ord(text[error.start])
            problem = f"has a lone surrogate, U+{code:04X}, at character {error.start}"
            raise InputError(problem, argument=name, index=index) from None
    return texts


def _kind(value: object) -> str:
    if value is None:
        return "None"
    return f"{type(value).__name__}{' (decode it first)' if isinstance(value, bytes | bytearray) else ''}"


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
