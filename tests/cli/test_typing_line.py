"""Messages that are typed into a chat: of several lines, with commands that complete themselves, and earlier ones."""

from __future__ import annotations

import importlib.util
import io
import sys
from pathlib import Path

import pytest

from zoo.apps.cli.chat import COMMANDS, HELP
from zoo.apps.cli.typing_line import completer_of, message_reader

ALT_ENTER, ENTER, UP = "\x1b\r", "\r", "\x1b[A"


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch):
    """What types keys into a terminal that prompt_toolkit has."""
    reason = "needs prompt_toolkit, the extra 'chat'"
    session = pytest.importorskip("prompt_toolkit.application", reason=reason)
    from prompt_toolkit.input import create_pipe_input
    from prompt_toolkit.output import DummyOutput

    monkeypatch.setenv("TERM", "xterm")
    with create_pipe_input() as typed, session.create_app_session(input=typed, output=DummyOutput()):
        yield typed.send_text


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("/rege", ["/regenerate"]),
        ("/s", ["/save", "/system"]),
        ("/", sorted(COMMANDS)),
        ("/load ta", ["/load talk.json"]),
        ("/system ta", []),
        ("ta", []),
    ],
)
def test_commands_and_files_are_completed(text: str, wanted: list[str], tmp_path: Path, monkeypatch) -> None:
    completion = pytest.importorskip("prompt_toolkit.completion", reason="needs prompt_toolkit, the extra 'chat'")
    from prompt_toolkit.document import Document

    monkeypatch.chdir(tmp_path)
    Path("talk.json").write_text("[]", encoding="utf-8")
    found = completer_of(COMMANDS).get_completions(Document(text), completion.CompleteEvent())
    assert sorted(text[: len(text) + one.start_position] + one.text for one in found) == wanted


def test_lines_and_history(keys) -> None:
    read = message_reader("> ", COMMANDS)
    keys(f"one{ALT_ENTER}two{ENTER}")
    assert read() == "one\ntwo"
    keys(f"{UP}{ENTER}")
    assert read() == "one\ntwo"
    keys(f"\x1b[200~pasted\nlines\x1b[201~{ENTER}")
    assert read() == "pasted\nlines"
    keys("\x03")
    with pytest.raises(KeyboardInterrupt):
        read()
    keys("\x04")
    with pytest.raises(EOFError):
        read()


def test_without_it_a_message_is_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(sys, "stdin", io.StringIO("one\ntwo\n"))
    read = message_reader("", COMMANDS)
    assert [read(), read()] == ["one", "two"]
    with pytest.raises(EOFError):
        read()


def test_every_command_is_known() -> None:
    assert {line.split()[0] for line in HELP.splitlines() if line.startswith("/")} == COMMANDS.keys()
