"""Runs `zoo.hub.find` in a process of its own: huggingface_hub reads the environment once, when it is imported.

{"write": lock, "name": name} locks; {"info": true, "name": name} runs `zoo info`.
"""

from __future__ import annotations

import json
import os
import resource
import socket
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import zoo.files.download
import zoo.hub
import zoo.lock
from zoo.errors import ZooError


def die(*args: object, **kwargs: object) -> None:
    """In the place of whatever reaches for the network: an exception might be caught, this cannot."""
    os._exit(86)


def call(arguments: dict) -> dict:
    try:
        if "write" in arguments:
            (entry,) = zoo.lock.lock([arguments.pop("name")], arguments.pop("write"), **arguments).values()
            return {"revision": entry.revision, "fingerprint": entry.fingerprint, "files": sorted(entry.files)}
        if arguments.pop("info", False):
            from zoo.apps.cli.info import describe

            return describe(arguments.pop("name"), **arguments)
        found = zoo.hub.find(arguments.pop("name"), **arguments)
    except ZooError as error:
        cause = type(error.__cause__).__name__ if error.__cause__ else None
        return {"error": type(error).__name__, "message": str(error), "cause": cause}
    weights = [path.relative_to(found.folder).as_posix() for path in found.weights]
    return {"folder": str(found.folder), "revision": found.revision, "files": found.files, "weights": weights}


def main() -> None:
    if os.environ.get("TEST_NO_SOCKETS"):
        socket.socket.connect = socket.socket.connect_ex = socket.getaddrinfo = die
    if limit := os.environ.get("TEST_FILE_SIZE"):  # stands for a full disk: writes beyond it fail
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), int(limit)))
    if seconds := os.environ.get("TEST_PATIENCE"):
        zoo.files.download.MIN_TIMEOUT = float(seconds)
    wait = time.sleep
    time.sleep = lambda seconds: wait(min(float(seconds), 0.02))  # huggingface_hub waits up to 8 s between its retries
    said: list[str] = []
    warnings.simplefilter("always")
    warnings.showwarning = lambda message, category, *rest: said.append(f"{category.__name__}: {message}")
    print(json.dumps("huggingface_hub" in sys.modules), flush=True)
    for line in sys.stdin:
        calls = json.loads(line)
        with ThreadPoolExecutor(len(calls)) as pool:
            replies = list(pool.map(call, calls))
        for reply in replies:
            reply["warnings"] = list(said)
        said.clear()
        print(json.dumps(replies), flush=True)


main()
