"""Commands on terminals, pipes and disks of all kinds: narrow, closed, full, not UTF-8; never a traceback."""

from __future__ import annotations

import os
import re
import struct
import subprocess
import sys
from pathlib import Path

import pytest

import zoo

ROOT = Path(zoo.__file__).parent.parent
ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
PATIENCE = 300  # seconds until a command that hangs is a failure

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs a shell and pseudo-terminals")


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "PYTHON": sys.executable, **more}


def shell(command: str, **more: str) -> subprocess.CompletedProcess[bytes]:
    """Run a command, in which zoo is this zoo."""
    line = f'zoo() {{ "$PYTHON" -m zoo "$@"; }}; {command}'
    done = subprocess.run(["bash", "-c", line], capture_output=True, env=environment(**more), timeout=PATIENCE)
    for said in (done.stdout, done.stderr):
        assert b"Traceback" not in said, said.decode(errors="replace")
        assert b"Exception ignored" not in said, said.decode(errors="replace")
    return done


def in_terminal(
    *args: str, columns: int = 80, keys: bytes = b"", errors: int | None = None, **more: str
) -> tuple[int, str]:
    """Run zoo in a terminal of so many columns, with these keys typed -> its status and what it showed.

    errors: where stderr goes instead, on which a slow machine sees a bar while the model is loaded.
    """
    import fcntl
    import pty
    import termios

    screen, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    env = environment(**more)
    env.pop("COLUMNS", None)
    command = [sys.executable, "-m", "zoo", *args]
    process = subprocess.Popen(
        command,
        stdin=terminal,
        stdout=terminal,
        stderr=terminal if errors is None else errors,
        env=env,
        start_new_session=True,
    )
    os.close(terminal)
    os.write(screen, keys)
    shown = b""
    try:
        while data := os.read(screen, 1 << 16):
            shown += data
    except OSError:  # Linux has an error in place of an end
        pass
    status = process.wait(PATIENCE)
    os.close(screen)
    text = shown.decode(errors="replace").replace("\r\n", "\n")
    assert "Traceback" not in text, text
    return status, text


@pytest.mark.parametrize(
    ("args", "columns"),
    [
        (("families",), 1),
        (("families",), 40),
        (("info", "stories260k"), 40),
        (("--help",), 20),
        (("run", "--help"), 40),
    ],
)
def test_narrow_terminals(args: tuple[str, ...], columns: int) -> None:
    status, text = in_terminal(*args, columns=columns)
    assert status == 0
    plain = re.sub(r"\x1b\[[\d;]*m", "", text)
    lines = [line for line in plain.split("\n") if len(line.split()) > 1]  # a long word has a line of its own
    assert max(map(len, lines)) <= max(columns, 20)


def test_a_story_on_a_narrow_terminal() -> None:
    options = ("--max-new-tokens", "60", "--temperature", "0", "--device", "cpu")
    prompt = "Once upon a time"
    status, text = in_terminal("run", "stories260k", prompt, *options, columns=24, errors=subprocess.DEVNULL)
    whole = zoo.load("stories260k")("Once upon a time", max_new_tokens=60, do_sample=False)
    assert status == 0
    assert text.split() == f"Once upon a time{whole}".split()  # no word in two parts
    assert max(map(len, text.split("\n"))) <= 24


@pytest.mark.parametrize("more", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_terminals_without_colour(more: dict[str, str]) -> None:
    status, text = in_terminal("info", "stories260k", **more)
    assert status == 0
    assert "\x1b" not in text


def test_a_reader_that_goes() -> None:
    for command in ("families --text", "families --json", "--help", "info stories260k --text", "help run"):
        done = shell(f"zoo {command} | head -n 1")
        assert (done.stdout.count(b"\n"), done.stderr) == (1, b"")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk() -> None:
    for command in ("families", "info stories260k", "run stories260k Once --text --max-new-tokens 3"):
        done = shell(f"zoo {command} > /dev/full")
        assert done.returncode == 1
        assert b"No space left on device" in done.stderr
    assert shell("zoo families 2> /dev/full").returncode == 0


def test_streams_that_are_closed(tmp_path: Path) -> None:
    assert shell(f"cd {tmp_path} && zoo example >&-").returncode == 0
    assert shell("zoo families >&- 2>&-").returncode == 0
    assert shell("zoo chat stories260k --device cpu <&-").returncode == 0
    assert shell("zoo run stories260k <&-").returncode in (0, 2)
    assert shell("zoo run nothing/there x >&- 2>&-").returncode == 1


@pytest.mark.parametrize(
    "more",
    [
        ASCII,
        pytest.param({"PYTHONIOENCODING": "ascii"}, marks=pytest.mark.nightly),
        {"PYTHONIOENCODING": "latin-1:strict"},
    ],
)
def test_a_locale_that_is_not_utf8(more: dict[str, str], tmp_path: Path) -> None:
    table = "<table><tr><td>Größe</td><td>東京</td></tr></table>"
    (tmp_path / "Größe.html").write_text(table, encoding="utf-8")
    done = shell(f"cd {tmp_path} && zoo grits *.html *.html --text", **more)
    assert done.returncode == 0
    done = shell("printf 'Größe 東京\\n' | zoo run stories260k - --max-new-tokens 3 --text --device cpu", **more)
    assert done.stdout.decode().startswith("Größe 東京")
    done = shell("printf 'Größe 東京\\n' | zoo chat stories260k --max-new-tokens 3 --device cpu", **more)
    assert (done.returncode, done.stdout.count(b"\n")) == (0, 1)
    assert shell("zoo families --text", **more).stdout == shell("zoo families --text").stdout
    status, text = in_terminal("run", "stories260k", "Once", "--max-new-tokens", "3", "--device", "cpu", **more)
    assert (status, "Once" in text) == (0, True)


def test_bytes_that_are_not_utf8() -> None:
    done = shell("printf 'Gr\\xf6\\xdfe\\n' | zoo chat stories260k --max-new-tokens 3 --device cpu")
    assert done.returncode == 1
    assert b"stdin is not UTF-8" in done.stderr
