"""`zoo ocr`: the text of pages, to a file or to stdout."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterator
from typing import Any

from ...errors import ZooError, quantity
from ...images.open import read_file
from ...options import DEFAULTS
from ...tasks.base import Progress
from ...tasks.flatten import load_flattener
from ...tasks.ocr import Ocr, load_ocr
from ..batch.inputs import find_inputs
from ..documents import Document, open_document
from ..documents.files import Flatten
from ..documents.ocr_formats import OCR_FORMATS, ReadPage
from .fastest import fastest
from .output import STDIN, output_format, write_output


def ocr(args: argparse.Namespace) -> None:
    """The command, with the arguments as parsed."""
    suffix = output_format(args, OCR_FORMATS, ".txt")
    inputs, passed_over = find_inputs([name for name in args.documents if name != STDIN])
    if passed_over:
        print(f"zoo: skipped {quantity(passed_over, 'file')} of other kinds than documents", file=sys.stderr)
    names = [one.path for one in inputs] + [STDIN] * (STDIN in args.documents)
    device = args.device if len(names) == 1 and args.device is None else fastest(args)
    options = DEFAULTS.update({"device": device, "local_files_only": args.local_files_only})
    task = load_ocr(args.reader, args.detector, options)
    flatten = load_flattener(options=options) if args.photo else None
    pages, errors = list[ReadPage](), list[str]()
    with Progress(len(names), None, "documents") as advance:
        for name in names:
            try:
                for page in _pages(task, name, args, flatten):
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
    write_output(OCR_FORMATS[suffix](pages), args, plain_text=suffix == ".txt")
    for error in errors:
        print(f"zoo: {error}", file=sys.stderr)
    if errors:
        raise ZooError(f"{len(errors)} of {len(names)} documents could not be read")


def _pages(task: Ocr, name: str, args: argparse.Namespace, flatten: Flatten | None) -> Iterator[ReadPage]:
    with _open(name, args, flatten) as document:
        for number in document.numbers(args.pages):
            page = document.page(number)
            yield ReadPage(document.name, number, task.read_page(page.image), page.name)


def _open(name: str, args: argparse.Namespace, flatten: Flatten | None) -> Document:
    options: Any = {"dpi": args.dpi, "password": args.password, "flatten": flatten}
    if name == STDIN:
        return open_document(read_file(sys.stdin.buffer, "stdin"), name="stdin", **options)
    return open_document(name, **options)
