"""What tests of several torch processes share: a port to meet at, and how they end."""

from __future__ import annotations

import os
import socket


def free_port() -> int:
    """A port of this machine that nobody listens at."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def leave_together() -> None:
    """End this process once all are here, without its exit: torch's threads can abort that on a busy machine."""
    import torch

    torch.distributed.barrier()
    os._exit(0)
