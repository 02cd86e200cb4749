"""`zoo ocr`: the text of pages, to a file or to stdout."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

from ...errors import ZooError, nearest, quantity
from ...files.atomic_write import atomic_write
from ...images.open import read_file
from ...options import DEFAULTS
from ...tasks.base import Progress
from ...tasks.ocr import Ocr, load_ocr
from ..batch.inputs import find_inputs
from ..documents import Document, open_document
from ..documents.ocr_formats import OCR_FORMATS, ReadPage
from .fastest import fastest
from .parser import UsageError
from .terminal import Terminal

STDIN = "-"


def ocr(args: argparse.Namespace) -> None:
    """The command, with the arguments as parsed."""
    suffix = _suffix(args)
    inputs, passed_over = find_inputs([name for name in args.documents if name != STDIN])
    if passed_over:
        print(f"zoo: skipped {quantity(passed_over, 'file')} of other kinds than documents", file=sys.stderr)
    names = [one.path for one in inputs] + [STDIN] * (STDIN in args.documents)
    device = args.device if len(names) == 1 and args.device is None else fastest(args)
    options = DEFAULTS.update({"device": device, "local_files_only": args.local_files_only})
    task = load_ocr(args.reader, args.detector, options)
    pages, errors = list[ReadPage](), list[str]()
    with Progress(len(names), None, "documents") as advance:
        for name in names:
            try:
                for page in _pages(task, name, args):
                    pages.append(page)
            except ZooError as e:
                if len(names) == 1:
                    raise
                errors.append(str(e))
            advance(1)
    if any(line.doubt for one in pages for line in one.page.lines):
        warnings.warn(task.reader.scripts.warning(task.reader.source), stacklevel=1)
    for one in pages:
        if not one.page.lines:
            print(f"zoo: {one.name}: no text found", file=sys.stderr)
    _write(OCR_FORMATS[suffix](pages), args)
    for error in errors:
        print(f"zoo: {error}", file=sys.stderr)
    if errors:
        raise ZooError(f"{len(errors)} of {len(names)} documents could not be read")


def _pages(task: Ocr, name: str, args: argparse.Namespace) -> Iterator[ReadPage]:
    with _open(name, args) as document:
        for number in document.numbers(args.pages):
            page = document.page(number)
            yield ReadPage(document.name, number, task.read_page(page.image), page.name)


def _open(name: str, args: argparse.Namespace) -> Document:
    options = {"dpi": args.dpi, "password": args.password}
    if name == STDIN:
        return open_document(read_file(sys.stdin.buffer, "stdin"), name="stdin", **options)
    return open_document(name, **options)


def _suffix(args: argparse.Namespace) -> str:
    """The suffix of the format to write: that of -o's file, or of --format or --json for stdout."""
    is_file = args.output not in (None, STDIN)
    if is_file and (args.json or args.format):
        raise UsageError("--json and --format are for stdout: the format of a file is that of its suffix")
    if args.json and args.format not in (None, "json"):
        raise UsageError(f"--json and --format {args.format} exclude each other: give one of them")
    given = Path(args.output).suffix.lower() if is_file else f".{args.format or ('json' if args.json else 'txt')}"
    if given not in OCR_FORMATS:
        known = ", ".join(OCR_FORMATS)
        raise UsageError(f"{args.output}: {given or 'no suffix'}, expected one of {known}{nearest(given, OCR_FORMATS)}")
    if is_file and any(_is_same(args.output, name) for name in args.documents):
        raise UsageError(f"{args.output} is both an input and the output: choose another name for the output")
    return given


def _is_same(output: str, name: str) -> bool:
    path, other = Path(output), Path(name)
    return path.is_file() and other.exists() and path.samefile(other)


def _write(text: str, args: argparse.Namespace) -> None:
    if args.output in (None, STDIN):
        return Terminal(sys.stdout, plain_text=not args.json and args.format in (None, "txt")).verbatim(text)
    path = Path(args.output)
    try:
        with atomic_write(path) as partial:
            partial.write_text(text, encoding="utf-8", newline="\n")
    except OSError as e:
        raise ZooError(f"cannot write to {path}: {e.strerror or e}") from e
    print(f"zoo: wrote {path}", file=sys.stderr)
