"""`zoo chat` on a terminal and on a pipe, and `zoo run` where a model writes."""

from __future__ import annotations

import io
import json
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from chat_checkpoint import write_chat_checkpoint

import zoo
from zoo.apps.cli import main

pytest.importorskip("jinja2", reason="needs jinja2, the extra 'chat'")
ROOT = Path(zoo.__file__).parent.parent
ENV = {**os.environ, "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1"}
TOO_LONG = 300  # seconds


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> str:
    return str(write_chat_checkpoint(tmp_path_factory.mktemp("chat") / "chatty"))


def zoo_command(*args: str, text: str | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "zoo", *args]
    return subprocess.run(command, input=text, capture_output=True, text=True, env=ENV, timeout=120)


def test_chat_on_a_pipe(folder):
    """A turn for each line, and an answer for each: the conversation's."""
    options = ["--max-new-tokens", "6", "--temperature", "0", "--system", "Be brief."]
    done = zoo_command("chat", folder, *options, text="Hello\n\nWho are you?")
    assert (done.returncode, done.stderr) == (0, "")
    talk = zoo.load(folder).conversation("Be brief.", max_new_tokens=6, do_sample=False)
    wanted = ["".join(talk.say(text)) for text in ("Hello", "Who are you?")]
    shown = "".join(c if c.isprintable() or c in "\n\t" else "�" for answer in wanted for c in f"{answer}\n")
    assert done.stdout == shown


def test_seeds(folder):
    args = ["chat", folder, "--max-new-tokens", "6", "--temperature", "1.5"]
    one, same, other = (zoo_command(*args, "--seed", seed, text="Hello\n").stdout for seed in ("1", "1", "2"))
    assert one == same != other


def test_which_tokens_are_drawn_from(folder, capsys, monkeypatch):
    def said(*options: str) -> str:
        monkeypatch.setattr("sys.stdin", io.StringIO("Hello\n"))
        assert main(["chat", folder, "--max-new-tokens", "6", *options]) == 0
        return capsys.readouterr().out

    likeliest = said("--temperature", "0")
    for one in (["--top-k", "1"], ["--top-p", "0.0001"], ["--min-p", "1"]):
        assert said("--temperature", "2", *one) == likeliest
    stop = [c for c in likeliest.strip() if c != "�"][-1]  # which may stand in the place of another character
    assert said("--temperature", "0", "--stop", stop, "--stop", "not there") == likeliest.split(stop)[0] + "\n"


def test_a_model_without_a_template_goes_on(capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("Once upon a time\n"))
    assert main(["chat", "stories260k", "--max-new-tokens", "12", "--temperature", "0"]) == 0
    said = capsys.readouterr()
    assert said.out == ", there was a little girl named Lily. She\n"
    assert "goes on from each text" in said.err


def test_commands(folder, tmp_path, capsys):
    from zoo.apps.cli.chat import Continued, _command

    talk = zoo.load(folder).conversation("Be brief.", max_new_tokens=4, do_sample=False)
    answer = "".join(talk.say("Hello"))
    assert _command(talk, f"/save {tmp_path / 'talk.json'}", []) is None
    before = list(talk.messages)
    assert _command(talk, "/regenerate", []) == "Hello"
    assert "".join(talk.say("Hello")) == answer
    _command(talk, "/system Be long.", [])
    assert talk.messages == [{"role": "system", "content": "Be long."}]
    _command(talk, f"/load {tmp_path / 'talk.json'}", [])
    assert talk.messages == before
    _command(talk, "/reset", [])
    assert talk.messages == before[:1]
    _command(talk, "/system", [])
    assert talk.messages == []
    _command(talk, "/help", [])
    assert "/regenerate" in capsys.readouterr().err
    (tmp_path / "bad.json").write_text('[{"role": "x"}]')
    for line in ("/what", "/save", "/regenerate", f"/load {tmp_path / 'none'}", f"/load {tmp_path / 'bad.json'}"):
        with pytest.raises(zoo.ZooError):
            _command(talk, line, [])
    with pytest.raises(zoo.ZooError, match="no chat template"):
        _command(Continued(None, {}), "/system x", [])


def test_a_checkpoint_that_is_no_language_model(tmp_path, capsys):
    from parity.checkpoints import build

    folder = str(build("bert-base-NER", tmp_path / "ner"))
    for name, task in (
        (folder, f"tag, .*; zoo run {folder} 'a text'"),
        ("zoo-read", "read, .*; zoo run zoo-read 'FILE"),
    ):
        assert main(["chat", name]) == 1
        assert re.search(f"{name} is not a language model: its task is {task}", capsys.readouterr().err)


def test_text_into_a_pipe(capsys):
    assert main(["run", "stories260k", "Once upon", "--text", "--max-new-tokens", "8", "--temperature", "0"]) == 0
    wanted = zoo.load("stories260k")("Once upon", max_new_tokens=8, do_sample=False)
    assert capsys.readouterr().out == f"Once upon{wanted}\n"


@pytest.mark.parametrize(
    ("args", "status", "message"),
    [
        (["chat", "stories260k", "--system", "x"], 1, "has no chat template, so it takes no system message"),
        (["chat", "x", "--server", "file:///etc"], 1, "expected an address such as http://127.0.0.1:8000"),
        (["chat", "x", "--server", "http://127.0.0.1:1"], 1, "http://127.0.0.1:1/v1/: "),
        (["chat", "{folder}", "--temperature", "-1"], 1, "temperature is -1.0"),
        (["chat", "{folder}", "--temperature", "nan"], 1, "temperature is nan"),
        (["chat", "{folder}", "--max-new-tokens", "0"], 2, "not at least 1"),
        (["chat", "{folder}", "--top-p", "2"], 1, "top_p is 2.0"),
        (["run", "stories260k", "x", "--text", "--json"], 2, "give one of them"),
        (["chat", "{folder}", "hello"], 2, "unknown arguments: hello"),
        (["chat", "{folder}/nothing"], 1, "no folder"),
        (["run", "stories260k", "x", "--labels", "3"], 2, "--labels is for"),
        (["run", "{folder}", "x", "--seed", "-1"], 1, "seed is -1"),
    ],
)
def test_errors(args, status, message, folder, ending):
    ended, _, said = ending(*(arg.format(folder=folder) for arg in args), stdin=b"Hello\n")
    assert ended == status
    assert message in said
    assert "Traceback" not in said


def test_run_on_a_pipe(capfd):
    assert main(["run", "stories260k", "Once upon a time", "--max-new-tokens", "8"]) == 0
    assert json.loads(capfd.readouterr().out) == zoo.load("stories260k")("Once upon a time", max_new_tokens=8)
    done = zoo_command("run", "stories260k", "--max-new-tokens", "3", text="Once\nThe\n")
    assert [type(json.loads(line)) for line in done.stdout.splitlines()] == [str, str]


class Terminal:
    """A process on a terminal of its own."""

    def __init__(self, *args: str):
        import pty

        self.shown = ""
        self.pid, self.fd = pty.fork()
        if not self.pid:
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # ignored where the tests run in a shell's background
            os.environ.update(ENV, TERM="dumb")
            os.execv(sys.executable, [sys.executable, "-m", "zoo", *args])

    def until(self, text: str, count: int = 1, seconds: float = TOO_LONG) -> str:
        """Wait until `text` was shown `count` times, or without `text` until the process has ended -> the output."""
        end = time.monotonic() + seconds
        while not text or self.shown.count(text) < count:
            ready, _, _ = select.select([self.fd], [], [], max(0.0, end - time.monotonic()))
            assert ready, f"{text!r} did not come: {self.shown!r}"
            try:
                block = os.read(self.fd, 1 << 16)
            except OSError:
                block = b""
            if not block:
                assert not text, f"it ended without {text!r}: {self.shown!r}"
                break
            self.shown += block.decode(errors="replace")
        return self.shown

    def type(self, text: str) -> None:
        os.write(self.fd, text.encode())

    def interrupt(self, prompt: str) -> None:
        """Type Ctrl-C until there is another prompt: readline misses one that comes just before it waits for a key."""
        count = self.shown.count(prompt) + 1
        for _ in range(TOO_LONG):
            self.type("\x03")
            with suppress(AssertionError):
                self.until(prompt, count, 1)
                return
        raise AssertionError(f"Ctrl-C gave no prompt: {self.shown!r}")

    def close(self) -> int:
        """The exit status."""
        self.until("")
        os.close(self.fd)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


@pytest.fixture
def terminal() -> Iterator[Callable[..., Terminal]]:
    pytest.importorskip("pty", reason="needs pseudo-terminals")
    opened: list[Terminal] = []

    def start(*args: str) -> Terminal:
        opened.append(Terminal(*args))
        return opened[-1]

    yield start
    for shell in opened:
        with suppress(OSError):  # has ended, as it should
            os.kill(shell.pid, signal.SIGKILL)
            os.waitpid(shell.pid, 0)


def test_chat_on_a_terminal(terminal, folder):
    """Ctrl-C stops an answer, or does nothing at the prompt; Ctrl-D ends."""
    shell = terminal("chat", folder, "--max-new-tokens", "400", "--temperature", "0")
    assert "Ctrl-C stops an answer" in shell.until("> ")
    shell.interrupt("> ")
    shell.type("Hello\n")
    shell.until("Hello\r\n")
    time.sleep(0.1)
    os.kill(shell.pid, signal.SIGINT)
    shell.until("> ", 3)
    shell.type("And now?\n")
    shell.until("> ", 4)
    shell.type("\x04")
    assert shell.close() == 0
    assert "Traceback" not in shell.shown


def test_run_on_a_terminal_shows_the_story(terminal):
    shell = terminal("run", "stories260k", "Once upon a time", "--max-new-tokens", "12")
    assert shell.close() == 0
    assert shell.shown.strip() == "Once upon a time, there was a little girl named Lily. She"
