"""Several inputs at once, of which some cannot be used: the others are computed all the same.

The rule of all tasks that give a result for each input: what is wrong with some is raised at the end, as one
`BatchError` that holds the results of the others.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import BatchError, ZooError

# So many are computed anew, at most, for each that cannot be used.
CHUNK = 32
_ITEM = re.compile(r"(\w+)\[(\d+)\]")  # as errors name one of several


def apart(call: Callable[..., Any], names: Sequence[str]) -> Callable[..., Any]:
    """A task's `__call__` by that rule; `names`: the arguments that are lists of inputs, of one length."""
    signature = inspect.signature(call)

    @functools.wraps(call)
    def several(*args: Any, **options: Any) -> Any:
        try:
            bound = signature.bind(*args, **options)
        except TypeError:
            return call(*args, **options)  # which says so in its own words
        lists: dict[str, Any] = {}
        for name in names:
            value = bound.arguments.get(name)
            if isinstance(value, Iterator) and not hasattr(value, "read"):
                value = bound.arguments[name] = list(value)  # to be gone through again
            if isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.ndim == 4):
                lists[name] = value
        files = [(item, item.tell()) for value in lists.values() for item in value if hasattr(item, "tell")]
        try:
            return call(*bound.args, **bound.kwargs)
        except BatchError:
            raise
        except ZooError as e:
            named = _ITEM.match(str(e))
            if named is None or named[1] not in lists or len(lists[named[1]]) < 2:
                raise
            lists = {name: value for name, value in lists.items() if len(value) == len(lists[named[1]])}

        def compute(index: Sequence[int]) -> Any:
            for file, at in files:
                file.seek(at)
            bound.arguments.update({name: [value[i] for i in index] for name, value in lists.items()})
            return call(*bound.args, **bound.kwargs)

        results, errors = _computed(compute, lists)
        raise BatchError(errors, results)

    return several


def _computed(
    compute: Callable[[Sequence[int]], Any], lists: Mapping[str, Sequence[Any]]
) -> tuple[list[Any], dict[int, ZooError]]:
    """The result of each input, None where there is none, and the errors of those."""
    name, items = next(iter(lists.items()))
    results: list[Any] = [None] * len(items)
    errors: dict[int, ZooError] = {}
    for start in range(0, len(items), CHUNK):
        index = list(range(start, min(start + CHUNK, len(items))))
        while index:
            try:
                found = compute(index)
            except ZooError as e:
                named = _ITEM.match(str(e))
                if named is not None and named[1] in lists and int(named[2]) < len(index):
                    bad = index.pop(int(named[2]))
                    text = f"{named[1]}[{bad}]{str(e)[named.end() :]}"
                elif len(index) == 1:  # an error about the only one names none
                    bad = index.pop()
                    text = f"{name}[{bad}]: {str(e).removeprefix(name).lstrip(': ')}"
                else:
                    raise
                errors[bad] = type(e)(text)
            else:
                for i, item in zip(index, found, strict=True):
                    results[i] = item
                break
    return results, errors
