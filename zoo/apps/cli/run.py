"""`zoo run`: run a task on inputs from the command line or stdin, and write tables or JSON."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from typing import Any

import zoo

from ...errors import BatchError, InputError, ZooError
from . import UsageError
from .generation import loading_of, options_of, write
from .terminal import Terminal, json_text

WRITERS = ("read", "text2text-generation", "summarization", "translation")
OPTIONS = {
    "top_k": ("fill-mask", "sparse-embed", "classify", "answer", "rerank"),
    "pair": ("classify",),
    "question": ("answer",),
    "context": ("answer",),
    "max_new_tokens": ("generate", *WRITERS),
    "temperature": ("generate",),
    "seed": ("generate",),
    "prompt_lookup": ("generate",),
    "overlay": ("segment", "detect"),
    "threshold": ("detect",),
    "lines": ("read",),
    "num_beams": WRITERS,
    "labels": ("zero-shot-classification", "zero-shot-image-classification"),
}
BLOCK = 1 << 16  # the most bytes of stdin read at once
MAX_LINE = 16 << 20  # bytes of a line of stdin


def run(args: argparse.Namespace) -> None:
    streamed = args.inputs in ([], ["-"]) and not (args.question is not None and args.context is not None)
    if streamed and not args.inputs and (sys.stdin is None or sys.stdin.isatty()):
        raise UsageError("no INPUT: give texts or paths of images, or '-' for the lines of stdin")
    if args.json and args.text:
        raise UsageError("--json and --text exclude each other: give one of them")
    if args.task is not None:
        _check(args, args.task)
    task: Any = zoo.load(args.name, task=args.task, adapter=args.adapter, **loading_of(args))
    _check(args, task.name)
    if args.pair is not None and hasattr(task, "processor"):
        raise UsageError(f"--pair is for texts, and {args.name} reads images: leave it out")
    as_json = args.json or not (args.text or sys.stdout.isatty())
    terminal = Terminal(sys.stdout, plain_text=not as_json)

    if task.name == "rerank":
        query, *documents = _rerank_inputs(args.inputs)
        ranked = task(query, documents, top_k=args.top_k)
        if as_json:
            terminal.line(json_text(ranked))
        else:
            terminal.show(task, [query], [ranked])
    elif streamed:
        failed = 0
        for first, lines in stdin_blocks():
            place = f"stdin, lines {first} ... {first + len(lines) - 1}"
            try:
                if task.name == "generate" and not as_json:
                    write(task, lines, options_of(args))
                    continue
                results, error = _settled(task, lines, args)
            except ZooError as e:
                raise type(e)(f"{place}: {e}") from None
            if error is not None:
                failed += len(error.errors)
                print(f"zoo: {place}: {error}", file=sys.stderr)
            if as_json:
                for result in _with_errors(results, error):
                    terminal.line(json_text(result))
            else:
                _show(terminal, task, lines, results, error)
            sys.stdout.flush()
        if failed:
            raise InputError(f"{failed} lines could not be used: see the messages above")
    elif task.name == "generate" and not as_json:
        write(task, args.inputs, options_of(args))
    else:
        results, error = _settled(task, args.inputs, args)
        if as_json:
            shown = _with_errors(results, error)
            terminal.line(json_text(shown[0] if len(shown) == 1 else shown))
        else:
            _show(terminal, task, args.inputs or [args.question or ""], results, error)
        if error is not None:
            raise error


def _settled(task: Any, texts: list[str], args: argparse.Namespace) -> tuple[list[Any], BatchError | None]:
    """The results, and the errors of inputs without a result."""
    try:
        return _call(task, texts, args), None
    except BatchError as e:
        return _summaries(task, e.results), e


def _with_errors(results: list[Any], error: BatchError | None) -> list[Any]:
    """The results for JSON, with an object {"error": message} for each input without one."""
    errors = {} if error is None else error.errors
    return [{"error": str(errors[i])} if i in errors else result for i, result in enumerate(results)]


def _show(terminal: Terminal, task: Any, texts: list[str], results: list[Any], error: BatchError | None) -> None:
    good = [i for i in range(len(results)) if error is None or i not in error.errors]
    terminal.show(task, [texts[i] for i in good], [results[i] for i in good])


def check_options(args: argparse.Namespace, task: str) -> None:
    """Raise UsageError for options that the task does not have, and for labels that it lacks."""
    for option, tasks in OPTIONS.items():
        if getattr(args, option, None) is not None and task not in tasks:
            raise UsageError(f"--{option.replace('_', '-')} is for {', '.join(tasks)}, and the task is {task}")
    if task.startswith("zero-shot") and args.labels is None:
        raise UsageError(f"{task} needs --labels A,B,C: the labels to choose from, in words")


def _check(args: argparse.Namespace, task: str) -> None:
    """Raise UsageError for options that the task does not have and inputs that do not fit together."""
    check_options(args, task)
    if args.overlay is not None and (len(args.inputs) != 1 or args.inputs == ["-"]):
        raise UsageError("--overlay needs exactly one INPUT, the path of an image")
    if "-" in args.inputs and len(args.inputs) > 1 and task != "rerank":
        raise UsageError("'-' reads all inputs from stdin: give no other INPUT with it")
    if task == "answer":
        given = [args.question is not None, args.context is not None]
        if not any(given):
            raise UsageError("answer needs --question, --context or both")
        if all(given) and args.inputs:
            raise UsageError("with both --question and --context, answer takes no INPUT")
    if args.pair is not None and len(args.pair) not in (1, len(args.inputs)):
        raise UsageError(f"{len(args.pair)} --pair for {len(args.inputs)} INPUT: give one for each, or one for all")


def _call(task: Any, texts: list[str], args: argparse.Namespace) -> list[Any]:
    """The task's result for each text."""
    given = ("top_k", "threshold", *(("lines", "num_beams", "max_new_tokens") if task.name in WRITERS else ()))
    options = {name: getattr(args, name) for name in given if getattr(args, name) is not None}
    if task.name == "answer":
        if args.question is None:
            return task(texts, args.context, **options)
        return task(args.question, texts if args.context is None else [args.context], **options)
    if task.name == "generate":
        options = options_of(args)
    if task.name.startswith("zero-shot"):
        options["candidate_labels"] = args.labels
    if args.pair is not None:
        options["pairs"] = args.pair if len(args.pair) == len(texts) else args.pair * len(texts)
    results = list(task(texts, **options))
    if args.overlay is not None:
        (results[0].draw if task.name == "detect" else results[0].overlay)(args.overlay)
    return _summaries(task, results)


def _summaries(task: Any, results: list[Any]) -> list[Any]:
    """The results, for segmentations without their masks, which have a number for each pixel."""
    if task.name != "segment":
        return results
    return [
        found and {"height": found.mask.shape[0], "width": found.mask.shape[1], "labels": found.labels}
        for found in results
    ]


def _rerank_inputs(inputs: list[str]) -> list[str]:
    """The query and the documents, with the lines of stdin in place of '-'."""
    texts: list[str] = []
    for text in inputs or ["-"]:
        texts += [line for _, lines in stdin_blocks() for line in lines] if text == "-" else [text]
    if len(texts) < 2:
        raise UsageError("rerank needs a query and at least one document")
    return texts


def stdin_blocks() -> Iterator[tuple[int, list[str]]]:
    """Blocks of lines that have arrived together: (number of the first line, lines without their ends)."""
    number, rest = 1, bytearray()
    while block := os.read(sys.stdin.fileno(), BLOCK):
        ended, end, begun = block.rpartition(b"\n")
        if end:
            lines = (rest + ended).split(b"\n")
            yield number, [_decoded(bytes(line), number + i) for i, line in enumerate(lines)]
            number += len(lines)
            rest = bytearray()
        rest += begun
        if len(rest) > MAX_LINE:
            raise InputError(f"stdin, line {number} has more than {MAX_LINE} bytes, expected a text on each line")
    if rest:
        yield number, [_decoded(bytes(rest), number)]


def _decoded(line: bytes, number: int) -> str:
    try:
        return line.removesuffix(b"\r").decode()
    except UnicodeDecodeError as e:
        raise InputError(f"stdin, line {number} is not UTF-8: byte {line[e.start]:#04x} at {e.start}") from None
