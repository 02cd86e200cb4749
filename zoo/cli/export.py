"""`zoo export`: a checkpoint in another format."""

from __future__ import annotations

import argparse
import sys

from . import UsageError
from .info import size_text
from .terminal import Terminal, json_text


def export(args: argparse.Namespace) -> None:
    """The command, with the arguments as parsed."""
    if not args.output.endswith(".gguf"):
        raise UsageError(f"{args.output!r}: the name of a file that ends in .gguf was wanted")
    from ..errors import UnsupportedError
    from ..gguf.export import export as write
    from ..tasks import load_task
    from ..tasks.base import TextTask

    task = load_task(args.name, revision=args.revision, local_files_only=args.local_files_only, lock=args.lock)
    if not isinstance(task, TextTask):
        raise UnsupportedError(f"{args.name} reads images: GGUF files are of models that read texts")
    path = write(task, args.output, args.type)
    as_json = args.json or not sys.stdout.isatty()
    terminal, size = Terminal(sys.stdout, plain_text=not as_json), path.stat().st_size
    if as_json:
        terminal.line(json_text({"path": str(path), "type": args.type, "bytes": size}))
    else:
        terminal.fields([("written", str(path)), ("type", args.type), ("size", size_text(size))])
