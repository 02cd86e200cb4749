"""`zoo chat`: a conversation on the terminal, or one message for each line of stdin."""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from ...checkpoint.names import mmproj_hint
from ...devices import AUTO, resolve_device
from ...errors import InputError, UnsupportedError, ZooError, quantity
from ...files.atomic_write import atomic_write
from ...files.json_file import parse_json_list, read_bounded
from ...images import open_image
from ...runner import Runner
from ...task_kinds import TaskKind, find_tasks
from ...tasks import find_task
from ...tasks.conversation import Conversation, checked_messages
from .call_options import given_options
from .chat_server import ServerConversation
from .fastest import say_device
from .generation import load, write_pieces
from .parser import UsageError
from .terminal import Terminal
from .typing_line import message_reader

PROMPT = "> "
# Each command that HELP has; True for those that are given a file.
COMMANDS = {"/reset": False, "/system": False, "/regenerate": False, "/help": False}
COMMANDS |= dict.fromkeys(("/save", "/load", "/image"), True)
HISTORY = 16 << 20  # bytes of a saved conversation
HELP = """\
/reset        begin anew, with the same system message
/system TEXT  begin anew with this system message; without TEXT with none
/regenerate   another answer to the last message
/image FILE   show an image with the next message
/save FILE    write the conversation to a file
/load FILE    continue from such a file; FILE.safetensors keeps what was computed, too
/help         this list
Ctrl-C stops an answer, Ctrl-D ends.  Alt-Enter begins another line, Tab completes a command.
A message that begins with a slash is typed with two."""


class Continued:
    """A model without a chat template, in place of a conversation: it continues each text."""

    left_out = 0

    def __init__(self, llm: Any, options: dict[str, Any]):
        self.llm, self.options, self.messages = llm, options, list[dict[str, Any]]()

    def say(self, text: str, images: Sequence[str] = ()) -> Iterator[str]:
        """The text that follows."""
        self.messages = [{"role": "user", "content": text}]
        yield from self.llm.stream(text, **self.options)


def chat(args: argparse.Namespace) -> None:
    (kind,) = find_tasks("generate")
    options = given_options(args, kind)
    talk: Any
    if args.server is not None:
        if args.prompt_lookup_num_tokens is not None:
            raise UsageError("--prompt-lookup is for a model that runs here, not on a server")
        talk = ServerConversation(args.server, args.name, args.system, options)
    else:
        args.device = args.device or AUTO
        llm: Any = _load_writer(args)
        if args.device == AUTO:
            device = resolve_device(AUTO, args.dtype)
            say_device(None if device == "onnx" and type(llm.model.runner) is Runner else device)  # 16-bit weights
        talk = Continued(llm, options) if llm.template is None else llm.conversation(args.system, **options)
    watched = sys.stdin.isatty() and sys.stdout.isatty()
    Terminal(sys.stdout, plain_text=True)  # which writes in any locale
    if not watched and isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(encoding="utf-8", errors="strict")
    if isinstance(talk, Continued):
        if args.system is not None:
            raise InputError(f"--system: {args.name} has no chat template, so it takes no system message")
        say(f"{args.name} has no chat template: it goes on from each text")
    if watched:
        say(f"{args.name}: Ctrl-C stops an answer, Ctrl-D ends, /help lists commands.")
    left_out, images = 0, list[str](args.image or ())
    if images:
        _check_reads_images(talk)
    for line in _turns(watched):
        try:
            text: Any = line
            if watched and line.startswith("/"):
                text = line[1:] if line.startswith("//") else _command(talk, line, images)
            if text is None:
                continue
            answer: Any = talk.say(text, tuple(images))
            images.clear()
            with closing(answer):
                write_pieces(answer)
        except KeyboardInterrupt:
            if not watched:
                raise
        except (ZooError, OSError) as e:
            if not watched:
                raise
            say(str(e))
        if talk.left_out > left_out:
            say(f"the context is full: the model no longer sees the first {talk.left_out} messages")
        left_out = talk.left_out
        sys.stdout.write("\n")
        sys.stdout.flush()


def _load_writer(args: argparse.Namespace) -> Any:
    """The language model that a command names, which may read images too."""
    try:
        return load(args, "generate")
    except ZooError as e:
        if isinstance(e, UnsupportedError):
            with suppress(UnsupportedError):
                return load(args, "image-text-to-text")
        kind: TaskKind | None = None
        with suppress(ZooError):  # the first error is that of its files
            where = {name: getattr(args, name) for name in ("revision", "local_files_only", "lock", "mmproj")}
            kind = find_task(args.name, **where).kind
        if kind is None or kind.streams:
            raise
        given = "a text" if kind.reads == "text" else f"FILE of {kind.reads}"
    command = f"zoo run {args.name} {given!r}"
    raise UnsupportedError(
        f"{args.name} is not a language model: its task is {kind.name}, {kind.help}; {command} runs it"
    )


def _check_reads_images(talk: Any) -> None:
    if isinstance(talk, Continued) or (isinstance(talk, Conversation) and talk.llm.reads != "image"):
        name = "" if talk.llm.checkpoint is None else talk.llm.checkpoint.name
        raise InputError(f"an image: the model reads texts alone{mmproj_hint(name)}")


def _command(talk: Any, line: str, images: list[str]) -> Any:
    """Do what a line with a slash says -> a message to send, if that is part of it.  images: of the next message."""
    name, _, rest = line[1:].partition(" ")
    rest, messages = rest.strip(), talk.messages
    if name == "help":
        say(HELP)
    elif name in ("reset", "system"):
        if name == "system" and isinstance(talk, Continued):
            raise InputError("the model has no chat template, so it takes no system message")
        kept = [one for one in messages[:1] if one["role"] == "system"] if name == "reset" else []
        talk.messages = kept if name == "reset" or not rest else [{"role": "system", "content": rest}]
        say("a new conversation")
    elif name == "regenerate":
        last = next((i for i in reversed(range(len(messages))) if messages[i]["role"] == "user"), None)
        if last is None:
            raise InputError("there is no message to answer again")
        text, talk.messages = messages[last]["content"], messages[:last]
        return text
    elif name == "image" and rest:
        _check_reads_images(talk)
        path = os.path.expanduser(rest)
        open_image(path)  # an error now, not with the next message
        images.append(path)
        say(f"{quantity(len(images), 'image')} for the next message")
    elif name in ("save", "load") and rest:
        path = Path(os.path.expanduser(rest))
        if path.suffix == ".safetensors":
            if not isinstance(talk, Conversation):
                raise InputError(f"{path}: there is no cache of a conversation to save or load: expected .json")
            (talk.load_cache if name == "load" else talk.save_cache)(path)
        elif name == "load":
            found = parse_json_list(read_bounded(path, HISTORY, InputError), path, InputError)
            talk.messages = checked_messages(found, path)
        else:
            with atomic_write(path) as part:
                part.write_text(json.dumps(messages, indent=1, ensure_ascii=False), encoding="utf-8")
        say(f"{len(talk.messages)} messages {'from' if name == 'load' else 'in'} {path}")
    else:
        raise InputError(f"there is no command {line[:80]!r}: /help lists those there are")
    return None


def say(text: str) -> None:
    """Write a line beside the conversation."""
    print(text if text == HELP else f"zoo: {text}", file=sys.stderr, flush=True)


def _turns(watched: bool) -> Iterator[str]:
    """The user's messages, without empty lines."""
    read = message_reader(PROMPT, COMMANDS) if watched else sys.stdin.readline
    while True:
        try:
            line = read()
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
