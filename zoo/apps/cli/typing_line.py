"""Where a message of a chat is typed: lines that can be edited, earlier messages, commands that complete themselves."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from ...optional import import_optional


def message_reader(prompt: str, commands: Mapping[str, bool]) -> Callable[[], str]:
    """A function that reads the next message from the terminal; EOFError after Ctrl-D, KeyboardInterrupt after Ctrl-C.

    With prompt_toolkit a message may have several lines (Alt-Enter begins one, and what is pasted keeps its own), and
    Tab completes commands.  Without it, or on a terminal that can do nothing, a message is a line.
    commands: those that begin with a slash, True for those that are given a file.
    """
    if importlib.util.find_spec("prompt_toolkit") is None or os.environ.get("TERM") in ("dumb", "unknown"):
        with suppress(ImportError):
            import readline  # noqa: F401 - gives input() line editing and history
        return lambda: input(prompt)
    module = import_optional("prompt_toolkit", "zoo chat", "chat")
    keys = import_optional("prompt_toolkit.key_binding", "zoo chat", "chat").KeyBindings()
    keys.add("enter")(lambda event: event.current_buffer.validate_and_handle())
    keys.add("escape", "enter")(lambda event: event.current_buffer.insert_text("\n"))
    session = module.PromptSession(
        prompt,
        multiline=True,
        key_bindings=keys,
        completer=completer_of(commands),
        complete_while_typing=False,
        prompt_continuation=" " * len(prompt),
        enable_history_search=True,
    )
    return session.prompt


def completer_of(commands: Mapping[str, bool]) -> Any:
    """What completes the name of a command, and of the file after one that is given a file."""
    completion = import_optional("prompt_toolkit.completion", "zoo chat", "chat")
    document_class = import_optional("prompt_toolkit.document", "zoo chat", "chat").Document
    files = completion.PathCompleter(expanduser=True)

    class Commands(completion.Completer):
        def get_completions(self, document: Any, event: Any) -> Iterator[Any]:
            text = document.text_before_cursor
            name, space, rest = text.partition(" ")
            if space and commands.get(name):
                yield from files.get_completions(document_class(rest), event)
            elif text.startswith("/") and not space:
                known = [command for command in commands if command.startswith(text)]
                yield from (completion.Completion(command, start_position=-len(text)) for command in known)

    return Commands()
