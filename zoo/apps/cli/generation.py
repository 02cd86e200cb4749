"""What `zoo run` and `zoo chat` share where a model writes: its options, and writing what it writes."""

from __future__ import annotations

import argparse
import sys
from typing import Any


def options_of(args: argparse.Namespace, llm: Any) -> dict[str, Any]:
    """The options of generation that were given; --temperature says whether tokens are drawn."""
    options: dict[str, Any] = {} if args.max_new_tokens is None else {"max_new_tokens": args.max_new_tokens}
    if args.seed is not None:
        options["seed"] = args.seed
    if args.temperature is not None:
        options["do_sample"] = args.temperature != 0
        if options["do_sample"]:
            options["temperature"] = args.temperature
    return options


def write(llm: Any, texts: list[str], options: dict[str, Any]) -> None:
    """Each text and what follows it, as it comes."""
    for text in texts:
        sys.stdout.write(printable(text))
        for piece in llm.stream(text, **options):
            sys.stdout.write(printable(piece))
            sys.stdout.flush()
        sys.stdout.write("\n")


def printable(text: str) -> str:
    """Text without what a terminal would obey, but with its lines."""
    return "".join(c if c.isprintable() or c in "\n\t" else "�" for c in text)
