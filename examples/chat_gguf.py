"""Chat with a local GGUF file: `python examples/chat_gguf.py model-q4_k_m.gguf`.  Ctrl-D ends.

Needs the extra chat.  `zoo chat model-q4_k_m.gguf` does the same with more options.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable

import zoo


def chat(checkpoint: str, questions: Iterable[str], system: str | None = None, **options: float) -> None:
    """Print the answers to questions as they are written; each knows what was said before."""
    talk = zoo.load(checkpoint, task="generate").conversation(system, **options)
    for question in questions:
        for piece in talk.say(question):
            print(piece, end="", flush=True)
        print()


def read_lines() -> Iterable[str]:
    """The lines that a user types."""
    while True:
        print("> ", end="", flush=True)
        line = sys.stdin.readline()
        if not line:
            return
        if line.strip():
            yield line.strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", help="a GGUF file, or any checkpoint with a chat template")
    parser.add_argument("--system", help="the instructions that the chat begins with")
    parser.add_argument("--max-new-tokens", type=int, default=512)
    args = parser.parse_args()
    chat(args.file, read_lines(), args.system, max_new_tokens=args.max_new_tokens)


if __name__ == "__main__":
    main()
