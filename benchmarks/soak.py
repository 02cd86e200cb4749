"""`zoo serve` for many minutes: visits of all endpoints at a bounded rate, beside clients that send nonsense or vanish.

    pip install '.[serve]' --group test
    python -m benchmarks.soak --minutes 30

Answers are compared with the first of their kind.  It fails if one is wrong or missing, if nonsense gets anything but
its 4xx, if memory grows by more than 2 % after the first fifth of the time, or if connections or rows are left behind.
"""

from __future__ import annotations

import collections
import http.client
import io
import itertools
import json
import random
import signal
import socket
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import numpy as np

import zoo

from . import harness
from .clients import Server, minilm
from .serving import texts

GROWTH = 0.02  # of memory
STORIES = "stories260k"


class WrongError(Exception):
    """An answer that is not the expected one."""


class Visitor:
    """The ways in which a client may ask; each is a method, with its share in WEIGHTS."""

    def __init__(self, address: str, embed: str):
        at = urlsplit(address)
        self.host, self.port, self.embed = at.hostname or "", at.port or 80, embed
        self.texts, self.known = texts(256), dict[str, Any]()
        self.picture = _picture()

    def ask(self, method: str, path: str, body: bytes | None = None, kind: str = "application/json") -> Any:
        """-> the status and the answer, as JSON where it is that."""
        line = http.client.HTTPConnection(self.host, self.port, timeout=120)
        try:
            line.request(method, path, body, {"content-type": kind})
            answer = line.getresponse()
            data = answer.read()
            return answer.status, json.loads(data) if answer.headers["content-type"] == "application/json" else data
        finally:
            line.close()

    def post(self, path: str, **body: Any) -> Any:
        status, answer = self.ask("POST", path, json.dumps(body).encode())
        if status != 200:
            raise WrongError(f"{path}: {status} {str(answer)[:200]}")
        return answer

    def same(self, key: str, value: Any) -> None:
        """Raise WrongError unless the value is that of the first time."""
        if (first := self.known.setdefault(key, value)) != value:
            raise WrongError(f"{key}: {value!r:.200}, and at first {first!r:.200}")

    def embeddings(self) -> None:
        some = random.sample(range(len(self.texts)), random.randint(1, 8))
        found = self.post("/v1/embeddings", model=self.embed, input=[self.texts[i] for i in some])
        for i, one in zip(some, found["data"], strict=True):
            first = np.array(self.known.setdefault(f"text {i}", one["embedding"]))
            if np.abs(first - one["embedding"]).max() > 1e-4:
                raise WrongError(f"text {i} has another vector than at first")

    def completion(self) -> None:
        found = self.post("/v1/completions", model=STORIES, prompt="Once upon a time", max_tokens=60, temperature=0)
        self.same("completion", found["choices"][0]["text"])

    def stream(self) -> None:
        body = {"model": STORIES, "prompt": "Once upon a time", "max_tokens": 60, "temperature": 0, "stream": True}
        status, answer = self.ask("POST", "/v1/completions", json.dumps(body).encode())
        lines = [line[6:] for line in answer.decode().split("\n\n") if line]
        if status != 200 or lines.pop() != "[DONE]":
            raise WrongError(f"a stream ends with {answer[-200:]!r}")
        self.same("completion", "".join(json.loads(line)["choices"][0]["text"] for line in lines))

    def sampled(self) -> None:
        prompt = " ".join(random.choices(self.texts, k=random.randint(1, 4)))
        self.post("/v1/completions", model=STORIES, prompt=prompt, max_tokens=40, temperature=1.0, n=2, stop="zzz")

    def tokenized(self) -> None:
        i = random.randrange(len(self.texts))
        self.same(f"tokens {i}", self.post("/tokenize", model=self.embed, prompt=self.texts[i])["tokens"])

    def look_around(self) -> None:
        for path in ("/health", "/ready", "/v1/models", "/metrics", "/docs"):
            if (status := self.ask("GET", path)[0]) != 200:
                raise WrongError(f"{path}: {status}")

    def read(self) -> None:
        status, answer = self.ask("POST", "/v1/read?model=zoo-read", self.picture, "image/png")
        if status != 200:
            raise WrongError(f"/v1/read: {status} {answer}")
        self.same("picture", answer["text"])

    def vanishing(self) -> None:
        """Leave a stream after its first bytes, or an answer before them."""
        body = {"model": STORIES, "prompt": "Once", "max_tokens": 400, "stream": random.random() < 0.5}
        with self.sent(json.dumps(body).encode()) as line:
            if body["stream"]:
                line.recv(100)

    def broken(self) -> None:
        """Leave in the middle of a request."""
        with self.sent(b'{"prompt": "', size=1000):
            pass

    def slow(self) -> None:
        body = json.dumps({"model": self.embed, "input": "a"}).encode()
        with self.sent(b"", size=len(body), path="/v1/embeddings") as line:
            for i in range(len(body)):
                time.sleep(3 / len(body))
                line.sendall(body[i : i + 1])
            self.expect(line, b"HTTP/1.1 200")

    def nonsense(self) -> None:
        wrong = [
            b"{",
            b"\xff" * 100,
            b"[" * 50_000,
            b'{"model": "none", "prompt": "a"}',
            b'{"model": "stories260k", "prompt": "' + b"a " * 5000 + b'"}',
            b'{"model": "stories260k", "prompt": "a", "max_tokens": -1}',
        ]
        status, answer = self.ask("POST", "/v1/completions", random.choice(wrong))
        if not 400 <= status < 500 or "message" not in answer["error"]:
            raise WrongError(f"nonsense: {status} {answer}")

    def no_http(self) -> None:
        with socket.create_connection((self.host, self.port), timeout=30) as line:
            line.sendall(random.randbytes(200) + b"\r\n\r\n")
            self.expect(line, b"HTTP/1.1 400")

    def huge(self) -> None:
        status, _ = self.ask("POST", "/v1/embeddings", b" " * (9 << 20))
        if status != 413:
            raise WrongError(f"9 MB: {status}")

    def sent(self, body: bytes, size: int | None = None, path: str = "/v1/completions") -> socket.socket:
        line = socket.create_connection((self.host, self.port), timeout=120)
        length = len(body) if size is None else size
        line.sendall(f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}\r\n\r\n".encode() + body)
        return line

    def expect(self, line: socket.socket, beginning: bytes) -> None:
        if not (came := line.recv(1 << 16)).startswith(beginning):
            raise WrongError(f"expected {beginning!r}, and got {came[:200]!r}")


WEIGHTS = {
    "embeddings": 30,
    "completion": 12,
    "stream": 12,
    "sampled": 10,
    "tokenized": 8,
    "look_around": 4,
    "read": 4,
    "vanishing": 6,
    "broken": 4,
    "nonsense": 6,
    "no_http": 2,
    "slow": 1,
    "huge": 1,
}


def _picture() -> bytes:
    """A line of text as a PNG."""
    from PIL import Image

    page, kept = Image.open(zoo.__path__[0] + "/data/page.png"), io.BytesIO()
    page.crop((0, 0, page.width, 90)).save(kept, "png")
    return kept.getvalue()


class Soak:
    """Some threads of visitors that share a schedule, and their results."""

    def __init__(self, visitor: Visitor, rate: float, seconds: float, clients: int):
        self.visitor, self.end = visitor, time.monotonic() + seconds
        self.took: dict[str, list[float]] = collections.defaultdict(list)
        self.failures: list[str] = []
        self._lock = threading.Lock()
        began = time.monotonic()
        self._times: Iterator[float] = (began + i / rate for i in itertools.count())
        self._threads = [threading.Thread(target=self._visit) for _ in range(clients)]

    def run(self, each_second: Callable[[], None]) -> None:
        for thread in self._threads:
            thread.start()
        while any(thread.is_alive() for thread in self._threads):
            each_second()
            time.sleep(1)

    def _visit(self) -> None:
        while True:
            with self._lock:
                at, kind = next(self._times), random.choices([*WEIGHTS], [*WEIGHTS.values()])[0]
            if at > self.end:
                return
            time.sleep(max(0.0, at - time.monotonic()))
            began = time.monotonic()
            try:
                getattr(self.visitor, kind)()
            except Exception as e:
                self.failures.append(f"{kind}: {type(e).__name__}: {e}")
            with self._lock:
                self.took[kind].append(time.monotonic() - began)


def left_behind(visitor: Visitor) -> list[str]:
    """Rows, queues and requests that the server still has, by its own metrics."""
    names, lines = ("zoo_rows", "zoo_queue", "zoo_requests_running"), list[str]()
    for _ in range(20):
        found = visitor.ask("GET", "/metrics")[1].decode().split("\n")
        lines = [line for line in found if line.startswith(names) and float(line.split()[-1]) > line.count("running")]
        if not lines:
            break
        time.sleep(0.5)
    return lines


def main(argv: list[str] | None = None) -> int:
    parser = harness.parser("soak", __doc__, threads=False, cache=False)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--rate", type=float, default=8, help="visits a second (8)")
    parser.add_argument("--clients", type=int, default=8, help="at once (8)")
    parser.add_argument("--embed", metavar="NAME", help="a checkpoint (MiniLM)")
    parser.add_argument("--device", default="cpu")
    args = parser.parse_args(argv)
    args.clock = "wall"
    environment = harness.environment(harness.take_threads(None))
    print(harness.summary(environment), flush=True)
    embed = args.embed or minilm()
    options = ["--device", args.device, "--prefix-cache", "4"]  # which is soon full
    server = Server([embed, STORIES, "zoo-read"], options)
    visitor = Visitor(server.address, "model" if args.embed is None else args.embed)
    soak = Soak(visitor, args.rate, args.minutes * 60, args.clients)
    memory, files = list[int](), list[int]()

    def look() -> None:
        memory.append(server.memory())
        files.append(server.files())

    try:
        soak.run(look)
        left = left_behind(visitor)
        time.sleep(6)  # connections that are kept open end
        files.append(server.files())
    finally:
        status = server.stop()
    tracebacks = sum("Traceback" in line for line in server.lines)
    fifth = max(1, len(memory) // 5)
    before, after = statistics.median(memory[fifth : 2 * fifth]), statistics.median(memory[-fifth:])
    visits = {
        kind: {"visits": len(t), **dict(zip(("p50 ms", "p99 ms"), np.percentile(t, [50, 99]) * 1000, strict=True))}
        for kind, t in soak.took.items()
    }
    growth = after / before - 1
    found = {
        "environment": environment,
        "minutes": args.minutes,
        "rate": args.rate,
        "visits": visits,
        "failures": soak.failures,
        "memory MB": {
            "second fifth": before / 1e6,
            "last fifth": after / 1e6,
            "growth": growth,
            "most": max(memory) / 1e6,
        },
        "files": {"first": files[0], "most": max(files), "last": files[-1]},
        "left behind": left,
        "tracebacks": tracebacks,
        "exit status": status,
    }
    print(json.dumps({key: value for key, value in found.items() if key != "environment"}, indent=1))
    harness.finish("soak", args, found)
    ended = status in (0, -signal.SIGTERM)
    return int(bool(soak.failures or left or not ended or tracebacks or growth > GROWTH or files[-1] > files[0]))


if __name__ == "__main__":
    sys.exit(main())
