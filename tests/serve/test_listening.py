"""The socket that `zoo serve` and `zoo demo` listen at."""

from __future__ import annotations

import socket

from zoo.apps.serve.listening import listen


def test_the_parts_of_an_answer_do_not_wait_for_each_other():
    with listen("127.0.0.1", 0) as at, socket.create_connection(at.getsockname()), at.accept()[0] as line:
        assert line.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
