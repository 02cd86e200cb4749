"""Llama-3.2-1B's layout, or Qwen3-0.6B's, with quantised weights: zoo on NumPy and ONNX, llama.cpp, transformers.

    python -m benchmarks.quantised --llama-cpp PYTHON     # writes benchmarks/results/quantised-<processor>-<date>.json
    python -m benchmarks.quantised --clock cpu --threads 1                      # on a machine with other work
    python -m benchmarks.quantised --model qwen3-0.6b --llama-cpp PYTHON        # the layout of Qwen3-0.6B
    python -m benchmarks.quantised --model llama-tiny --json out.json           # a look at whether all runs

PYTHON is that of an environment with cyllama, whose wheels hold llama.cpp (`pip install cyllama`).
Random weights (2.5 GB of bfloat16) are made, quantised and saved on first use.  In each round every contender has
a process of its own: for each length in --contexts a prompt of as many tokens, then single tokens, and the largest
resident memory.  Figures are the least of the repetitions and the rounds.  An ONNX graph is made before, in a process
that is measured by itself and runs only two tokens; so is the time from the next start to a first token, after a prompt
of 8.  Contenders of one file must give logits like each other's.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from . import harness
from .checkpoints import once

# name -> the layout of the random checkpoint, of parity.specs, and its size
MODELS: dict[str, tuple[str, Literal["tiny", "full"]]] = {
    "llama-3.2-1b": ("Llama-3.2-1B", "full"),
    "llama-tiny": ("Llama-3.2-1B", "tiny"),
    "qwen3-0.6b": ("Qwen3-0.6B", "full"),
    "qwen3-tiny": ("Qwen3-0.6B", "tiny"),
}
GGUF = ("q8_0", "q4_0", "q4_k")
FILES = ("bf16", "int8", "int4", *GGUF)
# name -> the side, and which of the files
CONTENDERS: dict[str, tuple[str, str]] = {
    "transformers bf16": ("transformers", "bf16"),
    **{f"zoo {file}": ("zoo", file) for file in FILES},
    **{f"zoo onnx {file}": ("zoo onnx", file) for file in FILES},
    **{f"llama.cpp {file}": ("llama.cpp", file) for file in GGUF},
}
# ours, theirs -> the largest ratio of a token's time that was aimed at
TARGETS = {
    ("zoo onnx int8", "llama.cpp q8_0"): 0.95,
    ("zoo onnx int4", "llama.cpp q4_0"): 0.95,
    ("zoo onnx q8_0", "llama.cpp q8_0"): 0.95,
    ("zoo onnx q4_0", "llama.cpp q4_0"): 0.95,
    ("zoo onnx q4_k", "llama.cpp q4_k"): 1.0,
}
ALIKE = 0.25  # rms of the differences of logits, relative to theirs: activations are rounded to int8 in other places

# `model(capacity)` gives a function of ids and whether they begin a text -> the logits of the next token.
CHILD = """
import json, sys, time
path, threads, contexts, tokens, clock = sys.argv[1], *map(json.loads, sys.argv[2:6])
now = getattr(time, clock)
began = now()
from benchmarks.memory import peak
%s
import numpy as np
found = dict(logits=None, prefill={}, decode={})
for context in contexts:
    step, prefill, decode = model(context + tokens + 1), [], []
    ids = np.random.default_rng(0).integers(5, vocabulary, context)
    for _ in range(2 if context < 1000 else 1):
        a = now()
        logits = step(ids, True)
        prefill.append(now() - a)
        found.setdefault("first", now() - began)
    if found["logits"] is None:
        found["logits"] = np.asarray(logits, np.float64).ravel()[::97].tolist()
    for _ in range(tokens):
        one = np.array([int(np.argmax(logits))])
        a = now()
        logits = step(one, False)
        decode.append(now() - a)
    found["prefill"][context], found["decode"][context] = min(prefill), min(decode)
print(json.dumps(dict(found, peak=peak())))
"""
ZOO = """
import zoo
network = zoo.load_model(path, device=%r)
vocabulary = network.config.vocab_size
def model(capacity):
    cache = None
    def step(ids, begins):
        nonlocal cache
        cache = network.new_cache(1, capacity) if begins else cache
        return np.asarray(network.next_logits(ids[None], None, cache))
    return step
"""
SIDES = {
    "zoo": ZOO % None,
    "zoo onnx": ZOO % "onnx",
    "transformers": """
import torch
from transformers import AutoModelForCausalLM
network = AutoModelForCausalLM.from_pretrained(path, dtype=torch.bfloat16, attn_implementation="sdpa").eval()
vocabulary = network.config.vocab_size
def model(capacity):
    cache = None
    @torch.inference_mode()
    def step(ids, begins):
        nonlocal cache
        cache = None if begins else cache
        out = network(torch.from_numpy(ids[None]), past_key_values=cache, use_cache=True, logits_to_keep=1)
        cache = out.past_key_values
        return out.logits[0, -1].float().numpy()
    return step
""",
    "llama.cpp": """
from cyllama.llama import llama_cpp
llama_cpp.llama_backend_init()
llama_cpp.ggml_backend_load_all()
llama_cpp.disable_logging()
setting = llama_cpp.LlamaModelParams()
setting.n_gpu_layers = 0
class Network(llama_cpp.LlamaModel):
    n_vocab = property(lambda self: self.get_vocab().n_vocab)  # get_logits asks for it, and cyllama 0.2 lacks it
network = Network(path, setting)
vocabulary = network.n_vocab
setting = llama_cpp.LlamaContextParams()
setting.n_ctx, setting.n_batch = max(contexts) + tokens + 8, 512
setting.n_threads = setting.n_threads_batch = threads
session = llama_cpp.LlamaContext(network, setting)
def model(capacity):
    at = 0
    def step(ids, begins):
        nonlocal at
        if begins:
            session.kv_cache_clear()
            at = 0
        for begin in range(0, len(ids), 512):
            some = ids[begin : begin + 512].tolist()
            session.decode(llama_cpp.llama_batch_get_one(some, at))
            at += len(some)
        return np.asarray(session.get_logits(), np.float32)
    return step
""",
}


def main(argv: Sequence[str] | None = None) -> int:
    parser = harness.parser("quantised", __doc__, rounds=2)
    parser.add_argument("--model", choices=sorted(MODELS), default="llama-3.2-1b")
    parser.add_argument("--only", nargs="+", choices=sorted(CONTENDERS), metavar="NAME", help=", ".join(CONTENDERS))
    parser.add_argument("--tokens", type=int, default=24, help="tokens that are decoded (default 24)")
    parser.add_argument("--contexts", type=int, nargs="+", default=[128, 1024], help="lengths of the prompts")
    parser.add_argument("--llama-cpp", metavar="PYTHON", help="an interpreter with cyllama")
    args = parser.parse_args(argv)
    environment = harness.start(args, torch_too=False)
    threads = environment["threads"]
    names = [name for name in args.only or CONTENDERS if args.llama_cpp or not name.startswith("llama.cpp")]
    paths = {file: _file(args.model, file, args.cache) for file in dict.fromkeys(CONTENDERS[n][1] for n in names)}
    sizes = {file: sum(f.stat().st_size for f in _weights(path)) for file, path in paths.items()}
    os.environ["HF_ASSETS_CACHE"] = str(args.cache / "graphs")
    clock = json.dumps("process_time" if args.clock == "cpu" else "perf_counter")

    def run(name: str, contexts: list[int], tokens: int) -> dict[str, Any]:
        side, file = CONTENDERS[name]
        common = json.dumps(threads), json.dumps(contexts), str(tokens)
        python = {"python": args.llama_cpp} if side == "llama.cpp" else {}
        return harness.run_python(CHILD % SIDES[side], str(paths[file]), *common, clock, **python)

    making, starts = {}, {}
    for name in (name for name in names if name.startswith("zoo onnx")):
        making[name] = run(name, [1], 1)["peak"] / sizes[CONTENDERS[name][1]]
        starts[name] = run(name, [8], 1)["first"]
        print(f"{name}: peak memory where the graph is made, / file {making[name]:.2f}", flush=True)
        print(f"{name}: from the next start to the first token {starts[name]:.2f} s", flush=True)
    runs: dict[str, Any] = {}
    for name in harness.in_turns(names, args.rounds):
        found, size = run(name, args.contexts, args.tokens), sizes[CONTENDERS[name][1]]
        before = runs.setdefault(name, found)
        least = {part: {n: min(t, before[part][n]) for n, t in found[part].items()} for part in ("prefill", "decode")}
        peak = min(found["peak"], before["peak"])
        runs[name] = {**least, "peak": peak, "peak_of_file": peak / size, "logits": found["logits"]}
        of = ", ".join(f"{1e3 * t:.0f} ms a token after {n}" for n, t in found["decode"].items())
        print(f"{name}: {of}; a prompt {list(found['prefill'].values())} s; peak {peak / 1e6:.0f} MB", flush=True)
    if not _alike(runs):
        return 1
    ratios = []
    for (ours, theirs), target in TARGETS.items():
        for what, n in ((what, n) for what in ("decode", "prefill") for n in map(str, args.contexts)):
            if ours not in runs or theirs not in runs:
                continue
            ratio = runs[ours][what][n] / runs[theirs][what][n]
            aim = target if what == "decode" else 1.0
            ratios.append({"what": f"{what} {n}", "ours": ours, "theirs": theirs, "ratio": ratio, "target": aim})
            print(f"{what} {n}, {ours} / {theirs}: {ratio:.2f} ({'<=' if ratio <= aim else 'MISSES'} {aim:.2f})")
    for found in runs.values():
        del found["logits"]
    result = {"environment": environment, "model": args.model, "file_bytes": sizes, "making": making, "starts": starts}
    name = "quantised-qwen3" if args.model.startswith("qwen3") else "quantised"
    harness.finish(name, args, {**result, "runs": runs, "ratios": ratios})
    return 0


def _alike(runs: dict[str, Any]) -> bool:
    """True unless contenders of one file give other logits than zoo on NumPy."""
    import numpy as np

    for name, found in runs.items():
        file = CONTENDERS[name][1]
        if f"zoo {file}" in runs:
            ours, theirs = (np.array(one["logits"]) for one in (runs[f"zoo {file}"], found))
            found["difference"] = float(np.sqrt(np.mean((theirs - ours) ** 2) / np.mean(ours**2)))
            if found["difference"] > ALIKE:
                print(f"{name}: logits differ by {found['difference']:.2f} of their size from those of zoo {file}")
                return False
    return True


def _file(model: str, file: str, cache: Path) -> Path:
    """The checkpoint with weights of a type, written on first use."""
    folder = once(cache / f"{model}-packed-{file}", lambda partial: _write(model, file, cache, partial))
    return folder / "model.gguf" if file in GGUF else folder


def _write(model: str, file: str, cache: Path, folder: Path) -> Path:
    import zoo
    from parity.checkpoints import build
    from parity.vocabularies import write_bpe, write_json

    if file == "bf16":
        spec, size = MODELS[model]
        build(spec, folder, size)
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        # What a GGUF file needs: a tokenizer, and rotary positions that it can describe at any size.
        write_bpe(folder, config["vocab_size"], config["max_position_embeddings"], named=True)
        write_json(folder / "config.json", {**config, "rope_scaling": None})
        return folder
    base = _file(model, "bf16", cache)
    if file in GGUF:
        from zoo.apps.gguf_export.export import export
        from zoo.tasks.base import TextTask

        task = zoo.load(base)
        assert isinstance(task, TextTask)
        export(task, folder / "model.gguf", file)
    else:
        zoo.save(zoo.load_model(base, weights="int8" if file == "int8" else "int4"), folder)
    return folder


def _weights(path: Path) -> list[Path]:
    return [path] if path.is_file() else list(path.glob("*.safetensors"))


if __name__ == "__main__":
    raise SystemExit(main())
