"""Reading lines of text on the CPU, zoo against transformers: one run, same weights and images, same tokens.

    python -m benchmarks.trocr                  # all rows; writes benchmarks/results/trocr-<processor>-<date>.json
    python -m benchmarks.trocr --quick          # 3 rounds, nothing written
    python -m benchmarks.trocr --size tiny      # a look at whether all runs

A random checkpoint in the layout of trocr-base (1.3 GB) in float32, from pixel values to tokens.  transformers computes
as fast as it can: sdpa where it has it, and with a cache, though the checkpoints' own config switches that off (a row
of its own shows what that costs).  Its tokens and zoo's must be the same before anything is timed.  Contenders take
turns in one process; a ratio is the median over the rounds of zoo's time / transformers' in the same round.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from . import harness
from .checkpoints import of_spec
from .harness import Row
from .memory import peak

SPEC = "trocr-base-handwritten"
TOKENS = 20
SIZES = ((40, 400), (64, 256), (20, 130), (48, 500), (90, 300), (32, 640), (50, 80), (60, 720))  # of lines, in pixels
ENDS = (3, 5, 8, 11, 14, 17)  # lines of the batch end about there, so that their lengths differ
TARGETS = {"encoder": 0.93, "1 line": 0.70, "8 lines": 0.60, "1 line, 4 beams": 0.60, "peak memory": 1.0}

Ids = list[list[int]]


def main(argv: Sequence[str] | None = None) -> int:
    args = _parser().parse_args(argv)
    folder = of_spec(SPEC, args.cache, args.size)
    if args.peak:  # this is a child process
        harness.take_threads(args.threads)
        (Zoo if args.peak == "zoo" else Transformers)(folder).read(pixels(folder)[:1], [])
        print(peak())
        return 0
    environment = harness.start(args)
    rounds = args.rounds or (3 if args.quick else 7)
    results = []
    for row in rows(folder, args.quick):
        wrong = disagreement(row)
        if wrong:
            print(f"{row.name}: not timed: {wrong}", flush=True)
            results.append({"row": row.name, "disagreement": wrong})
            continue
        targets = {"transformers": TARGETS[row.name]} if row.name in TARGETS else {}
        found = harness.compare(harness.take_turns(row.calls, rounds, args.clock), targets)
        results.append({"row": row.name, **found})
        for peer, ratio in found["ratios"].items():
            times = ", ".join(f"{name} {found['times'][name]['median_ms']:.0f} ms" for name in ("zoo", peer))
            print(f"{row.name}: {times}; ratio (of the minima) {harness.show_ratio(ratio)}", flush=True)
    if not args.quick:
        results.append(_peaks(args))
    harness.finish("trocr", args, {"environment": environment, "size": args.size, "rounds": rounds, "rows": results})
    return int(any("disagreement" in result for result in results))


def _parser() -> argparse.ArgumentParser:
    parser = harness.parser("trocr", __doc__, quick="3 rounds, without memory and the row without a cache")
    parser.add_argument("--size", choices=("tiny", "full"), default="full", help="of the checkpoint")
    parser.add_argument("--peak", choices=("zoo", "transformers"), help=argparse.SUPPRESS)  # for a child process
    return parser


def rows(folder: Path, quick: bool) -> list[Row]:
    import numpy as np

    ours, theirs = Zoo(folder), Transformers(folder)
    lines = pixels(folder)
    one = lines[:1]
    written = ours.read(lines, [])
    ends = [row[at] for row, at in zip(written, ENDS, strict=False)]
    first = np.ascontiguousarray(one.transpose(0, 3, 1, 2))
    out = [
        Row("encoder", {"zoo": partial(ours.encode, one), "transformers": partial(theirs.encode, first)}),
        Row("1 line", _both(ours, theirs, one, [])),
        Row("8 lines", _both(ours, theirs, lines, ends)),
        Row("1 line, 4 beams", _both(ours, theirs, one, [], beams=4)),
    ]
    if not quick:
        calls = {**_both(ours, theirs, one, []), "transformers": partial(theirs.read, one, [], cache=False)}
        out.append(Row("1 line, transformers without a cache", calls))
    return out


def _both(ours: Zoo, theirs: Transformers, lines: Any, ends: list[int], beams: int = 1) -> dict[str, Any]:
    return {
        "zoo": partial(ours.read, lines, ends, beams=beams),
        "transformers": partial(theirs.read, lines, ends, beams=beams),
    }


def disagreement(row: Row) -> str | None:
    """Why a row cannot be timed: states that are not close, or tokens that are not the same."""
    import numpy as np

    ours, theirs = (row.calls[name]() for name in ("zoo", "transformers"))
    if isinstance(theirs, np.ndarray):
        difference = harness.differences({"zoo": lambda: ours, "transformers": lambda: theirs})["zoo"]
        return None if difference < 1e-4 else f"the outputs differ by {difference:.1e} of the largest"
    return None if ours == theirs else f"tokens differ: {ours} and {theirs}"


def pixels(folder: Path) -> Any:
    """Pixel values of the lines (8, Y, X, 3)."""
    from parity.pictures import draw
    from zoo.images import ImageProcessor

    return ImageProcessor.from_folder(folder)([draw(*size) for size in SIZES]).pixel_values


class Zoo:
    def __init__(self, folder: Path):
        import zoo

        self.model: Any = zoo.load_model(folder)

    def encode(self, pixel_values: Any) -> Any:
        return self.model.encode(pixel_values)

    def read(self, pixel_values: Any, ends: list[int], beams: int = 1) -> Ids:
        """The new tokens of each image, up to the first of `ends`, at most TOKENS."""
        import numpy as np

        from zoo.generate import GenerationConfig, generate

        config = GenerationConfig(max_new_tokens=TOKENS, num_beams=beams, eos_token_id=tuple(ends))
        # One image at a time, as the task `read` does: several together are not faster.
        states = np.concatenate([self.model.encode(pixel_values[i : i + 1]) for i in range(len(pixel_values))])
        start = np.full((len(states), 1), self.model.config.decoder.decoder_start_token_id)
        found = generate(self.model, start, config, encoder_hidden_states=states)
        return [texts[0].ids.tolist() for texts in found]


class Transformers:
    def __init__(self, folder: Path):
        import torch
        from transformers import VisionEncoderDecoderModel

        self.torch = torch
        self.model: Any = VisionEncoderDecoderModel.from_pretrained(folder, dtype=torch.float32)

    def encode(self, pixel_values: Any) -> Any:
        with self.torch.inference_mode():
            return self.model.encoder(self.torch.from_numpy(pixel_values)).last_hidden_state.numpy()

    def read(self, pixel_values: Any, ends: list[int], beams: int = 1, cache: bool = True) -> Ids:
        import numpy as np

        first = self.torch.from_numpy(np.ascontiguousarray(pixel_values.transpose(0, 3, 1, 2)))
        config = self.model.generation_config
        config.eos_token_id = ends or None
        with self.torch.inference_mode():
            ids = self.model.generate(
                first, max_new_tokens=TOKENS, do_sample=False, num_beams=beams, use_cache=cache
            ).tolist()
        return [row[1 : next((i + 1 for i, t in enumerate(row) if i and t in ends), len(row))] for row in ids]


def _peaks(args: argparse.Namespace) -> dict[str, Any]:
    """The most memory of a process that loads the checkpoint and reads a line."""
    found = {}
    for who in ("zoo", "transformers"):
        command = [sys.executable, "-m", "benchmarks.trocr", "--peak", who, "--size", args.size]
        command += ["--cache", str(args.cache)]
        found[who] = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-1])
    ratio = found["zoo"] / found["transformers"]
    met = "<=" if ratio <= TARGETS["peak memory"] else "MISSES"
    sizes = ", ".join(f"{who} {size >> 20} MiB" for who, size in found.items())
    print(f"peak memory: {sizes}; {ratio:.2f} {met} {TARGETS['peak memory']:g}")
    return {"row": "peak memory", "bytes": found, "ratio": ratio}


if __name__ == "__main__":
    raise SystemExit(main())
