"""`zoo serve` with one and with 8 streams, beside llama.cpp that decodes 8 sequences in one batch, and a newcomer.

    python -m benchmarks.streams --llama-cpp /path/to/python            # of an environment with llama-cpp-python
    python -m benchmarks.streams --weights int8 --llama-cpp PYTHON      # int8 beside llama.cpp's q8_0
    python -m benchmarks.streams stories260k --device cpu --tokens 200
    python -m benchmarks.streams --part loop --json streams.json        # a part alone: later ones are added to the file

Without a name it is the Q4_0 file of random weights in Llama-3.2-1B's layout that benchmarks.quantised makes.
llama.cpp runs without a server, through its own batches with greedy tokens: what its server with --parallel 8
computes, without HTTP.  (llama-cpp-python's server computes one request after the other.)  The loop is zoo's
continuous batch in this process, without the server.  Rates are the best of the rounds: other work only slows a round.
The newcomer comes while 7 streams run: counted are the tokens that each of these gets from its coming to its first
token.
"""

from __future__ import annotations

import http.client
import json
import os
import statistics
import subprocess
import sys
import threading
import time
from typing import Any, Literal
from urllib.parse import urlsplit

import numpy as np

import zoo
from zoo.generate import GenerationConfig, Request

from . import harness
from .clients import Server, asked

LLAMA_CPP = """
import ctypes, json, sys, time
import numpy as np
import llama_cpp as L
path, threads, rows, tokens = sys.argv[1], *map(int, sys.argv[2:5])
prompts = json.load(sys.stdin)
quiet = L.llama_log_callback(lambda *_: None)
L.llama_log_set(quiet, None)
model = L.llama_model_load_from_file(path.encode(), L.llama_model_default_params())
vocabulary = L.llama_vocab_n_tokens(L.llama_model_get_vocab(model))
def run(rows):
    p = L.llama_context_default_params()
    p.n_ctx, p.n_seq_max, p.n_threads, p.n_threads_batch = rows * (len(prompts[0]) + tokens + 8), rows, threads, threads
    p.n_batch = p.n_ubatch = 512
    context = L.llama_init_from_model(model, p)
    batch = L.llama_batch_init(512, 0, 1)
    def decode(entries):
        batch.n_tokens = len(entries)
        for i, (token, at, row, wanted) in enumerate(entries):
            batch.token[i], batch.pos[i], batch.logits[i] = token, at, wanted
            batch.n_seq_id[i], batch.seq_id[i][0] = 1, row
        assert L.llama_decode(context, batch) == 0
    def best(i):
        return int(np.ctypeslib.as_array(L.llama_get_logits_ith(context, i), (vocabulary,)).argmax())
    began, now = time.perf_counter(), []
    for row in range(rows):
        ids = prompts[row]
        decode([(t, i, row, i == len(ids) - 1) for i, t in enumerate(ids)])
        now.append(best(len(ids) - 1))
    for step in range(tokens - 1):
        decode([(now[row], len(prompts[row]) + step, row, 1) for row in range(rows)])
        now = [best(row) for row in range(rows)]
    took = time.perf_counter() - began
    L.llama_batch_free(batch); L.llama_free(context)
    return rows * tokens / took
run(1)
print(json.dumps({"one": run(1), "several": run(rows)}))
"""


PARTS = ("streams", "newcomer", "loop", "llama.cpp")


def loop(
    name: str, device: str, weights: Literal["int8", "int4"] | None, prompts: list[list[int]], tokens: int
) -> float:
    """Tokens a second of the continuous batch itself."""
    llm: Any = zoo.load(name, device=device, weights=weights)
    config = GenerationConfig(max_new_tokens=tokens, min_new_tokens=tokens)

    def run() -> float:
        batch = llm.continuous_batch(len(prompts), kept=0)
        began = time.perf_counter()
        for prompt in prompts:
            batch.add(Request(prompt, config))
        while batch.rows or batch.waiting:
            batch.step()
        return len(prompts) * tokens / (time.perf_counter() - began)

    run()
    return run()


def newcomer(server: Server, body: dict[str, Any], prompts: list[list[int]]) -> dict[str, float]:
    """Tokens that each of the other streams gets until a newcomer has its first, and the milliseconds of that."""
    at = urlsplit(server.address)
    times: list[list[float]] = [[] for _ in prompts]
    going, came = threading.Event(), threading.Event()

    def ask(i: int) -> None:
        line = http.client.HTTPConnection(at.hostname or "", at.port, timeout=600)
        line.request(
            "POST", "/v1/completions", json.dumps({**body, "prompt": prompts[i], "logprobs": 0, "stream": True})
        )
        answer = line.getresponse()
        while part := answer.readline():
            if part.startswith(b"data: {"):
                times[i].append(time.perf_counter())
                if i < len(prompts) - 1 and all(len(one) > 8 for one in times[:-1]):
                    going.set()
                if came.is_set() and len(times[-1]) > 4:  # enough is known
                    break
        line.close()

    others = [threading.Thread(target=ask, args=(i,)) for i in range(len(prompts) - 1)]
    for other in others:
        other.start()
    going.wait(600)
    began = time.perf_counter()
    came.set()
    ask(len(prompts) - 1)
    for other in others:
        other.join()
    first = times[-1][0]
    steps = statistics.mean(sum(began < t < first for t in one) for one in times[:-1])
    return {"steps of the others": steps, "ms": 1000 * (first - began)}


def main(argv: list[str] | None = None) -> int:
    parser = harness.parser("streams", __doc__, 3, cache=True)
    parser.add_argument("name", nargs="?", help="a checkpoint or GGUF file (a random Llama-3.2-1B in Q4_0)")
    parser.add_argument("--device", default="onnx")
    parser.add_argument("--weights", choices=("int8", "int4"), help="what zoo rounds the weights to")
    parser.add_argument(
        "--llama-cpp", metavar="PYTHON", help="of an environment with llama-cpp-python, for a GGUF file"
    )
    parser.add_argument("--prompt", type=int, default=16, help="tokens of each prompt (16)")
    parser.add_argument("--tokens", type=int, default=48, help="of each answer (48)")
    parser.add_argument("--streams", type=int, default=8)
    parser.add_argument("--part", choices=PARTS, action="append", help="measure this alone, beside what --json has")
    args = parser.parse_args(argv)
    parts = args.part or [part for part in PARTS if part != "llama.cpp" or args.llama_cpp]
    if "llama.cpp" in parts and not args.llama_cpp:
        parser.error("--part llama.cpp needs --llama-cpp PYTHON")
    environment = harness.start(args, torch_too=False)
    threads = environment["threads"]
    name = peer = args.name
    if name is None:
        from .quantised import _file

        files = {"int8": ("bf16", "q8_0"), "int4": ("bf16", "q4_0")}.get(args.weights, ("q4_0", "q4_0"))
        name, peer = (str(_file("llama-3.2-1b", file, args.cache)) for file in files)
    rng = np.random.default_rng(0)
    prompts = rng.integers(10, 500, (args.streams, args.prompt)).tolist()
    body = {"max_tokens": args.tokens, "min_tokens": args.tokens, "temperature": 0}
    several = f"{args.streams} streams"
    known = json.loads(args.json.read_text()) if args.part and args.json and args.json.exists() else {}
    rates: dict[str, list[float]] = known.get("rounds", {})
    arrivals: list[dict[str, float]] = known.get("newcomers", [])

    def served() -> None:
        options = ["--device", args.device, "--prefix-cache", "0", "--max-rows", str(args.streams)]
        options += ["--weights", args.weights] if args.weights else []
        server = Server([name], options)

        def rate(streams: int) -> float:
            bodies = [{**body, "prompt": prompt, "stream": True} for prompt in prompts[:streams]]
            return streams * args.tokens / asked(server.address, "/v1/completions", bodies, streams).seconds

        try:
            rate(args.streams)
            for _ in range(args.rounds):
                for what, streams in (("one stream", 1), (several, args.streams)) if "streams" in parts else ():
                    harness.settle()
                    rates.setdefault(what, []).append(rate(streams))
                if "newcomer" in parts:
                    arrivals.append(newcomer(server, {**body, "max_tokens": 200, "min_tokens": 60}, prompts))
        finally:
            server.stop()

    def llama_cpp() -> dict[str, float]:
        command = [args.llama_cpp, "-c", LLAMA_CPP, peer, str(threads), str(args.streams), str(args.tokens)]
        ran = subprocess.run(
            command,
            input=json.dumps(prompts),
            text=True,
            capture_output=True,
            check=True,
            env={**os.environ, "PYTHONPATH": ""},
        )
        return json.loads(ran.stdout)

    if {"streams", "newcomer"} & {*parts}:
        served()
    for _ in range(args.rounds if "loop" in parts else 0):
        rates.setdefault("loop, one row", []).append(loop(name, args.device, args.weights, prompts[:1], args.tokens))
        rates.setdefault(f"loop, {args.streams} rows", []).append(
            loop(name, args.device, args.weights, prompts, args.tokens)
        )
    for _ in range(args.rounds if "llama.cpp" in parts else 0):
        harness.settle()
        found = llama_cpp()
        rates.setdefault("llama.cpp, one sequence", []).append(found["one"])
        rates.setdefault(f"llama.cpp, {args.streams} sequences", []).append(found["several"])
    best = {what: max(some) for what, some in rates.items()}
    others = {"of one stream": "one stream", "of llama.cpp": f"llama.cpp, {args.streams} sequences"}
    result = {
        "environment": environment,
        "device": args.device,
        "weights": args.weights,
        "tokens": args.tokens,
        "tokens a second": best,
        "rounds": rates,
        "newcomers": arrivals,
        "ratios of streams": {
            what: best[several] / best[of] for what, of in others.items() if {several, of} <= best.keys()
        },
    }
    if arrivals:
        result["newcomer"] = {key: statistics.median(one[key] for one in arrivals) for key in arrivals[0]}
    if {"one stream", "loop, one row"} <= best.keys():
        result["ms a token of the server"] = 1000 / best["one stream"] - 1000 / best["loop, one row"]
    print(json.dumps({key: value for key, value in result.items() if key != "environment"}, indent=1))
    harness.finish(f"streams-{args.weights or ''}{os.path.basename(name).replace('.gguf', '-1b')}", args, result)
    return 0


if __name__ == "__main__":
    sys.exit(main())
