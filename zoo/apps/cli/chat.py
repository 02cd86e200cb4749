"""`zoo chat`: a conversation on the terminal, or one turn for each line of stdin."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from typing import Any

import zoo

from ...errors import UnsupportedError, ZooError
from .generation import options_of, printable

PROMPT = "> "


def chat(args: argparse.Namespace) -> None:
    """The command, with the arguments as parsed."""
    llm: Any = zoo.load(
        args.name,
        task="generate",
        device=args.device,
        dtype=args.dtype,
        weights=args.weights,
        revision=args.revision,
        local_files_only=args.local_files_only,
        lock=args.lock,
        graphs=args.graphs,
    )
    if llm.template is None:
        raise UnsupportedError(f"{args.name} has no chat template: `zoo run {args.name} TEXT` goes on from a text")
    named = {"top_p": args.top_p, "top_k": args.top_k, "min_p": args.min_p, "stop_strings": args.stop}
    drawing = {name: value for name, value in named.items() if value is not None}
    conversation = llm.conversation(args.system, **options_of(args, llm), **drawing)
    watched = sys.stdin.isatty() and sys.stdout.isatty()
    if watched:
        print(f"{llm.checkpoint.name}: Ctrl-C stops an answer, Ctrl-D ends.", file=sys.stderr)
    for text in _turns(watched):
        try:
            with closing(conversation.say(text)) as pieces:
                for piece in pieces:
                    sys.stdout.write(printable(piece))
                    sys.stdout.flush()
        except KeyboardInterrupt:
            if not watched:
                raise
        except ZooError as e:
            if not watched:
                raise
            print("zoo:", e, file=sys.stderr)
        sys.stdout.write("\n")
        sys.stdout.flush()


def _turns(watched: bool) -> Iterator[str]:
    """What the user says, without empty lines."""
    if watched:
        with suppress(ImportError):
            import readline  # noqa: F401  (gives input() its keys and its memory)
    while True:
        try:
            line = input(PROMPT) if watched else sys.stdin.readline()
        except EOFError:
            sys.stdout.write("\n")
            return
        except KeyboardInterrupt:
            if not watched:
                raise
            sys.stdout.write("\n")
            continue
        except UnicodeDecodeError as e:
            raise ZooError(f"stdin is not UTF-8: {e.reason}") from None
        if not watched and not line:
            return
        if line.strip():
            yield line.rstrip("\r\n")
