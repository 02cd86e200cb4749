"""`zoo read`: documents as a model of images and texts reads them, to one file or to stdout."""

from __future__ import annotations

import argparse
import sys

from ...errors import ZooError, quantity
from ...images.open import read_file
from ...tasks.progress import Progress, write_line
from ..batch.inputs import find_inputs
from ..markup import Document, read_document
from ..markup.document import DOCUMENT_FORMATS, text_of
from ..markup.reading import load_reader
from .fastest import fastest
from .generation import loading_of
from .output import STDIN, output_format, write_output


def read(args: argparse.Namespace) -> None:
    """The command, with the arguments as parsed."""
    suffix = output_format(args, DOCUMENT_FORMATS, ".md")
    inputs, passed_over = find_inputs([name for name in args.documents if name != STDIN])
    if passed_over:
        write_line(f"zoo: skipped {quantity(passed_over, 'file')} of other kinds than documents")
    names = [one.path for one in inputs] + [STDIN] * (STDIN in args.documents)
    with Progress(None, unit="", what=f"loading {args.model}"):
        args.device = fastest(args)
        task = load_reader(args.model, **loading_of(args))
    same = ("pages", "prompt", "max_new_tokens", "dpi", "password")
    options = {name: getattr(args, name) for name in same}
    documents, errors = list[Document](), list[str]()
    for name in names:
        file = read_file(sys.stdin.buffer, "stdin") if name == STDIN else name
        try:
            found = read_document(file, task, **options)
        except ZooError as e:
            if len(names) == 1:
                raise
            errors.append(str(e) if str(e).startswith(name) else f"{name}: {e}")
            continue
        documents.append(found)
        for doubt in found.doubts:
            write_line(f"zoo: {found.source}: {doubt}")
        errors += [f"{found.source}, {error}" for error in found.errors]
    write_output(text_of(documents, suffix), args, plain_text=suffix == ".md")
    if errors:
        for error in errors:
            write_line(f"zoo: {error}")
        raise ZooError(f"{quantity(len(errors), 'error')}: what could not be read is left out")
