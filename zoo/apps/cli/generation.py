"""The options and the streamed text that `zoo run` and `zoo chat` share."""

from __future__ import annotations

import argparse
import sys
from typing import Any

import zoo

from ...tasks.progress import Progress


def loading_of(args: argparse.Namespace) -> dict[str, Any]:
    """The options of `zoo.load` on the command line."""
    names = ("device", "dtype", "weights", "revision", "local_files_only", "lock", "graphs")
    return {name: getattr(args, name) for name in names}


def load(args: argparse.Namespace, task: str | None, **more: Any) -> Any:
    """The task of the checkpoint that a command names; loading that takes its time is shown."""
    with Progress(None, unit="", what=f"loading {args.name}"):
        return zoo.load(args.name, task=task, **loading_of(args), **more)


def write(llm: Any, texts: list[str], options: dict[str, Any]) -> None:
    """Write each text and its continuation, or what is written about each of several images, piece by piece."""
    for text in texts:
        if llm.reads == "text":
            sys.stdout.write(printable(text))
        elif len(texts) > 1:
            sys.stdout.write(f"{printable(text)}: ")
        for piece in llm.stream(text, **options):
            sys.stdout.write(printable(piece))
            sys.stdout.flush()
        sys.stdout.write("\n")


def printable(text: str) -> str:
    """Text without control characters except newlines and tabs."""
    return "".join(c if c.isprintable() or c in "\n\t" else "�" for c in text)
