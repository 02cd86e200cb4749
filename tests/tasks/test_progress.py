"""The bar of work that takes its time: when it is there, what it shows, and that nothing of it is left."""

from __future__ import annotations

import io
import re
import sys
import threading
import time
from contextlib import redirect_stderr
from types import SimpleNamespace

import pytest

from zoo.tasks import progress
from zoo.tasks.progress import Progress, write_line


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True

    def wait_for(self, text: str) -> str:
        """What was written, as soon as it has a text; the end of patience is a failure."""
        for _ in range(2000):
            if text in self.getvalue():
                return self.getvalue()
            time.sleep(0.01)
        raise AssertionError(f"{text!r} is not in {self.getvalue()!r}")


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setattr(progress, "BAR_DELAY", 0.0)
    return Terminal()


def test_counts_rate_and_time_are_shown_until_the_end(terminal: Terminal) -> None:
    with redirect_stderr(terminal), Progress(8, unit="pages") as advance:
        assert "| 0/8 [" in terminal.wait_for("0/8")  # before the first is done
        advance(3)
        advance(1)
        assert re.search(r"50%\|.*\| 4/8 \[00:\d\d<.*(pages/s|s/ pages)\]", terminal.wait_for("4/8"))
    assert terminal.getvalue().split("\r")[-2].strip() == ""  # it is wiped


def test_tqdms_own_switch_is_kept_to(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    """TQDM_DISABLE=1 makes a bar without a time, of which none is drawn."""
    from tqdm import tqdm

    monkeypatch.setattr(progress, "_bar_class", lambda: lambda **options: tqdm(**options, disable=True))
    work = Progress(8)
    with redirect_stderr(terminal):
        work._draw()
    assert terminal.getvalue() == ""


def test_a_total_that_was_a_guess(terminal: Terminal) -> None:
    with redirect_stderr(terminal):
        work = Progress(2, unit="pages")
        with work as advance:
            terminal.wait_for("0/2")
            work.expect(5)
            advance(1)
            terminal.wait_for("1/5")


def test_work_without_a_count_shows_its_time(terminal: Terminal) -> None:
    with redirect_stderr(terminal), Progress(None, unit="", what="loading a-model"):
        assert "%" not in terminal.wait_for("loading a-model: 00:0")


def test_short_work_shows_nothing(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "BAR_DELAY", 600.0)
    with redirect_stderr(terminal), Progress(3) as advance:
        advance(3)
    assert terminal.getvalue() == ""


@pytest.mark.parametrize("wanted", [None, False])
def test_nobody_watches_a_pipe(wanted: bool | None, monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.StringIO() if wanted is None else Terminal()
    monkeypatch.setattr(progress, "BAR_DELAY", 0.0)
    before = threading.active_count()
    with redirect_stderr(out), Progress(3, wanted) as advance:
        advance(3)
        assert threading.active_count() == before
    assert out.getvalue() == ""


def test_other_threads_show_nothing(terminal: Terminal) -> None:
    def work() -> None:
        with Progress(3) as advance:
            advance(3)

    with redirect_stderr(terminal):
        server = threading.Thread(target=work)
        server.start()
        server.join()
    assert terminal.getvalue() == ""


def test_a_bar_that_is_wanted_stays() -> None:
    out = io.StringIO()
    with redirect_stderr(out), Progress(3, True) as advance:
        advance(3)
    assert "3/3" in out.getvalue().split("\r")[-1]


def test_a_function_is_told_the_counts(terminal: Terminal) -> None:
    counts: list[int] = []
    with redirect_stderr(terminal), Progress(3, counts.append) as advance:
        advance(2)
        advance(1)
    assert counts == [2, 1]
    assert terminal.getvalue() == ""


def test_a_line_goes_above_the_bar(terminal: Terminal) -> None:
    with redirect_stderr(terminal), Progress(8, unit="pages"):
        terminal.wait_for("0/8")
        write_line("zoo: a warning")
    assert "zoo: a warning\n" in terminal.getvalue()
    assert re.search(r"(^|\r|\x1b\[A)zoo: a warning\n", terminal.getvalue())


def test_a_closed_stderr_is_no_error(terminal: Terminal) -> None:
    with redirect_stderr(terminal), Progress(8):
        terminal.wait_for("0/8")
        terminal.close()


def test_a_notebook_is_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    shell = SimpleNamespace(config={"IPKernelApp": {}})
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    out = io.StringIO()
    monkeypatch.setattr(progress, "BAR_DELAY", 0.0)
    with redirect_stderr(out), Progress(3) as advance:
        advance(1)
    assert "/3 [" in out.getvalue()
