"""`zoo serve --isolate` while its models are killed and stopped, it is restarted, and clients are slow, leave or flood.

    pip install '.[serve,tables]' --group test
    python -m checks.chaos --minutes 10 --json chaos.json

Visits are those of `benchmarks.soak`.  Each whole answer must be the one that the same question had in quiet times; a
request may also end with one clear error (503, an event at the end of a stream, a connection refused while the server
is started again), and what a stream sent before must be the beginning of the right text.  Beside it jobs are killed and
find the disk full (`checks.kills`).  Linux alone: it reads /proc.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.clients import Server, minilm
from benchmarks.soak import STORIES, WEIGHTS, Visitor, WrongError, left_behind
from zoo.files.atomic_write import atomic_write

QUIET_VISITS = (
    "embeddings",
    "completion",
    "stream",
    "tokenized",
    "read",
    "tables",
)  # their answers are kept
REFUSALS = ("model_failed", "model_loading")
POINTS = 10  # the number of printed points of the curves
PAUSE_SECONDS = (4.0, 12.0)  # between two attacks
ATTACKS = {"kill a model": 8, "stop a model": 1, "restart the server": 2, "flood with half heads": 2}


class RefusedError(Exception):
    """A request that ended with one clear error, as it may."""


class ChaosVisitor(Visitor):
    """A visitor for whom a request may be refused."""

    def post(self, path: str, **body: Any) -> Any:
        status, answer = self.ask("POST", path, json.dumps(body).encode())
        return self.check(path, status, answer)

    def check(self, path: str, status: int, answer: Any) -> Any:
        if status == 503 and answer["error"]["code"] in REFUSALS:
            raise RefusedError(answer["error"]["code"])
        if status != 200:
            raise WrongError(f"{path}: {status} {str(answer)[:200]}")
        return answer

    def stream(self) -> None:
        body = {"model": STORIES, "prompt": "Once upon a time", "max_tokens": 60, "temperature": 0, "stream": True}
        status, answer = self.ask("POST", "/v1/completions", json.dumps(body).encode())
        if status != 200:
            self.check("a stream", status, answer)
        parts = [json.loads(line[6:]) for line in answer.decode().split("\n\n") if line and line != "data: [DONE]"]
        text = "".join(part["choices"][0]["text"] for part in parts if "choices" in part)
        if "error" not in parts[-1]:
            return self.same("completion", text)
        if not str(self.known["completion"]).startswith(text) or parts[-1]["error"]["code"] not in REFUSALS:
            raise WrongError(f"a stream that ended with an error: {text[-100:]!r}, {parts[-1]}")
        raise RefusedError("in a stream")

    def read(self) -> None:
        found = self.check("/v1/read", *self.ask("POST", "/v1/read?model=zoo-read", self.picture, "image/png"))
        self.same("picture", found["text"])

    def tables(self) -> None:
        found = self.check("/v1/tables", *self.ask("POST", "/v1/tables", self.picture, "image/png"))
        self.same("tables", [table["html"] for page in found["data"] for table in page["tables"]])

    def look_around(self) -> None:
        for path in ("/health", "/v1/models", "/metrics"):
            if (status := self.ask("GET", path)[0]) != 200:
                raise WrongError(f"{path}: {status}")

    def nonsense(self) -> None:
        with _refusal():
            super().nonsense()

    def slow(self) -> None:
        with _refusal():
            super().slow()


@contextlib.contextmanager
def _refusal() -> Iterator[None]:
    """A context in which a 503 is a refusal, as where a model dies between two looks."""
    try:
        yield
    except WrongError as e:
        if " 503 " not in str(e):
            raise
        raise RefusedError("model_loading") from None


class Chaos:
    """A server, visitors and what is done to them."""

    def __init__(self, minutes: float, clients: int, rng: random.Random):
        self.rng, self.end, self.began = rng, time.monotonic() + 60 * minutes, time.monotonic()
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.counts = collections.Counter[str]()
        self.failures: list[str] = []
        self.curves: list[dict[str, float]] = []
        self.away = threading.Event()  # the server is being started again
        self.restarted = 0.0  # when it was last
        self.server = self._start()
        self.visitor = ChaosVisitor(self.server.address, "model")
        self.clients = clients

    def _start(self) -> Server:
        options = ["--port", str(self.port), "--device", "cpu", "--isolate", "--tables", "--no-detection"]
        return Server([minilm(), STORIES, "zoo-read"], [*options, "--prefix-cache", "4"])

    def wait_until_ready(self) -> None:
        while self.visitor.ask("GET", "/ready")[0] != 200:
            time.sleep(0.2)

    def run(self) -> None:
        try:
            self.wait_until_ready()
        except ConnectionError as e:
            last = next(reversed(self.server.lines), str(e))
            raise SystemExit(f"the server ended before its models were loaded: {last}") from None
        for kind in QUIET_VISITS:
            getattr(self.visitor, kind)()
        every = [self.visitor.texts[i : i + 8] for i in range(0, 256, 8)]
        for i, some in enumerate(every):
            found = self.visitor.post("/v1/embeddings", model="model", input=some)
            self.visitor.known |= {f"text {8 * i + j}": one["embedding"] for j, one in enumerate(found["data"])}
        threads = [threading.Thread(target=self._visit, args=(i,)) for i in range(self.clients)]
        threads += [threading.Thread(target=do) for do in (self._attack, self._run_jobs, self._look)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.wait_until_ready()
        self.failures += [f"left behind: {line}" for line in left_behind(self.visitor)]
        self._stop()

    def _visit(self, number: int) -> None:
        rng, weights = random.Random(number), {**WEIGHTS, "tables": 1}
        while time.monotonic() < self.end:
            kind = rng.choices([*weights], [*weights.values()])[0]
            began = time.monotonic()
            try:
                getattr(self.visitor, kind)()
                self.counts["right"] += 1
            except RefusedError as e:
                self.counts[f"refused: {e}"] += 1
            except Exception as e:
                if isinstance(e, OSError | EOFError | ValueError) and (self.away.is_set() or self.restarted > began):
                    self.counts["refused: the server was started again"] += 1
                    time.sleep(0.2)
                else:
                    self.failures.append(f"{time.monotonic() - self.began:.0f} s, {kind}: {type(e).__name__}: {e}")
            time.sleep(rng.uniform(0, 0.5))

    def _attack(self) -> None:
        while time.monotonic() + 30 < self.end:  # the last of them is over before the end
            time.sleep(self.rng.uniform(*PAUSE_SECONDS))
            attack = self.rng.choices([*ATTACKS], [*ATTACKS.values()])[0]
            models = [pid for pid in _children(self.server.process.pid) if "spawn_main" in _command(pid)]
            if attack == "restart the server":
                self.away.set()
                self._stop()
                self.server = self._start()
                self.wait_until_ready()
                self.restarted = time.monotonic()
                self.away.clear()
            elif attack == "flood with half heads":
                lines = [socket.create_connection(("127.0.0.1", self.port), timeout=60) for _ in range(200)]
                for line in lines:
                    line.sendall(b"POST /v1/completions HTTP/1.1\r\nhost: loc")
                time.sleep(3)
                for line in lines:
                    line.close()
            elif models:
                how = signal.SIGKILL if attack == "kill a model" else signal.SIGSTOP
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self.rng.choice(models), how)
            self.counts[attack] += 1

    def _stop(self) -> None:
        """TERM, while visits run: they are finished."""
        status = self.server.stop()
        if status not in (0, -signal.SIGTERM):
            self.failures.append(f"the server ended with {status}")
        if any("Traceback" in line for line in self.server.lines):
            self.failures.append("a traceback in the log: " + " ".join(self.server.lines)[-2000:])

    def _run_jobs(self) -> None:
        for i in range(1_000_000):
            if time.monotonic() + 60 > self.end:
                return
            command = [sys.executable, "-m", "checks.kills", "12", *(["--full"] if i % 2 else [])]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            self.counts["disks full" if i % 2 else "kills of jobs"] += 12
            if done.returncode:
                self.failures.append(f"{' '.join(command)}: {(done.stdout + done.stderr)[-1000:]}")

    def _look(self) -> None:
        while time.monotonic() < self.end:
            with contextlib.suppress(OSError, ValueError, StopIteration):
                every = [self.server.process.pid, *_children(self.server.process.pid)]
                point = {"seconds": time.monotonic() - self.began, "MB": sum(map(_resident, every)) / 1e6}
                point["files"] = sum(len(os.listdir(f"/proc/{pid}/fd")) for pid in every)
                point["threads"] = sum(len(os.listdir(f"/proc/{pid}/task")) for pid in every)
                self.curves.append({name: round(value) for name, value in {**point, "processes": len(every)}.items()})
            time.sleep(2)


def _children(pid: int) -> list[int]:
    found = list[int]()
    for thread in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(OSError):
            found += map(int, Path(f"/proc/{pid}/task/{thread}/children").read_text(encoding="utf-8").split())
    return found


def _command(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8")
    return ""


def _resident(pid: int) -> int:
    pages = Path(f"/proc/{pid}/statm").read_text(encoding="utf-8").split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m checks.chaos", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--clients", type=int, default=6, help="at once (6)")
    parser.add_argument("--seed", type=int, default=random.randrange(10**9), help="of the attacks")
    parser.add_argument("--json", type=Path, help="a file for the figures and curves")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    chaos = Chaos(options.minutes, options.clients, random.Random(options.seed))
    chaos.run()
    found = {"minutes": options.minutes, "seed": options.seed, "counts": dict(chaos.counts), "failures": chaos.failures}
    step = max(1, len(chaos.curves) // POINTS)
    print(json.dumps(found, indent=1))
    for point in chaos.curves[::step]:
        print(", ".join(f"{value} {name}" for name, value in point.items()))
    if options.json:
        with atomic_write(options.json) as part:
            part.write_text(json.dumps({**found, "curves": chaos.curves}, indent=1) + "\n", encoding="utf-8")
    return int(bool(chaos.failures))


if __name__ == "__main__":
    sys.exit(main())
