"""The one file, or stdout, that commands about documents write to."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection
from pathlib import Path

from ...errors import ZooError, nearest
from ...files.atomic_write import atomic_write
from .parser import UsageError
from .terminal import Terminal

STDIN = "-"


def output_format(args: argparse.Namespace, formats: Collection[str], default: str) -> str:
    """The suffix of the format to write: that of -o's file, or of --format or --json for stdout.

    formats: the suffixes that there are; default: that of stdout.
    """
    is_file = args.output not in (None, STDIN)
    if is_file and (args.json or args.format):
        raise UsageError("--json and --format are for stdout: the format of a file is that of its suffix")
    if args.json and args.format not in (None, "json"):
        raise UsageError(f"--json and --format {args.format} exclude each other: give one of them")
    named = f".{args.format or 'json'}" if args.json or args.format else default
    given = Path(args.output).suffix.lower() if is_file else named
    if given not in formats:
        known = ", ".join(formats)
        raise UsageError(f"{args.output}: {given or 'no suffix'}, expected one of {known}{nearest(given, formats)}")
    if is_file and any(_is_same(args.output, name) for name in args.documents):
        raise UsageError(f"{args.output} is both an input and the output: choose another name for the output")
    return given


def _is_same(output: str, name: str) -> bool:
    path, other = Path(output), Path(name)
    return path.is_file() and other.exists() and path.samefile(other)


def write_output(text: str, args: argparse.Namespace, plain_text: bool) -> None:
    """Write a text to -o's file, complete or not at all, or to stdout.  plain_text: it is one for people to read."""
    if args.output in (None, STDIN):
        return Terminal(sys.stdout, plain_text=plain_text).verbatim(text)
    path = Path(args.output)
    try:
        with atomic_write(path) as partial:
            partial.write_text(text, encoding="utf-8", newline="\n")
    except OSError as e:
        raise ZooError(f"cannot write to {path}: {e.strerror or e}") from e
    print(f"zoo: wrote {path}", file=sys.stderr)
