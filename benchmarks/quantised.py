"""Quantised weights of a Llama-3.2-1B layout on the CPU, beside bfloat16's and transformers'.

    python -m benchmarks.quantised                    # writes benchmarks/results/quantised-<processor>-<date>.json
    python -m benchmarks.quantised --model llama-tiny --json out.json            # a look at whether all runs

Random weights (2.5 GB of bfloat16, made on first use), quantised and saved once; then each contender has a process of
its own, one after the other, on one thread: a prompt of 128 tokens, single tokens at batch 1, and the largest resident
memory.  Seconds are the processor's, the least of the repetitions, and of the rounds: the machine may be busy with
other things.  transformers computes in bfloat16 where the processor does, else in float32.  "plain" is without the
extra `fast`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from . import harness
from .llama import CHILD, SIZES, STEPS, checkpoint

PLAIN = "\nimport sys; sys.modules['llvmlite'] = None\n"
# name -> library, element type, which of the files, what comes first
CONTENDERS: dict[str, tuple[str, str | None, str, str]] = {
    "transformers float32": ("transformers", "float32", "bf16", ""),
    "transformers bf16": ("transformers", "bfloat16", "bf16", ""),
    "zoo float32": ("zoo", "float32", "bf16", ""),
    "zoo bf16": ("zoo", None, "bf16", ""),
    "zoo int8": ("zoo", None, "int8", ""),
    "zoo int4": ("zoo", None, "int4", ""),
    "zoo bf16 plain": ("zoo", None, "bf16", PLAIN),
    "zoo int8 plain": ("zoo", None, "int8", PLAIN),
    "zoo int4 plain": ("zoo", None, "int4", PLAIN),
}
PEER = "transformers bf16" if "avx512_bf16" in harness.cpu_model() else "transformers float32"
# (figure, ours, theirs) -> the largest ratio that was aimed at
TARGETS = {
    ("decode", "zoo int8", PEER): 0.5,
    ("decode", "zoo int4", PEER): 0.45,
    ("decode", "zoo bf16", PEER): 0.8,
    ("decode", "zoo int8 plain", PEER): 1.0,
    ("prefill", "zoo int8", "zoo float32"): 1.1,
}
PEAK = 1.15  # of the file
QUANTISING = 2.0  # times the seconds of reading all numbers as float32
LOAD = """
import json, sys, time
{first}
import zoo
folder, choice, target = sys.argv[1:4]
begin = time.process_time()
zoo.load_model(folder, dtype="float32")
read = time.process_time() - begin
begin = time.process_time()
model = zoo.load_model(folder, weights=choice)
quantised = time.process_time() - begin
if target:
    zoo.save(model, target)
print(json.dumps(dict(read=read, quantised=quantised)))
"""


def main(argv: Sequence[str] | None = None) -> int:
    parser = harness.parser("quantised", __doc__, rounds=1, threads=False)
    parser.add_argument("--model", choices=sorted(SIZES), default="llama-3.2-1b")
    parser.add_argument("--only", nargs="+", choices=sorted(CONTENDERS), metavar="NAME", help=", ".join(CONTENDERS))
    parser.add_argument("--tokens", type=int, default=16, help="tokens that are decoded (default 16)")
    args = parser.parse_args(argv)
    environment = {**harness.environment(1), "clock": "cpu"}
    folders = {"bf16": checkpoint(args.model, args.cache)}
    loading: dict[str, Any] = {}
    for choice in ("int8", "int4"):
        folders[choice] = args.cache / f"{args.model}-{choice}"
        for name, first in ((choice, ""), (f"{choice} plain", PLAIN)):
            target = "" if first or folders[choice].is_dir() else str(folders[choice])
            loading[name] = _run(LOAD.format(first=first), str(folders["bf16"]), choice, target)
            ratio = loading[name]["quantised"] / loading[name]["read"]
            print(f"quantising to {name} / reading: {ratio:.2f} {_verdict(ratio, QUANTISING)}", flush=True)
    sizes = {name: sum(f.stat().st_size for f in folder.glob("*.safetensors")) for name, folder in folders.items()}
    runs: dict[str, Any] = {}
    for name in (args.only or list(CONTENDERS)) * args.rounds:
        library, dtype, which, first = CONTENDERS[name]
        code = first + (CHILD % STEPS[library]).replace("perf_counter", "process_time").replace(
            "decode[len(decode) // 2]", "decode[0]"
        )
        found = _run(code, str(folders[which]), json.dumps(dtype), "128", str(args.tokens), "0")
        before = runs.setdefault(name, found)
        runs[name] = {key: min(found[key], before[key]) for key in ("prefill", "decode", "peak_first", "peak")}
        runs[name].update(chosen=found["chosen"], peak_of_file=runs[name]["peak"] / sizes[which])
        figures = f"{1e3 * found['decode']:.0f} ms a token, {found['prefill']:.2f} s for 128"
        print(f"{name}: {figures}; peak memory / file {found['peak'] / sizes[which]:.2f}", flush=True)
    ratios = [
        {"what": what, "ours": ours, "theirs": theirs, "ratio": runs[ours][what] / runs[theirs][what], "target": target}
        for (what, ours, theirs), target in TARGETS.items()
        if ours in runs and theirs in runs
    ]
    for r in ratios:
        print(f"{r['what']}, {r['ours']} / {r['theirs']}: {r['ratio']:.2f} {_verdict(r['ratio'], r['target'])}")
    found = {"environment": environment, "model": args.model, "file_bytes": sizes, "loading": loading}
    harness.finish("quantised", args, {**found, "runs": runs, "ratios": ratios})
    return 0


def _verdict(ratio: float, target: float) -> str:
    return f"({'<=' if ratio <= target else 'MISSES'} {target:.2f})"


def _run(code: str, *arguments: str) -> dict[str, Any]:
    return harness.run_python(code, *arguments, OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")


if __name__ == "__main__":
    raise SystemExit(main())
