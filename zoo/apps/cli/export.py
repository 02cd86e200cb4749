"""`zoo export`: a checkpoint in another format."""

from __future__ import annotations

import argparse
import sys

from . import UsageError
from .info import size_text
from .terminal import Terminal, json_text


def export(args: argparse.Namespace) -> None:
    """The command, with the arguments as parsed."""
    as_gguf = args.output.endswith(".gguf")
    for option, given, of in (
        ("--type", args.type, as_gguf),
        ("--precision", args.precision, not as_gguf),
        ("--standard", args.standard, not as_gguf),
        ("--task", args.task, not as_gguf),
        ("--web", args.web, not as_gguf),
    ):
        if given and not of:
            raise UsageError(f"{option} is for {'OUTPUT.gguf' if option == '--type' else 'a folder of ONNX graphs'}")
    if args.web_libraries and not args.web:
        raise UsageError("--web-libraries is for --web")
    (_gguf if as_gguf else _onnx)(args)


def _onnx(args: argparse.Namespace) -> None:
    import zoo

    precision = args.precision or "float32"
    where = {"revision": args.revision, "local_files_only": args.local_files_only, "lock": args.lock}
    options = {"task": args.task, "precision": precision, "standard": args.standard}
    path = zoo.export(args.name, args.output, **options, web=args.web_libraries or args.web, **where)
    files = {file.name: file.stat().st_size for file in sorted(path.iterdir()) if file.is_file()}
    as_json = args.json or not sys.stdout.isatty()
    terminal = Terminal(sys.stdout, plain_text=not as_json)
    if as_json:
        terminal.line(json_text({"path": str(path), "precision": precision, "files": files}))
    else:
        terminal.fields([("written", str(path)), ("precision", precision)])
        if args.web:
            terminal.line(f"\nTo see the page: python -m http.server -d {path}, then http://localhost:8000\n")
        terminal.table([(size_text(size), file) for file, size in files.items()], right=(0,))


def _gguf(args: argparse.Namespace) -> None:
    from ...errors import UnsupportedError
    from ...tasks import load_task
    from ...tasks.base import TextTask
    from ..gguf_export.export import export as write

    task = load_task(args.name, revision=args.revision, local_files_only=args.local_files_only, lock=args.lock)
    if not isinstance(task, TextTask):
        raise UnsupportedError(f"{args.name} reads images: GGUF files are of models that read texts")
    kind = args.type or "q8_0"
    path = write(task, args.output, kind)
    as_json = args.json or not sys.stdout.isatty()
    terminal, size = Terminal(sys.stdout, plain_text=not as_json), path.stat().st_size
    if as_json:
        terminal.line(json_text({"path": str(path), "type": kind, "bytes": size}))
    else:
        terminal.fields([("written", str(path)), ("type", kind), ("size", size_text(size))])
