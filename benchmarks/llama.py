"""A Llama-3.2-1B layout on the CPU: zoo with bfloat16 weights mapped, zoo and transformers in float32, and in bfloat16.

    python -m benchmarks.llama                        # writes benchmarks/results/llama-<processor>-<date>.json
    python -m benchmarks.llama --model llama-tiny --rounds 1 --json out.json     # a look at whether all runs

Random weights (2.5 GB, bfloat16, made on first use).  In each round every contender has a process of its own, one after
the other: from its start to the first token of a short prompt, a prompt of 128 tokens, single tokens at batch 1, and
the largest resident memory (mapped pages that were looked at count).  Greedy tokens must agree before anything is said.
Figures are medians over the rounds; a ratio is the median of the rounds' ratios.  float32 takes 5 GB of memory.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import harness
from .checkpoints import once

SIZES: dict[str, Any] = {"llama-3.2-1b": "full", "llama-tiny": "tiny"}  # of the layout of Llama-3.2-1B
CONTENDERS = {
    "zoo bf16": ("zoo", None),
    "zoo float32": ("zoo", "float32"),
    "transformers float32": ("transformers", "float32"),
    "transformers bf16": ("transformers", "bfloat16"),
}
# (figure, ours, theirs) -> the largest ratio that was aimed at
TARGETS = {
    ("decode", "zoo bf16", "transformers float32"): 1.0,
    ("decode", "zoo bf16", "transformers bf16"): 1 / 0.85,
    ("decode", "zoo float32", "transformers float32"): 1.0,
    ("prefill", "zoo bf16", "transformers float32"): 0.9,
    ("prefill", "zoo float32", "transformers float32"): 0.9,
    ("first token", "zoo bf16", "transformers bf16"): 0.25,
    ("first token", "zoo bf16", "transformers float32"): 0.25,
}
PEAK = 1.15  # of the file: the memory of bfloat16 weights, mapped

# Marks of one process, from its start on the clock of the parent.  `step(ids, cache)` gives the logits of the next
# token and the cache, which is None before the first.
CHILD = """
import json, sys, time
from benchmarks.memory import peak
folder, dtype, prompt, tokens, began = sys.argv[1], json.loads(sys.argv[2]), *map(json.loads, sys.argv[3:6])
%s
import numpy as np
loaded = time.time() - began
ids = np.random.default_rng(0).integers(0, vocabulary, prompt)
logits, _ = step(ids[None, :16], None)
first = time.time() - began
found = dict(loaded=loaded, first=first, peak_first=peak())
prefill = []
for _ in range(3):
    a = time.perf_counter()
    logits, cache = step(ids[None], None)
    prefill.append(time.perf_counter() - a)
chosen, decode = [int(logits.argmax())], []
while len(chosen) < tokens:
    a = time.perf_counter()
    logits, cache = step(np.array([[chosen[-1]]]), cache)
    decode.append(time.perf_counter() - a)
    chosen.append(int(logits.argmax()))
decode.sort()
print(json.dumps(dict(found, prefill=min(prefill), decode=decode[len(decode) // 2], chosen=chosen, peak=peak())))
"""
STEPS = {
    "zoo": """
import zoo
model = zoo.load_model(folder, dtype=dtype)
vocabulary = model.config.vocab_size
def step(ids, cache):
    cache = model.new_cache(1, prompt + tokens) if cache is None else cache
    return model.next_logits(ids, None, cache), cache
""",
    "transformers": """
import torch
from transformers import AutoModelForCausalLM
model = AutoModelForCausalLM.from_pretrained(folder, dtype=getattr(torch, dtype), attn_implementation="sdpa").eval()
vocabulary = model.config.vocab_size
@torch.inference_mode()
def step(ids, cache):
    out = model(torch.from_numpy(ids), past_key_values=cache, use_cache=True, logits_to_keep=1)
    return out.logits[0, -1].float().numpy(), out.past_key_values
""",
}


def main(argv: Sequence[str] | None = None) -> int:
    args = _parser().parse_args(argv)
    harness.calm()
    environment = harness.environment(harness.available_cores())
    print(harness.summary(environment), flush=True)
    folder = checkpoint(args.model, args.cache)
    size = (folder / "model.safetensors").stat().st_size
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in args.only or CONTENDERS}
    speed = []
    for i in range(args.rounds):
        speed.append(bandwidth())
        for name in runs:
            library, dtype = CONTENDERS[name]
            arguments = (str(folder), json.dumps(dtype), "128", str(args.tokens), repr(time.time()))
            runs[name].append(harness.run_python(CHILD % STEPS[library], *arguments))
            print(f"round {i + 1}, {name}: {1e3 * runs[name][-1]['decode']:.0f} ms a token", flush=True)
    # What computes in float32 must write the same: the weights are the same numbers.
    chosen = {tuple(r["chosen"]) for name, of in runs.items() if name != "transformers bf16" for r in of}
    if len(chosen) > 1:
        print(f"greedy tokens differ: {chosen}")
        return 1
    medians = {
        name: {key: statistics.median(r[key] for r in of) for key in of[0] if key != "chosen"}
        for name, of in runs.items()
    }
    memory = statistics.median(speed)
    print(f"\n{args.model}, {size / 1e9:.2f} GB of bfloat16; memory reads at {memory / 1e9:.1f} GB/s on all cores\n")
    print(harness.table(HEAD, [_line(name, of, size, memory) for name, of in medians.items()]))
    print("\nratios of seconds: ours / theirs")
    ratios = []
    for (what, ours, theirs), target in TARGETS.items():
        if ours not in runs or theirs not in runs:
            continue
        key = "first" if what == "first token" else what
        ratio = statistics.median(a[key] / b[key] for a, b in zip(runs[ours], runs[theirs], strict=True))
        ratios.append({"what": what, "ours": ours, "theirs": theirs, "ratio": ratio, "target": target})
        print(f"{what}, {ours} / {theirs}: {ratio:.2f} ({'<=' if ratio <= target else 'MISSES'} {target:.2f})")
    if "zoo bf16" in medians:
        peak = medians["zoo bf16"]["peak"] / size
        print(f"peak memory of zoo bf16 / file: {peak:.2f} ({'<=' if peak <= PEAK else 'MISSES'} {PEAK})")
    found = {"environment": environment, "model": args.model, "file_bytes": size, "memory_bytes_per_second": speed}
    harness.finish("llama", args, {**found, "runs": runs, "medians": medians, "ratios": ratios})
    return 0


HEAD = ["", "tokens/s", "ms a token", "GB a token", "of memory's speed", "128 tokens, s", "first token, s", "peak GB"]


def _line(name: str, of: dict[str, float], size: int, memory: float) -> list[str]:
    read = size * (2 if "float32" in name else 1)  # every weight once; the embedding is also the output projection
    return [
        name,
        f"{1 / of['decode']:.2f}",
        f"{1e3 * of['decode']:.0f}",
        f"{read / 1e9:.2f}",
        f"{read / of['decode'] / memory:.0%}",
        f"{of['prefill']:.2f}",
        f"{of['first']:.2f}",
        f"{of['peak'] / 1e9:.2f}",
    ]


def _parser() -> argparse.ArgumentParser:
    parser = harness.parser("llama", __doc__, rounds=3, threads=False)
    parser.add_argument("--model", choices=sorted(SIZES), default="llama-3.2-1b")
    parser.add_argument("--only", nargs="+", choices=sorted(CONTENDERS), metavar="NAME", help=", ".join(CONTENDERS))
    parser.add_argument("--tokens", type=int, default=32, help="tokens that are decoded (default 32)")
    return parser


def bandwidth() -> float:
    """Bytes a second at which all cores together read memory: the sum of a large array."""
    import numpy as np

    from zoo.ops.on_numpy import threads

    data = np.ones((64, 1 << 20), np.int64)
    sums = [0] * len(data)

    def share(i: int) -> None:
        sums[i] = int(np.bitwise_or.reduce(data[i]))

    times = []
    for _ in range(5):
        begin = time.perf_counter()
        threads.run(share, len(data), cost=1e9)
        times.append(time.perf_counter() - begin)
    return data.nbytes / min(times)


def checkpoint(name: str, cache: Path) -> Path:
    """A folder with config.json and model.safetensors of random bfloat16 numbers, written on first use."""
    return once(cache / f"{name}-bf16", lambda partial: _write(SIZES[name], partial))


def _write(size: Any, folder: Path) -> Path:
    import numpy as np

    from parity.specs import SPECS, config_of, tensors

    spec = SPECS["Llama-3.2-1B"]
    config = config_of(spec, size)
    shapes = {tensor: role.shape for tensor, role in tensors(spec, config).items()}
    header, end = {}, 0
    for tensor, shape in shapes.items():
        begin, end = end, end + 2 * math.prod(shape)
        header[tensor] = {"dtype": "BF16", "shape": shape, "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    (folder / "config.json").write_text(json.dumps(config, indent=2), encoding="utf-8")
    rng = np.random.default_rng(0)
    with open(folder / "model.safetensors", "wb") as f:
        f.write(len(text).to_bytes(8, "little") + text)
        for shape in shapes.values():
            numbers = rng.standard_normal(shape, np.float32)
            numbers *= np.float32(0.02 if len(shape) > 1 else 0.1)
            numbers += np.float32(len(shape) == 1)
            f.write((numbers.view(np.uint32) >> np.uint32(16)).astype(np.uint16).data)
    return folder


if __name__ == "__main__":
    raise SystemExit(main())
