"""The options and the streamed text that `zoo run` and `zoo chat` share."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from itertools import chain
from typing import Any

import zoo

from ...tasks.progress import Progress
from .wrapping import WordStream, terminal_columns


def loading_of(args: argparse.Namespace) -> dict[str, Any]:
    """The options of `zoo.load` on the command line."""
    names = ("device", "dtype", "weights", "revision", "local_files_only", "lock", "graphs", "mmproj")
    return {name: getattr(args, name) for name in names if name in args}


def load(args: argparse.Namespace, task: str | None, **more: Any) -> Any:
    """The task of the checkpoint that a command names; loading that takes its time is shown."""
    with Progress(None, unit="", what=f"loading {args.name}"):
        return zoo.load(args.name, task=task, **loading_of(args), **more)


def write(llm: Any, texts: list[str], options: dict[str, Any]) -> None:
    """Write each text and its continuation, or what is written about each of several images, piece by piece."""
    for text in texts:
        begin = text if llm.reads == "text" else f"{text}: " if len(texts) > 1 else ""
        write_pieces(chain([begin], llm.stream(text, **options)))
        sys.stdout.write("\n")


def write_pieces(pieces: Iterable[str]) -> None:
    """Write a text as its pieces come; on a terminal no word is cut at the edge."""
    if not sys.stdout.isatty():
        for piece in pieces:
            sys.stdout.write(printable(piece))
            sys.stdout.flush()
        return
    words = WordStream(sys.stdout.write, terminal_columns())
    try:
        for piece in pieces:
            words.feed(printable(piece))
            sys.stdout.flush()
    finally:
        words.flush()
        sys.stdout.flush()


def printable(text: str) -> str:
    """Text without control characters except newlines and tabs."""
    return "".join(c if c.isprintable() or c in "\n\t" else "�" for c in text)
