"""/v1/run: the task of any served model, in the form of the Hub's inference API (`inputs`, `parameters`).

What a task takes and gives is said by its row in `zoo.task_kinds`; files come as base64 or data URLs.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from ...errors import BatchError, InputError, nearest
from ...task_kinds import CallOption, TaskKind
from ..batch.results import to_plain
from ..documents.limits import MAX_PIXELS
from .errors import ApiError, as_api_error
from .models import TABLES, Models, Served
from .pages import bytes_of, keep_warnings
from .requests import MAX_TEXTS, RunRequest

TEXTS_AT_ONCE = 64  # are computed in a model's turn; of pictures and recordings, one
NUMBERS: dict[type, tuple[type, ...]] = {int: (int,), float: (int, float), bool: (bool,)}


async def run(models: Models, one: Served, asked: RunRequest) -> dict[str, Any]:
    if one.kind == TABLES:
        raise ApiError(400, f"{TABLES} is not a task: send files to /v1/tables", param="model")
    kind: TaskKind = one.task.kind
    if kind.streams:
        raise ApiError(400, f"{one.id} writes texts: send prompts to /v1/completions or /v1/chat/completions")
    options = parameters_of(asked.parameters, kind)
    arguments, several = arguments_of(asked.inputs, kind)
    data, said = await one.calls.run(lambda: _results(one.task, arguments, options, several))
    return {"object": "list", "model": one.id, "task": kind.name, "data": data, "warnings": said}


def parameters_of(given: dict[str, Any], kind: TaskKind) -> dict[str, Any]:
    """The parameters of a request; ApiError for one that the task does not have, or a value of another type."""
    for name, value in given.items():
        if (option := kind.option(name)) is None or name in kind.arguments:
            known = [one.name for one in kind.options if one.name not in kind.arguments]
            expected = f"expected {', '.join(known)}" if known else "it has none"
            raise ApiError(400, f"{kind.name} has no parameter {name!r:.100}{nearest(name, known)}: {expected}")
        _check_value(option, value)
    missing = [option for option in kind.options if option.required and option.name not in given]
    if missing:
        raise ApiError(400, f"{kind.name} needs the parameter {missing[0].name}: {missing[0].help}", param="parameters")
    return dict(given)


def _check_value(option: CallOption, value: Any) -> None:
    if value in option.texts:
        return
    if option.type is str:  # a text, or a list: of labels, of second texts, of words with their boxes
        fits, expected = isinstance(value, list if option.is_list else (str, list)), "a text or a list"
        expected = "a list" if option.is_list else expected
    else:
        fits = isinstance(value, NUMBERS[option.type]) and (option.type is bool or not isinstance(value, bool))
        expected = {int: "a whole number", float: "a number", bool: "true or false"}[option.type]
        if fits and option.least is not None and value < option.least:
            fits, expected = False, f"at least {option.least:g}"
        if fits and option.most is not None and value > option.most:
            fits, expected = False, f"at most {option.most:g}"
    if not fits:
        raise ApiError(400, f"parameters: {option.name} is {value!r:.100}, expected {expected}", param="parameters")


def arguments_of(inputs: Any, kind: TaskKind) -> tuple[dict[str, Any], bool]:
    """The arguments of the task's call, and whether there are several inputs, whose results come in a list.

    A task with several arguments takes an object that names them, or a list of such objects.
    """
    if len(kind.arguments) == 1:
        (name,), several = kind.arguments, isinstance(inputs, list)
        values = [_input(one, kind) for one in (inputs if several else [inputs])]
        _check_count(values)
        return {name: values}, several
    several = isinstance(inputs, list)
    objects = inputs if several else [inputs]
    _check_count(objects)
    for one in objects:
        if not isinstance(one, dict) or one.keys() != {*kind.arguments}:
            expected = ", ".join(f'"{name}": ...' for name in kind.arguments)
            raise ApiError(400, f"inputs of {kind.name}: expected {{{expected}}}, or a list of them", param="inputs")
    if kind.ranks:
        if several:
            raise ApiError(
                400, f"inputs of {kind.name}: expected one object, whose documents are ranked", param="inputs"
            )
        _check_count(objects[0][kind.arguments[1]])
        return objects[0], False
    return {name: [_input(one[name], kind) for one in objects] for name in kind.arguments}, several


def _check_count(values: Any) -> None:
    if not isinstance(values, list) or not 1 <= len(values) <= MAX_TEXTS:
        found = len(values) if isinstance(values, list) else type(values).__name__
        raise ApiError(400, f"inputs: expected a list of 1 to {MAX_TEXTS}, found {found}", param="inputs")


def _input(value: Any, kind: TaskKind) -> Any:
    if not isinstance(value, str):
        expected = "a text" if kind.reads == "text" else "a file in base64, or its data URL"
        raise ApiError(400, f"inputs: {kind.name} takes {expected}, found {type(value).__name__}", param="inputs")
    return value if kind.reads == "text" else bytes_of(value, "inputs")


def _results(
    task: Any, arguments: dict[str, Any], options: dict[str, Any], several: bool
) -> Generator[None, None, tuple[Any, list[str]]]:
    """Compute some inputs, and yield, until all are done; return the results and what was warned of, once each."""
    kind, said = task.kind, dict[str, None]()
    if kind.ranks:
        with keep_warnings(said):
            return to_plain(task.results.json(task(**arguments, **options))), list(said)
    data: list[Any] = []
    count = len(next(iter(arguments.values())))
    bounds = {"max_pixels": MAX_PIXELS} if kind.reads == "image" else {}
    step = TEXTS_AT_ONCE if kind.reads == "text" else 1
    for at in range(0, count, step):
        part = {name: values[at : at + step] for name, values in arguments.items()}
        part |= {name: _part(kind, name, value, at, step, count) for name, value in options.items()}
        errors: dict[int, Any] = {}
        with keep_warnings(said):
            try:
                results = list(task(**part, **bounds))
            except BatchError as e:
                results, errors = e.results, e.errors
            except InputError as e:
                if len(next(iter(part.values()))) != 1:
                    raise
                results, errors = [None], {0: e}
        if errors and not several:
            raise errors[0]
        data += [
            as_api_error(errors[i]).body if i in errors else to_plain(task.results.json(one))
            for i, one in enumerate(results)
        ]
        yield
    return data if several else data[0], list(said)


def _part(kind: TaskKind, name: str, value: Any, at: int, step: int, count: int) -> Any:
    """The values of a parameter for these inputs: those with one for each input come in a list of as many."""
    option = kind.option(name)
    if option is None or not option.each:
        return value
    if not isinstance(value, list) or (option.is_list and count == 1):  # of one input
        return [value] * min(step, count - at)
    if len(value) != count:
        raise ApiError(400, f"parameters: {len(value)} {name} for {count} inputs, expected one for each")
    return value[at : at + step]
