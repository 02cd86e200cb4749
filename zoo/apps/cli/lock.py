"""`zoo lock`: write the files of checkpoints to a lock file, or compare them with it."""

from __future__ import annotations

import argparse
import sys

from ... import lock as locks
from ...errors import LockError
from ...tasks.progress import Progress
from ...weights.memory import size_text
from .parser import UsageError
from .terminal import Terminal, json_text, terminal_of


def lock(args: argparse.Namespace) -> None:
    (_check if args.check else _write)(args, terminal_of(args))


def _write(args: argparse.Namespace, terminal: Terminal) -> None:
    if not args.names:
        raise UsageError("no NAME: give the names or folders of checkpoints, or --check")
    if args.revision is not None and len(args.names) > 1:
        raise UsageError("--revision is for one repository: give only one NAME with it")
    with Progress(None, unit="", what="hashing files"):
        entries = locks.lock(args.names, args.output, revision=args.revision, local_files_only=args.local_files_only)
    if terminal.json:
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


def _check(args: argparse.Namespace, terminal: Terminal) -> None:
    if args.revision is not None:
        raise UsageError("--revision is for writing a lock file: --check uses the commits in it")
    with Progress(None, unit="", what="hashing files"):
        found = locks.check(args.output, args.names)
    if terminal.json:
        terminal.line(json_text(found, indent=2))
    else:
        for name, problems in found.items():
            terminal.title(name)
            terminal.fields([("wrong", problem) for problem in problems] or [("as locked", "all files")])
    sys.stdout.flush()
    if wrong := [name for name, problems in found.items() if problems]:
        raise LockError(f"the files differ from {args.output}: {', '.join(wrong)}")
