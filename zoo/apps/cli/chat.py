"""`zoo chat`: a conversation on the terminal, or one message for each line of stdin."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from typing import Any

import zoo

from ...devices import AUTO, resolved
from ...errors import UnsupportedError, ZooError
from ...runner import Runner
from .fastest import say_device
from .generation import loading_of, options_of, printable

PROMPT = "> "


def chat(args: argparse.Namespace) -> None:
    args.device = args.device or AUTO
    llm: Any = zoo.load(args.name, task="generate", **loading_of(args))
    if llm.template is None:
        raise UnsupportedError(f"{args.name} has no chat template: continue a text with `zoo run {args.name} TEXT`")
    if args.device == AUTO:
        device = resolved(AUTO, args.dtype)
        say_device(None if device == "onnx" and type(llm.model.runner) is Runner else device)  # 16-bit weights
    options = {"top_p": args.top_p, "top_k": args.top_k, "min_p": args.min_p, "stop_strings": args.stop}
    options = {name: value for name, value in options.items() if value is not None}
    conversation = llm.conversation(args.system, **options_of(args), **options)
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
    """The user's messages, without empty lines."""
    if watched:
        with suppress(ImportError):
            import readline  # noqa: F401 - gives input() line editing and history
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
