"""`zoo lock`: which files checkpoints are, written to a lock file or compared with one."""

from __future__ import annotations

import argparse
import sys

from ... import lock as locks
from ...errors import LockError
from . import UsageError
from .info import size_text
from .terminal import Terminal, json_text


def lock(args: argparse.Namespace) -> None:
    """The command, with the arguments as parsed."""
    as_json = args.json or not sys.stdout.isatty()
    terminal = Terminal(sys.stdout, plain_text=not as_json)
    (_check if args.check else _write)(args, terminal, as_json)


def _write(args: argparse.Namespace, terminal: Terminal, as_json: bool) -> None:
    if not args.names:
        raise UsageError("no NAME: give names or folders, or --check")
    if args.revision is not None and len(args.names) > 1:
        raise UsageError("--revision is of one repository: give one NAME with it")
    entries = locks.lock(args.names, args.output, revision=args.revision, local_files_only=args.local_files_only)
    if as_json:
        found = {name: {"revision": one.revision, "fingerprint": one.fingerprint} for name, one in entries.items()}
        terminal.line(json_text(found, indent=2))
    else:
        for name, one in entries.items():
            size = sum(file.size for file in one.files.values())
            terminal.title(name)
            terminal.fields(
                [
                    ("commit", one.revision or "none: a folder"),
                    ("files", f"{len(one.files)}, {size_text(size)}"),
                    ("fingerprint", one.fingerprint),
                ]
            )
    sys.stdout.flush()
    print("zoo: wrote", args.output, file=sys.stderr)


def _check(args: argparse.Namespace, terminal: Terminal, as_json: bool) -> None:
    if args.revision is not None:
        raise UsageError("--revision is for writing a lock: --check takes the commits that the lock names")
    found = locks.check(args.output, args.names)
    if as_json:
        terminal.line(json_text(found, indent=2))
    else:
        for name, problems in found.items():
            terminal.title(name)
            terminal.fields([("wrong", problem) for problem in problems] or [("as locked", "all files")])
    sys.stdout.flush()
    if wrong := [name for name, problems in found.items() if problems]:
        raise LockError(f"not as {args.output} says: {', '.join(wrong)}")
