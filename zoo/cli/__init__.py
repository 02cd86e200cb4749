"""The command `zoo`: `zoo run` for a checkpoint's task, `zoo info` for what is in it."""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Sequence
from typing import TextIO

from .. import __version__
from ..errors import ZooError
from ..tasks import PICTURE_TASKS, TASKS

DESCRIPTION = """\
zoo runs checkpoints of the Hugging Face hub on NumPy, or on torch with --device.

A terminal gets tables; a pipe, or --json, gets JSON.  Exit status: 0 all went well, 1 a checkpoint or an input cannot
be used, 2 the command line cannot.  HF_HOME, HF_TOKEN, HF_ENDPOINT and HF_HUB_OFFLINE mean what they mean to
huggingface_hub; NO_COLOR leaves out colours and bars, OMP_NUM_THREADS limits the threads."""

RUN = """\
Run a checkpoint on each INPUT, with the task that it was trained for, or with --task:

  embed      a vector for each INPUT
  fill-mask  words for the mask tokens ([MASK], <mask>: as the tokenizer has it) in each INPUT
  classify   labels for each INPUT; for pairs of texts, give the second ones with --pair
  tag        names, places and the like in each INPUT
  answer     the answer to --question Q in --context C; where one of them is left out, each INPUT is one
  rerank     the first INPUT is the query, the others are documents to sort
  segment    the share of each label among the pixels; --overlay writes them over the picture

Where the checkpoint reads pictures (embed, classify and segment), each INPUT is the path of one.  Without INPUT, or
with '-' in place of it, the inputs are the lines of stdin, each answered as soon as it is read."""

RUN_JSON = """\
JSON is what the task returns in Python: for one INPUT its result, for several an array of results, for lines of stdin
a line of JSON each, in the same order; for rerank one array.  Vectors are arrays of numbers, labels, entities, words
and answers are objects with the fields of their Python class; for segment there is the picture's size and its labels
in place of the mask.

  zoo run sentence-transformers/all-MiniLM-L6-v2 "The cat sits outside." "A cat is in the garden."
  zoo run FacebookAI/roberta-large-mnli "A man sleeps." --pair "A man is awake." --json
  zoo run ./my-checkpoint --task tag < lines.txt > entities.jsonl
  zoo run microsoft/beit-base-finetuned-ade-640-640 street.jpg --overlay labels.png"""

INFO = """\
Show what a checkpoint is made of: architecture, task, sizes, tokenizer or processor, files, and what became of its
tensors."""


class UsageError(Exception):
    """The command line asks for what does not go together; known only once the checkpoint's task is."""


def main(argv: Sequence[str] | None = None) -> int:
    """The exit status of the command with these arguments (those of the process if not given)."""
    args, parser = _parse(sys.argv[1:] if argv is None else argv)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            if args.command == "run":
                from .run import run as command
            else:
                from .info import info as command
            command(args)
            sys.stdout.flush()
        return 0
    except UsageError as e:
        parser.error(str(e))
    except ZooError as e:
        return _fail(str(e))
    except MemoryError:
        return _fail("not enough memory")
    except BrokenPipeError:  # whoever read our output has seen enough: end as other commands do
        _discard_output()
        return 141
    except OSError as e:
        _discard_output()
        return _fail(str(e))
    except KeyboardInterrupt:
        return 130


def _parse(argv: Sequence[str]) -> tuple[argparse.Namespace, argparse.ArgumentParser]:
    """The arguments, and the parser of the command, for its errors."""
    parser, commands = _parsers()
    # What argparse does with "--" differs between its ways of parsing and its versions: here, texts follow.
    at = argv.index("--") if "--" in argv else len(argv)
    words, texts = argv[:at], argv[at + 1 :]
    first = parser.parse_args(words)
    # Options may stand among the inputs, which argparse permits only without subparsers.
    args = commands[first.command].parse_intermixed_args(first.arguments, argparse.Namespace(command=first.command))
    if texts and first.command != "run":
        commands[first.command].error("takes no INPUT")
    if texts:
        args.inputs = [*args.inputs, *texts]
    return args, commands[first.command]


def _parsers() -> tuple[argparse.ArgumentParser, dict[str, argparse.ArgumentParser]]:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="zoo", description=DESCRIPTION, formatter_class=raw)
    parser.add_argument("--version", action="version", version=f"zoo {__version__}")
    help_text = "run a checkpoint, or show what is in it; zoo run --help and zoo info --help say more"
    parser.add_argument("command", choices=("run", "info"), metavar="run | info", help=help_text)
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="...", help="what the command works on")

    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("name", metavar="NAME", help="a name on the hub, 'org/name', or a folder")
    common.add_argument("--revision", help="a branch, tag or commit of the hub's repository")
    common.add_argument("--local-files-only", action="store_true", help="never use the network")
    common.add_argument("--json", action="store_true", help="JSON even in a terminal")

    run = argparse.ArgumentParser(
        prog="zoo run", parents=[common], description=RUN, epilog=RUN_JSON, formatter_class=raw
    )
    run.add_argument(
        "inputs",
        nargs="*",
        metavar="INPUT",
        help="a text, or a picture's path; '-' for the lines of stdin; after '--' it may begin with a dash",
    )
    tasks = list(dict.fromkeys([*TASKS, *PICTURE_TASKS]))
    run.add_argument("--task", choices=tasks, metavar="TASK", help=", ".join(tasks))
    run.add_argument("--device", help="cpu (NumPy, the default), cuda, cuda:1, torch:cpu")
    run.add_argument("--dtype", help="float32; on torch also float16 and bfloat16")
    run.add_argument("--top-k", type=_count, metavar="N", help="how many labels, words, answers or documents")
    run.add_argument("--pair", action="append", metavar="TEXT", help="second text: one for each INPUT, or one for all")
    run.add_argument("--question", metavar="Q", help="for answer")
    run.add_argument("--context", metavar="C", help="for answer")
    run.add_argument("--overlay", metavar="FILE", help="for segment: a PNG file to write the picture and its labels to")

    info = argparse.ArgumentParser(prog="zoo info", parents=[common], description=INFO)
    return parser, {"run": run, "info": info}


def _count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value} is not at least 1")
    return value


_count.__name__ = "whole number"  # argparse's word for it in the message about one that is not


def _fail(message: str) -> int:
    print("zoo:", " ".join(message.split()), file=sys.stderr)
    return 1


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    print(f"zoo: warning: {message}", file=sys.stderr)


def _discard_output() -> None:
    """Let what is left in stdout's buffer go nowhere, instead of failing once more as the interpreter exits."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):  # stdout is not a file of the system
        return
