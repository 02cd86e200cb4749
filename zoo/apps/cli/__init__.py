"""The command `zoo`; each command is a file of this folder, and `zoo --help` lists them."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from typing import TextIO

from ... import __version__, plugins, set_num_threads
from ...errors import ZooError, nearest
from . import descriptions as texts
from .arguments import parser_of
from .parser import Arguments, Parser, UsageError
from .peer_options import other_command
from .wrapping import terminal_columns, wrap_lines


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command with these arguments (by default the process's) and return the exit status."""
    _open_streams()
    argv = list(sys.argv[1:] if argv is None else argv)
    if argv[:1] in ([], ["help"]):  # `zoo help run` is `zoo run --help`
        argv = [*argv[1:2], "--help"]
    if argv[:1] == ["parity"]:  # a package of its own, with its own parser
        try:
            status = plugins.parity().main(argv[1:])
            sys.stdout.flush()
            return status
        except BrokenPipeError:
            _discard_output()
            return 141
    args, parser = _parse(argv)
    try:
        with warnings.catch_warnings(), _threads(args), _sigterm_ends(args):
            warnings.showwarning = _show_warning
            command = plugins.command(args.command)
            getattr(command, args.command)(args)
            sys.stdout.flush()
        return 0
    except UsageError as e:
        parser.error(str(e))
    except ZooError as e:
        return _fail(str(e))
    except MemoryError:
        return _fail("not enough memory")
    except BrokenPipeError:  # the reader of our output has closed it: end as other commands do
        _discard_output()
        return 141
    except OSError as e:
        _discard_output()
        return _fail(str(e))
    except KeyboardInterrupt:
        return report_stop(args, 130)
    except TerminatedError:
        return report_stop(args, 128 + signal.SIGTERM)


def _open_streams() -> None:
    """Put the null device in the place of streams that the caller has closed, for which Python has None."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):  # in the order of their numbers
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - until the process ends


class TerminatedError(SystemExit):
    """SIGTERM has come: what is being written is given up as after Ctrl-C, and a chat ends."""


@contextlib.contextmanager
def _sigterm_ends(args: argparse.Namespace) -> Iterator[None]:
    """A context in which SIGTERM raises TerminatedError, unless it is handled or ignored; a second one kills."""
    is_ours = threading.current_thread() is threading.main_thread()  # Python handles signals only there
    if args.command == "serve" or not is_ours or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return

    def end(number: int, frame: object) -> None:
        signal.signal(number, signal.SIG_DFL)
        raise TerminatedError(128 + number)

    signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def report_stop(args: argparse.Namespace, status: int) -> int:
    """Say how a job that was stopped is resumed, if it can be."""
    if args.command == "finetune":
        print("zoo: stopped: the same command goes on from the last state, if one was saved", file=sys.stderr)
    elif (
        args.command == "map"
        or (args.command == "embed" and os.path.isdir(f"{args.output}.parts"))
        or (args.command == "table" and _is_resumable(args.output))
    ):
        print("zoo: stopped: the same command with --resume keeps what is done", file=sys.stderr)
    return status


@contextlib.contextmanager
def _threads(args: argparse.Namespace) -> Iterator[None]:
    """Use the number of threads of --threads while a command runs."""
    count = getattr(args, "threads", None)
    if count is None:
        yield
        return
    if (args.device or "").startswith(("torch", "cuda")):
        raise UsageError("--threads is for NumPy: set OMP_NUM_THREADS for torch")
    set_num_threads(count)
    try:
        yield
    finally:
        set_num_threads(None)


def _parse(argv: Sequence[str]) -> tuple[argparse.Namespace, argparse.ArgumentParser]:
    """The arguments, and the parser of the command, which reports errors."""
    zoo = Parser(prog="zoo")
    zoo.format_help = lambda: f"{wrap_lines(texts.overview(), terminal_columns())}\n"  # type: ignore[method-assign]
    zoo.add_argument("--version", action="version", version=f"zoo {__version__}")
    Arguments(zoo)("command", choices=list(texts.COMMANDS), metavar="COMMAND")
    zoo.add_argument("arguments", nargs=argparse.REMAINDER, metavar="...")
    # argparse's treatment of "--" varies between its versions: here, texts follow it.
    at = argv.index("--") if "--" in argv else len(argv)
    words, inputs = [_with_dashes(word) for word in argv[:at]], argv[at + 1 :]
    if words and not words[0].startswith("-") and words[0] not in texts.COMMANDS:
        instead = other_command(words[0]) or nearest(words[0], texts.COMMANDS)
        zoo.error(f"there is no command {words[0]!r}{instead}")
    first = zoo.parse_args(words)
    parser = parser_of(first.command)
    # argparse allows options among the inputs only without subparsers.
    args = parser.parse_intermixed_args(first.arguments, argparse.Namespace(command=first.command))
    if inputs and first.command != "run":
        parser.error("only zoo run takes texts after --")
    if inputs:
        args.inputs = [*args.inputs, *inputs]
    return args, parser


def _with_dashes(word: str) -> str:
    """An option as Python writes it, --top_k=3, with dashes: --top-k=3."""
    name, equals, value = word.partition("=")
    return name.replace("_", "-") + equals + value if word.startswith("--") else word


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
    from ...tasks.progress import write_line

    write_line(f"zoo: warning: {message}")


def _discard_output() -> None:
    """Discard the rest of stdout's buffer, so that it does not fail again when the interpreter exits."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):  # stdout is not a file of the operating system
        return


def _is_resumable(output: str | None) -> bool:
    from .table_options import output_suffix

    return output not in (None, "-") and output_suffix(output) in ("/", ".jsonl")
