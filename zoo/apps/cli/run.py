"""`zoo run`: run a task on inputs from the command line or stdin, and write tables or JSON."""

from __future__ import annotations

import argparse
import os
import stat
import sys
from collections.abc import Iterator
from typing import Any

from ...checkpoint.names import mmproj_hint
from ...errors import BatchError, InputError, ZooError, quantity
from ...task_kinds import TASKS, TaskKind, find_tasks
from ...tasks.progress import write_line
from .call_options import check_options, flag_of, given_options
from .generation import load, write
from .parser import UsageError
from .terminal import Terminal, json_text, terminal_of

BLOCK = 1 << 16  # the most bytes of stdin read at once
MAX_LINE = 16 << 20  # bytes of a line of stdin


def run(args: argparse.Namespace) -> None:
    has_all = args.question is not None and args.context is not None  # of a call of answer
    streamed = args.inputs in ([], ["-"]) and not has_all
    if streamed and not args.inputs and (sys.stdin is None or sys.stdin.isatty()):
        raise UsageError("no INPUT: give texts or paths of images, or '-' for the lines of stdin")
    terminal = terminal_of(args)
    if args.task is not None:  # an error before anything is loaded
        kinds = find_tasks(args.task)
        _take_prompt(args, kinds[0])
        check_options(args, *kinds)
    task: Any = load(args, args.task, adapter=args.adapter)
    kind: TaskKind = task.kind
    _take_prompt(args, kind)
    _check(args, kind, task)
    as_json = terminal.json

    if kind.ranks:
        query, *documents = _query_and_documents(args.inputs, kind)
        ranked = task(query, documents, **given_options(args, kind))
        if as_json:
            terminal.line(json_text(task.results.json(ranked)))
        else:
            terminal.show(task, [query], [ranked])
    elif streamed:
        failed = 0
        for first, lines in stdin_blocks():
            place = f"stdin, lines {first} ... {first + len(lines) - 1}"
            try:
                if kind.streams and not as_json:
                    write(task, lines, given_options(args, kind))
                    continue
                results, error = _results_and_errors(task, lines, args)
            except ZooError as e:
                raise type(e)(f"{place}: {e}") from None
            if error is not None:
                failed += len(error.errors)
                write_line(f"zoo: {place}: {error}")
            if as_json:
                for result in _with_errors(task, results, error):
                    terminal.line(json_text(result))
            else:
                _show(terminal, task, lines, results, error)
            sys.stdout.flush()
        if failed:
            raise InputError(f"{quantity(failed, 'line')} could not be used: see the messages above")
    elif kind.streams and not as_json:
        write(task, args.inputs, given_options(args, kind))
    else:
        results, error = _results_and_errors(task, args.inputs, args)
        if args.format is not None:
            if error is None:
                terminal.verbatim(task.results.files[args.format](results[0]))
        elif as_json:
            shown = _with_errors(task, results, error)
            terminal.line(json_text(shown[0] if len(shown) == 1 else shown))
        else:
            _show(terminal, task, args.inputs or [args.question or ""], results, error)
        if error is not None:
            raise error


def _results_and_errors(task: Any, inputs: list[str], args: argparse.Namespace) -> tuple[list[Any], BatchError | None]:
    """The results, and the errors of inputs without a result."""
    try:
        return _call(task, inputs, args), None
    except BatchError as e:
        return e.results, e


def _with_errors(task: Any, results: list[Any], error: BatchError | None) -> list[Any]:
    """The results for JSON, with an object {"error": message} for each input without one."""
    errors = {} if error is None else error.errors
    return [{"error": str(errors[i])} if i in errors else task.results.json(result) for i, result in enumerate(results)]


def _show(terminal: Terminal, task: Any, inputs: list[str], results: list[Any], error: BatchError | None) -> None:
    good = [i for i in range(len(results)) if error is None or i not in error.errors]
    terminal.show(task, [inputs[i] for i in good], [results[i] for i in good])


def _take_prompt(args: argparse.Namespace, kind: TaskKind) -> None:
    """Let the last INPUT be what is asked about the others, where it is no file and nothing else is asked."""
    asks = kind.option("prompt") is not None and args.prompt is None
    if asks and len(args.inputs) > 1 and not os.path.exists(args.inputs[-1]):
        args.prompt = args.inputs.pop()


def _check(args: argparse.Namespace, kind: TaskKind, task: Any) -> None:
    """Raise UsageError for options that the task does not have and inputs that do not fit together."""
    check_options(args, kind)
    if kind.reads == "text" and (hint := mmproj_hint(args.name)):
        from ..batch.inputs import IMAGES

        for given in args.inputs:
            if given.lower().endswith(IMAGES) and os.path.isfile(given):
                raise InputError(f"{given} is an image, and {args.name} reads texts alone{hint}")
    if args.overlay is not None:
        if not kind.draws:
            drawn = [one.name for one in TASKS if one.draws]
            raise UsageError(f"--overlay is for {', '.join(drawn)}, and the task is {kind.name}")
        if len(args.inputs) != 1 or args.inputs == ["-"]:
            raise UsageError("--overlay needs exactly one INPUT, the path of an image")
    if args.masks is not None:
        if kind.name != "mask-generation":
            raise UsageError(f"--masks is for mask-generation, and the task is {kind.name}")
        if len(args.inputs) != 1 or args.inputs == ["-"]:
            raise UsageError("--masks needs exactly one INPUT, the path of an image")
    if args.format is not None:
        if args.format not in task.results.files:
            raise UsageError(f"--format {args.format} is for automatic-speech-recognition, and the task is {kind.name}")
        if args.json or args.text:
            raise UsageError(f"--format and {'--json' if args.json else '--text'} exclude each other: give one of them")
        if len(args.inputs) != 1 or args.inputs == ["-"]:
            raise UsageError("--format needs exactly one INPUT, the path of an audio file")
    if "-" in args.inputs and len(args.inputs) > 1 and not kind.ranks:
        raise UsageError("'-' reads all inputs from stdin: give no other INPUT with it")
    # An argument of the call may be an option, and INPUT then stands for the other one.
    named = [option for option in kind.options if option.name in kind.arguments]
    if named:
        given = [getattr(args, option.name) is not None for option in named]
        flags = [flag_of(option) for option in named]
        if not any(given):
            raise UsageError(f"{kind.name} needs {', '.join(flags)} or both")
        if all(given) and args.inputs:
            raise UsageError(f"with both {' and '.join(flags)}, {kind.name} takes no INPUT")
    for option in kind.options:
        several = getattr(args, option.name) if option.each else None
        if isinstance(several, list) and len(several) not in (1, len(args.inputs)):
            count = f"{len(several)} {flag_of(option)} for {len(args.inputs)} INPUT"
            raise UsageError(f"{count}: give one for each, or one for all")


def _call(task: Any, inputs: list[str], args: argparse.Namespace) -> list[Any]:
    """The task's result for each input."""
    kind, options = task.kind, given_options(args, task.kind)
    for option in kind.options:
        if option.each and (value := getattr(args, option.name)) is not None:
            options[option.name] = value * len(inputs) if isinstance(value, list) and len(value) == 1 else value
    left = [name for name in kind.arguments if name not in options]
    if left:
        options[left[0]] = inputs
    else:  # a list, of which there is a list of results
        options[kind.arguments[-1]] = [options[kind.arguments[-1]]]
    results = list(task(**options))
    if args.overlay is not None:
        from ...tasks.image_task import save_png

        save_png(task.results.picture(results[0]), args.overlay)
    if args.masks is not None:
        results[0].save(args.masks)
    return results


def _query_and_documents(inputs: list[str], kind: TaskKind) -> list[str]:
    """The query and the documents, with the lines of stdin in place of '-'."""
    texts: list[str] = []
    for text in inputs or ["-"]:
        texts += [line for _, lines in stdin_blocks() for line in lines] if text == "-" else [text]
    if len(texts) < 2:
        raise UsageError(f"{kind.name} needs a query and at least one document")
    return texts


def stdin_blocks() -> Iterator[tuple[int, list[str]]]:
    """Blocks of lines that have arrived together: (number of the first line, lines without their ends)."""
    number, rest = 1, bytearray()
    while block := os.read(sys.stdin.fileno(), BLOCK):
        ended, end, begun = block.rpartition(b"\n")
        if end:
            lines = (rest + ended).split(b"\n")
            yield number, [_decode(bytes(line), number + i) for i, line in enumerate(lines)]
            number += len(lines)
            rest = bytearray()
        rest += begun
        if len(rest) > MAX_LINE:
            raise InputError(f"stdin, line {number} has more than {MAX_LINE} bytes, expected a text on each line")
    if rest:
        yield number, [_decode(bytes(rest), number)]


def count_stdin() -> int | None:
    """The lines of stdin, if it is a file whose rest can be read ahead."""
    try:
        file = sys.stdin.fileno()
        if not stat.S_ISREG(os.fstat(file).st_mode):
            return None
        count, at, block = 0, os.lseek(file, 0, os.SEEK_CUR), b"\n"
        while more := os.pread(file, BLOCK, at):
            count, at, block = count + more.count(b"\n"), at + len(more), more
    except (OSError, AttributeError):  # Windows has no pread
        return None
    return count + (not block.endswith(b"\n"))


def _decode(line: bytes, number: int) -> str:
    try:
        return line.removesuffix(b"\r").decode()
    except UnicodeDecodeError as e:
        raise InputError(f"stdin, line {number} is not UTF-8: byte {line[e.start]:#04x} at {e.start}") from None
