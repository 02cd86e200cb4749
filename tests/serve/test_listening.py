"""The socket that `zoo serve` and `zoo demo` listen at."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import socket
import subprocess
import sys
import textwrap
from typing import Any

import pytest

from zoo.apps.serve import listening
from zoo.apps.serve.listening import Bodies, RefusedError, listen
from zoo.apps.serve.values import BYTES, values_of

TREE = {"a,b": [1, [], {"x": {}}], 'q"[{,:\\': '\\"', "\\\\": "]]::", "é": [True, None, -1.5e3]}


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


def signs_of(value: Any) -> int:
    """Its commas, colons and opening brackets, counted in the tree."""
    if not isinstance(value, (dict, list)):
        return 0
    inner = value.values() if isinstance(value, dict) else value
    return 1 + max(0, len(value) - 1) + len(value) * isinstance(value, dict) + sum(map(signs_of, inner))


@pytest.mark.parametrize("seed", range(20))
def test_values_are_counted_outside_of_strings(seed):
    rng = random.Random(seed)
    texts = ["".join(rng.choices('ab"\\,:[{]}\n', k=rng.randrange(12))) for _ in range(400)]
    tree = [TREE, {text: [text] for text in texts}, texts]
    for escaped in (False, True):
        text = json.dumps(tree, ensure_ascii=escaped, separators=(",", ":"))
        assert len(text) > 4096
        assert values_of(text.encode()) == signs_of(tree)
    short = json.dumps(TREE, separators=(",", ":")).encode()
    assert values_of(short) >= signs_of(TREE)


def test_requests_hold_the_memory_of_their_values_until_their_answer(monkeypatch):
    body = json.dumps([{}] * 2000, separators=(",", ":")).encode()
    monkeypatch.setattr(listening, "MAX_HELD", 3 * (len(body) + BYTES * values_of(body)) - 1)

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body}

    async def read() -> None:
        bodies = Bodies()
        async with contextlib.AsyncExitStack() as held:
            for _ in range(2):
                assert await held.enter_async_context(bodies.read(receive, 1 << 20, 4000)) == body
            with pytest.raises(RefusedError, match="too many uploads") as refused:
                await held.enter_async_context(bodies.read(receive, 1 << 20, 4000))
            assert refused.value.status == 503
        async with bodies.read(receive, 1 << 20, 4000):
            with pytest.raises(RefusedError, match=r"more than 3999 values .4000 ") as refused:
                await held.enter_async_context(bodies.read(receive, 1 << 20, 3999))
            assert refused.value.status == 413
        assert bodies._held == 0

    asyncio.run(read())
