"""`zoo export`: a checkpoint in another format."""

from __future__ import annotations

import argparse

from ...tasks.progress import Progress
from ...weights.memory import size_text
from .parser import UsageError
from .terminal import json_text, terminal_of


def export(args: argparse.Namespace) -> None:
    as_gguf = args.output.endswith(".gguf")
    for option in ("precision", "standard", "task", "web") if as_gguf else ("type",):
        if getattr(args, option):
            raise UsageError(f"--{option} is for {'a folder of ONNX graphs' if as_gguf else 'OUTPUT.gguf'}")
    if args.web_libraries and not args.web:
        raise UsageError("--web-libraries is for --web")
    (_gguf if as_gguf else _onnx)(args)


def _onnx(args: argparse.Namespace) -> None:
    import zoo

    precision = args.precision or "float32"
    where = {"revision": args.revision, "local_files_only": args.local_files_only, "lock": args.lock}
    options = {"task": args.task, "precision": precision, "standard": args.standard}
    with Progress(None, unit="", what=f"exporting {args.name}"):
        path = zoo.export(args.name, args.output, **options, web=args.web_libraries or args.web, **where)
    files = {file.name: file.stat().st_size for file in sorted(path.iterdir()) if file.is_file()}
    terminal = terminal_of(args)
    if terminal.json:
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

    with Progress(None, unit="", what=f"loading {args.name}"):
        task = load_task(args.name, revision=args.revision, local_files_only=args.local_files_only, lock=args.lock)
    if not isinstance(task, TextTask):
        raise UnsupportedError(f"{args.name} reads images, and GGUF files are for models that read texts")
    kind = args.type or "q8_0"
    with Progress(None, unit="", what=f"writing {args.output}"):
        path = write(task, args.output, kind)
    terminal, size = terminal_of(args), path.stat().st_size
    if terminal.json:
        terminal.line(json_text({"path": str(path), "type": kind, "bytes": size}))
    else:
        terminal.fields([("written", str(path)), ("type", kind), ("size", size_text(size))])
