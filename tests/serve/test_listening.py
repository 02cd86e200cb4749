"""The socket that `zoo serve` and `zoo demo` listen at."""

from __future__ import annotations

import socket
import subprocess
import sys
import textwrap

import pytest

from zoo.apps.serve.listening import listen


def test_the_parts_of_an_answer_do_not_wait_for_each_other():
    with listen("127.0.0.1", 0) as at, socket.create_connection(at.getsockname()), at.accept()[0] as line:
        assert line.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc, by which Linux opens a pipe anew")
def test_a_pipe_at_stderr_that_nobody_reads_holds_nobody_up():
    code = """
        import contextlib, os, sys
        from zoo.apps.serve.listening import unblock_stderr
        unblock_stderr()
        print("first", file=sys.stderr, flush=True)
        for _ in range(1000):
            print("a line" * 50, file=sys.stderr, flush=True)
            with contextlib.suppress(BlockingIOError):  # as a library in Rust does
                os.write(2, b"a panic" * 50)
        print("all written")
    """
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.read() == "all written\n"  # until here nobody has read stderr
        assert process.stderr.readline() == "first\n"
        assert process.wait() == 0
