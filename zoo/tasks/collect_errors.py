"""collect_errors: in tasks with a result for each input, a bad input does not lose the results of the good ones.

The good inputs are computed, then one `BatchError` is raised that holds their results and the errors of the bad ones.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import BatchError, ZooError
from ..text.given import is_column

CHUNK = 32  # inputs that are computed again, at most, for each bad one


def collect_errors(call: Callable[..., Any], names: Sequence[str]) -> Callable[..., Any]:
    """Wrap a task's `__call__`; `names` are its arguments that may be lists of inputs, all of one length.

    An error is an input's if its `argument` is one of these and its `index` names an item.  Any other error is raised
    as it is.
    """
    signature = inspect.signature(call)

    @functools.wraps(call)
    def collected(*args: Any, **options: Any) -> Any:
        try:
            bound = signature.bind(*args, **options)
        except TypeError:
            return call(*args, **options)  # raises the interpreter's own message
        lists: dict[str, Any] = {}
        for name in names:
            value: Any = bound.arguments.get(name)
            if is_column(value) or (isinstance(value, Iterator) and not hasattr(value, "read")):
                value = bound.arguments[name] = list(value)  # it may be read twice
            if isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.ndim == 4):
                lists[name] = value
        files = [(item, item.tell()) for value in lists.values() for item in value if hasattr(item, "tell")]
        try:
            return call(*bound.args, **bound.kwargs)
        except BatchError:
            raise
        except ZooError as e:
            count = len(lists.get(e.argument or "", ()))
            if e.index is None or count < 2:
                raise
        lists = {name: value for name, value in lists.items() if len(value) == count}

        def compute(index: Sequence[int]) -> Any:
            for file, at in files:
                file.seek(at)
            bound.arguments.update({name: [value[i] for i in index] for name, value in lists.items()})
            return call(*bound.args, **bound.kwargs)

        results, errors = _computed(compute, lists)
        raise BatchError(errors, results)

    return collected


def _computed(
    compute: Callable[[Sequence[int]], Any], lists: Mapping[str, Sequence[Any]]
) -> tuple[list[Any], dict[int, ZooError]]:
    """The result of each good input, None for a bad one, and the errors of the bad ones."""
    name, items = next(iter(lists.items()))
    results: list[Any] = [None] * len(items)
    errors: dict[int, ZooError] = {}
    for start in range(0, len(items), CHUNK):
        index = list(range(start, min(start + CHUNK, len(items))))
        while index:
            try:
                found = compute(index)
            except ZooError as e:
                if e.argument is not None and e.argument in lists and e.index is not None and e.index < len(index):
                    bad = index.pop(e.index)
                    errors[bad] = e.about(e.argument, bad)
                elif len(index) == 1:  # an error about a single input may name no item
                    bad = index.pop()
                    errors[bad] = e.about(name, bad)
                else:
                    raise
            else:
                for i, item in zip(index, found, strict=True):
                    results[i] = item
                break
    return results, errors
