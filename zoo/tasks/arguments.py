"""The inputs of a task's call, and what it returns for them.

Of several inputs some may be of no use.  An error in the place of such an input goes the same way as the others, up to
`collect_results`, so that each good one is computed once, and none is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np

from ..errors import BatchError, InputError, ZooError
from ..text.given import check_text, given_items

PROBE_ITEMS = 10_000  # one of so many can be used, or the call is about something else

R = TypeVar("R")


def as_texts(value: Any, name: str, least: int = 1) -> tuple[list[str], bool]:
    """The texts that a user passed as the argument `name`, and True if it was one text alone."""
    if isinstance(value, str):
        return [check_text(value, name)], True
    return [check_text(text, name, i) for i, text in enumerate(as_list(value, name, least))], False


def texts_or_errors(value: Any, name: str, least: int = 1) -> tuple[list[str | ZooError], bool]:
    """As `as_texts`, with an error in the place of each text of several that is none.

    InputError: none of the first 10,000 is a text, as where a column of numbers was meant to be another.
    """
    if isinstance(value, str):
        return [check_text(value, name)], True
    items = as_list(value, name, least)
    found = [text_or_error(text, name, i) for i, text in enumerate(items[:PROBE_ITEMS])]
    if len(items) > PROBE_ITEMS:
        if not any(isinstance(one, str) for one in found):
            raise InputError(
                f"has {len(items):,} items, and none of the first {PROBE_ITEMS:,} is a text: {found[0]}", argument=name
            )
        found += [text_or_error(text, name, i) for i, text in enumerate(items[PROBE_ITEMS:], PROBE_ITEMS)]
    return found, False


def text_or_error(value: Any, name: str, index: int) -> str | ZooError:
    """A text of several, or the error in it."""
    try:
        return check_text(value, name, index)
    except InputError as e:
        return e.with_traceback(None)  # its frames would keep what they had


def as_iterable(value: Any, name: str) -> Iterable[Any]:
    """A list, tuple, array, column, generator, ... that a user passed as the argument `name`."""
    return [value] if isinstance(value, str) else given_items(value, name)


def as_list(value: Any, name: str, least: int = 1) -> list[Any]:
    """The items, at least 1 or `least`, of a list, tuple, array, column, generator, ..."""
    items = list(as_iterable(value, name))
    if len(items) < least:
        raise InputError(f"{name} is empty, expected at least one text")
    return items


def check_count(value: Any, name: str) -> int:
    """A number of results, at least 1."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise InputError(f"{name} is {value!r}, expected a whole number of at least 1")
    return int(value)


def map_good(function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
    """function(item) of each item that is no error, and the errors in their places."""
    return [item if isinstance(item, ZooError) else function(item) for item in items]


def result_or_error(
    function: Callable[[Any], R], item: Any, index: int, count: int, name: str = "images"
) -> R | ZooError:
    """function(item), or the error in it, which says which of `count` images, or recordings, it is about."""
    try:
        if isinstance(item, ZooError):
            raise item
        return function(item)
    except ZooError as e:
        return e.with_traceback(None) if count == 1 or e.index is not None else e.about(name, index)


def collect_results(found: Sequence[Any], single: bool) -> Any:
    """What a call returns: the result of a single input, or those of several.

    A ZooError among them is that of an input that cannot be used: it is raised if there is no other input, else a
    BatchError with the results of the others.
    """
    errors = {i: one for i, one in enumerate(found) if isinstance(one, ZooError)}
    if not errors:
        return found[0] if single else found
    if len(found) == 1:
        raise errors[0]
    raise BatchError(errors, [None if i in errors else one for i, one in enumerate(found)])


def stack_results(found: Sequence[Any], single: bool) -> np.ndarray:
    """As `collect_results`, with the vectors of several inputs as one array."""
    if any(isinstance(one, ZooError) for one in found):
        return collect_results(found, single)
    return found[0] if single else np.stack(found)


def pair_with_inputs(found: Sequence[Any], inputs: Sequence[Any]) -> list[Any]:
    """(result, input) of each input, or its error."""
    return [one if isinstance(one, ZooError) else (one, item) for one, item in zip(found, inputs, strict=True)]
