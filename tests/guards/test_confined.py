"""The confined process: what it can still do, bounds, faults, forks, threads, signals."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest

pytest.importorskip("resource", reason="needs limits, which Windows has not")

from tests.platforms import LINUX
from zoo.errors import UnsupportedError
from zoo.guards import child, confined
from zoo.guards.confined import _ENVIRONMENT, Confined, FailedError, Job, StoppedError

linux = pytest.mark.skipif(not LINUX, reason="needs Linux's limits and /proc")
filtered = pytest.mark.skipif(
    not LINUX or os.uname().machine not in child._SYSTEM_CALLS, reason="needs a filter of system calls"
)

JOB = """
import ctypes, os, socket, subprocess, time

fetch = None

def prepare():
    try:
        str(1 / 0)
    except ZeroDivisionError:
        pass

def run(code, value=None):
    found = {"value": value}
    exec(code, globals(), found)
    return str(found.get("answer", "")).encode()
"""


@pytest.fixture
def job(tmp_path):
    file = tmp_path / "job.py"
    file.write_text(JOB)
    return Job(file, "run", "running tests", seconds=2)


@pytest.fixture
def process(job):
    made = Confined(job)
    yield made
    made.close()


def answer(process: Confined, code: str, value: object = None, most: int = 1 << 20) -> str:
    return process.ask(code, value, most=most).decode()


def test_answers(process):
    value = (1, [2.0, {3: None}], 10**30, "é😀", b"\x00")
    assert answer(process, "answer = value", value) == str(value)
    with pytest.raises(FailedError, match=r"^ZeroDivisionError: division by zero$"):
        answer(process, "1 / 0")
    with pytest.raises(FailedError) as failed:
        answer(process, "raise ValueError('a' * 10 ** 6)")
    assert len(str(failed.value)) == 2000
    with pytest.raises(StoppedError, match="answer is too long"):
        answer(process, "answer = 'a' * 1001", most=1000)
    assert answer(process, "answer = 'a' * 1000", most=1000) == "a" * 1000


REFUSED = {
    "reading": "open('/etc/passwd')",
    "writing": "open('zoo-confined', 'w')",
    "a folder": "os.listdir('/')",
    "a file's status": "os.stat('/')",
    "removing": "os.unlink('zoo-confined')",
    "a new folder": "os.mkdir('zoo-confined')",
    "a socket": "socket.socket()",
    "a pair of sockets": "socket.socketpair()",
    "a fork": "os.fork()",
    "a process": "subprocess.Popen(['true'])",
    "another program": "os.execv('/bin/true', ['true'])",
    "a signal": "os.kill(os.getppid(), 0)",
    "a pipe": "os.pipe()",
    "another descriptor": "os.dup(1)",
    "a file of memory": "os.memfd_create('a')",
}


@filtered
@pytest.mark.parametrize("code", REFUSED.values(), ids=REFUSED)
def test_system_calls_that_are_refused(code, process):
    """As `answer` shows, Python code does run there: this is what a breach of a sandbox within the process reaches."""
    with pytest.raises(FailedError, match=r"Operation not permitted|PermissionError|BlockingIOError"):
        answer(process, code)
    assert answer(process, "answer = 1") == "1"


@filtered
def test_limits_stay(process):
    for name in ("NOFILE", "NPROC", "FSIZE"):
        limits = answer(process, f"import resource; answer = resource.getrlimit(resource.RLIMIT_{name})")
        assert limits in ("(0, 0)", "(3, 3)")
    # PTRACE_TRACEME, by number on both architectures
    assert answer(process, "answer = ctypes.CDLL(None).ptrace(0, 0, 0, 0)") == "-1"


@linux
def test_what_the_system_says_of_the_process(process):
    answer(process, "answer = 1")
    assert process._process is not None
    with open(f"/proc/{process._process.pid}/limits", encoding="utf-8") as file:
        limits = {line[:26].strip(): line[26:].split()[:2] for line in file}
    assert limits["Max open files"] == ["3", "3"]
    assert limits["Max file size"] == limits["Max core file size"] == limits["Max processes"] == ["0", "0"]
    assert int(limits["Max address space"][0]) < 300 << 20
    assert int(limits["Max address space"][1]) < 2300 << 20
    with open(f"/proc/{process._process.pid}/environ", encoding="utf-8") as file:
        assert {pair.split("=")[0] for pair in file.read().split("\0") if pair} <= set(_ENVIRONMENT)


OF_MEMORY = {"a text": "answer = len('a' * 10 ** 10)", "a list": "answer = len([1] * 10 ** 9)"}
STOPPED = {
    "depth": ("def f(): f()\nglobals()['f'] = f\nf()", "too deeply"),
    "time": ("while True: pass", "too long"),
    "sleep": ("time.sleep(60)", "too long"),
    "death": ("os._exit(3)", "died"),
    "a crash": ("ctypes.string_at(0)", "died"),
}


@linux
@pytest.mark.parametrize("code", OF_MEMORY.values(), ids=OF_MEMORY)
def test_too_much_memory_is_refused(code, process):
    with pytest.raises(StoppedError, match="memory"):
        answer(process, code)
    assert answer(process, "answer = 1") == "1"


@pytest.mark.skipif(sys.platform != "linux", reason="has been tried on Linux alone")
@pytest.mark.parametrize(("code", "why"), STOPPED.values(), ids=STOPPED)
def test_what_takes_too_much_is_stopped(code, why, process):
    with pytest.raises(StoppedError, match=why):
        answer(process, code)
    assert answer(process, "answer = 1") == "1"


def test_a_forged_answer_is_only_bytes(process):
    """A breach can write what it likes to the pipe; it is bytes of a bounded length to who reads it."""
    for forged in ("ANSWER.pack(b'd', 1 << 62)", "ANSWER.pack(b'x', 3) + b'abc'", "b'\\xff' * 99"):
        code = f"import struct; ANSWER = struct.Struct('<cQ'); os.write(1, {forged}); os._exit(0)"
        with pytest.raises((StoppedError, FailedError)):
            answer(process, code)
        assert answer(process, "answer = 1") == "1"


def test_parts_of_a_file(job):
    asked, data = [], bytes(range(256)) * (1 << 13)

    def fetch(offset: int, most: int) -> bytes:
        asked.append((offset, most))
        if offset == 13:
            raise KeyError("thirteen")
        return data[offset : offset + most]

    process = Confined(job, "", fetch=fetch)
    assert answer(process, "answer = [*fetch(3, 4), len(fetch(1 << 20, 1 << 30)), fetch(1 << 40, 1)]") == str(
        [3, 4, 5, 6, 1 << 20, b""]
    )
    assert asked == [(3, 4), (1 << 20, confined.MAX_PART), (1 << 40, 1)]
    with pytest.raises(KeyError, match="thirteen"):
        answer(process, "fetch(13, 1)")
    assert answer(process, "answer = fetch(1, 2)") == str(b"\1\2")
    process.close()
    without = Confined(job)
    assert answer(without, "answer = fetch(0, 5)") == str(b"")
    without.close()


def test_large_requests_and_answers(process):
    text = "x😀" * 1_500_000
    assert answer(process, "answer = value * 2", text, most=1 << 25) == text * 2


def test_one_process_is_kept_and_another_started_where_it_dies(process):
    answer(process, "")
    first = process._process
    answer(process, "")
    assert process._process is first
    first.kill()
    assert answer(process, "answer = 1") == "1"
    assert process._process is not first
    process._process.kill()
    process._process.wait()
    assert answer(process, "answer = 2") == "2"


def test_a_process_whose_time_ends_as_it_answers(job, monkeypatch):
    stop = confined._Watch.stop
    monkeypatch.setattr(confined._Watch, "stop", lambda watch: stop(watch) or True)
    for process in (Confined(job), Confined(job, "")):  # while it starts, or opens its file
        with pytest.raises(StoppedError, match="it takes too long"):
            answer(process, "answer = 1")
    monkeypatch.undo()
    assert answer(process, "answer = 1") == "1"
    process.close()


def test_the_process_ends_with_its_owner(job):
    process = Confined(job)
    answer(process, "")
    running = process._process
    assert running is not None
    del process
    gc.collect()
    assert running.poll() is not None


def test_threads(process):
    wrong = []

    def ask(name: str) -> None:
        for i in range(20):
            text = f"{name}{i}" * 99
            if answer(process, "answer = value", text) != text:
                wrong.append(text)

    threads = [threading.Thread(target=ask, args=(name,)) for name in "abcdef"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.fixture
def interruptible():
    """A shell's background ignores interrupts."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_interrupts(process):
    answer(process, "")
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        answer(process, "while True: pass")
    assert answer(process, "answer = 1") == "1"


HEAD = """
import os, sys
from pathlib import Path
from zoo.guards.confined import Confined, FailedError, Job
process = Confined(Job(Path({file!r}), "run", "running tests"))
ask = lambda code: process.ask(code, most=999).decode()
"""


def run(job: Job, code: str, **options: object) -> str:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    command = [sys.executable, "-c", HEAD.format(file=str(job.file)) + textwrap.dedent(code)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120, **options)  # type: ignore[call-overload]
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forks(job):
    """Each of them has a process of its own, and ends none of another's."""
    run(
        job,
        """
        import warnings
        warnings.simplefilter("error")
        ask("")
        mine = process._process.pid
        if (pid := os.fork()) == 0:
            assert ask("answer = 1") == "1" and process._process.pid != mine
            sys.exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        assert ask("answer = 2") == "2" and process._process.pid == mine
        """,
    )


def test_without_standard_streams(job):
    run(
        job,
        """
        for stream in (0, 1, 2):
            os.close(stream)
        assert ask("answer = 1") == "1"
        try:
            ask("1 / 0")
        except FailedError:
            sys.exit(0)
        sys.exit(1)
        """,
    )


def test_the_process_ends_with_this_one(job):
    pid = int(run(job, "ask('')\nprint(process._process.pid)"))
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    raise AssertionError("it is still there")


def test_what_users_have_lying_about_is_not_imported(job, tmp_path):
    for name in ("struct.py", "sitecustomize.py", "usercustomize.py", "marshal.py", "resource.py", "ctypes.py"):
        (tmp_path / name).write_text("raise SystemExit('imported')")
    code = "sys.path.remove('')\nassert ask('answer = 1') == '1'"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    script = tmp_path / "main.py"
    script.write_text(
        "import sys; sys.path[0] = ''\nsys.path.remove('')\n" + HEAD.format(file=str(job.file)) + code[27:]
    )
    done = subprocess.run(
        [sys.executable, "main.py"], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr


def test_no_process_to_start(job, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(sys, "executable", "")
        with pytest.raises(UnsupportedError, match="there is no Python to start"):
            Confined(job).ask("", most=9)
        patched.setattr(sys, "executable", "/nowhere/python")
        with pytest.raises(UnsupportedError, match="cannot be started"):
            Confined(job).ask("", most=9)
    job.file.write_text("raise SystemExit(1)")
    with pytest.raises(UnsupportedError, match="does not start"):
        Confined(job).ask("", most=9)
    with pytest.raises(
        UnsupportedError, match=r"needs no_such_package, which is not installed: pip install '.*\[this\]'"
    ):
        Confined(job._replace(packages=("no_such_package",), extra="this")).ask("", most=9)
