"""A letter page through Granite Docling's layout on the CPU: zoo on ONNX Runtime and transformers, each in its process.

    python -m benchmarks.answers --clock cpu --threads 1     # writes results/answers-<processor>-<date>.json
    python -m benchmarks.answers --size tiny --json out.json # a look at whether all runs

Random weights of idefics3's 258 million parameters, in bfloat16 in the file, float32 in both libraries; `zoo int8` has
the products in int8.  The page is of 1700 x 2200 pixels, which become 17 tiles of 64 tokens.  A process loads the
checkpoint, writes two tokens about a small picture, and is then timed once from the page to 300 greedy tokens; loading
is not counted.  How many tokens are those of transformers is recorded.  `tiles` and `first` are the seconds until the
tiles were cut, and until the encoder had read them and the first token was there.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from . import harness
from .checkpoints import of_spec

SPEC, TOKENS, WORDS = "granite-docling-258M", 300, 12
PAGE = 1700, 2200  # width and height of a letter page at 200 dots an inch
CONTENDERS = ("zoo", "zoo int8", "transformers")
TARGETS = {"transformers": 0.6}
CHILD = """
import json, sys
from pathlib import Path
from benchmarks.answers import measure
who, folder, threads, tokens = sys.argv[1:]
print(json.dumps(measure(who, Path(folder), int(threads), int(tokens))))
"""


def main(argv: Sequence[str] | None = None) -> int:
    args = _parser().parse_args(argv)
    environment = harness.start(args, torch_too=False)
    folder = of_spec(SPEC, args.cache, args.size)
    for name in CONTENDERS:  # the graphs are made by other processes, whose memory does not count
        if name != "transformers":
            harness.run_python(CHILD, name, str(folder), str(environment["threads"]), "0")
    runs: dict[str, list[Any]] = {name: [] for name in CONTENDERS}
    for name in harness.in_turns(CONTENDERS, args.rounds):
        found = harness.run_python(CHILD, name, str(folder), str(environment["threads"]), str(args.tokens))
        runs[name].append(found)
        print(name, json.dumps({key: value for key, value in found.items() if key != "ids"}), flush=True)
    texts = {name: of[0]["ids"] for name, of in runs.items()}
    for of in runs.values():
        for run in of:
            run.pop("ids")
    row: dict[str, Any] = {"row": f"{SPEC}, a letter page, {args.tokens} tokens"}
    row["same tokens"] = {name: sum(map(int.__eq__, text, texts["transformers"])) for name, text in texts.items()}
    row |= harness.compare({name: [run[args.clock] for run in of] for name, of in runs.items()}, TARGETS)
    harness.print_rows([row], args.rounds)
    harness.finish("answers", args, {"environment": environment, "rounds": args.rounds, "rows": [row], "runs": runs})
    return 0


# A process that measures


def measure(who: str, folder: Path, threads: int, tokens: int) -> dict[str, Any]:
    """Time one contender, after a run with little to do."""
    from parity.pictures import draw

    from .memory import peak

    began = time.perf_counter()
    weights = "int8" if who.endswith("int8") else None
    write = (_transformers if who == "transformers" else _zoo)(folder, threads, weights)
    page = draw(*reversed(PAGE))
    write(draw(64, 64), 2)
    if not tokens:
        return {}
    about: dict[str, Any] = {"load and first": time.perf_counter() - began}
    wall, cpu = time.perf_counter(), time.process_time()
    ids, marks = write(page, tokens)
    about |= {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu, "peak": peak(), "ids": ids}
    return about | {name: at - cpu for name, at in marks.items()}


Marks = dict[str, float]  # seconds of the CPU when the tiles were cut, and when the first token was there
Writer = Callable[[Any, int], tuple[list[int], Marks]]


def _zoo(folder: Path, threads: int, weights: Any) -> Writer:
    import numpy as np

    import zoo
    from zoo.generate import GenerationConfig, stream
    from zoo.images import ImageProcessor

    zoo.set_num_threads(threads)
    model: Any = zoo.load_model(folder, device="onnx", weights=weights)
    processor, decoder = ImageProcessor.from_folder(folder), model.runner.decoder(model)

    def write(page: Any, tokens: int) -> tuple[list[int], Marks]:
        tiles, ids = processor(page).pixel_values, list[int]()
        marks = {"tiles": time.process_time()}
        count = len(tiles) * model.image_length(model.vision_model.grid(tiles))
        prompt = model.prompt(np.array(prompt_of(model.config.image_token_id, count)), [tiles])
        for token in stream(decoder, prompt, GenerationConfig(max_new_tokens=tokens, eos_token_id=())):
            marks.setdefault("first", time.process_time())
            ids.append(token.id)
        return ids, marks

    return write


def _transformers(folder: Path, threads: int, weights: Any) -> Writer:
    import torch
    import transformers as package

    torch.set_num_threads(threads)
    transformers: Any = package
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    cls = getattr(transformers, config["architectures"][0])
    model = cls.from_pretrained(folder, dtype=torch.float32, attn_implementation="sdpa").eval()
    processor = transformers.AutoImageProcessor.from_pretrained(folder, backend="pil")
    model.generation_config.eos_token_id = None
    each = (
        config["vision_config"]["image_size"] // config["vision_config"]["patch_size"] // config["scale_factor"]
    ) ** 2

    class Streamer:
        """Notes when the first new token comes: the first call brings the prompt."""

        def __init__(self, marks: Marks):
            self.marks, self.calls = marks, 0

        def put(self, value: Any) -> None:
            self.calls += 1
            if self.calls == 2:
                self.marks["first"] = time.process_time()

        def end(self) -> None: ...

    def write(page: Any, tokens: int) -> tuple[list[int], Marks]:
        found = processor([[page]], return_tensors="pt")
        marks = {"tiles": time.process_time()}
        ids = prompt_of(config["image_token_id"], found["pixel_values"].shape[1] * each)
        given = {"input_ids": torch.tensor([ids]), "attention_mask": torch.ones(1, len(ids), dtype=torch.long)}
        options = {"max_new_tokens": tokens, "do_sample": False, "streamer": Streamer(marks)}
        with torch.inference_mode():
            out = model.generate(**given, **found, **options)
        return out[0, len(ids) :].tolist(), marks

    return write


def prompt_of(place: int, count: int) -> list[int]:
    """A few words, the places of an image, and a few words."""
    words = list(range(3, 3 + WORDS))
    return [*words, *([place] * count), *words]


def _parser() -> argparse.ArgumentParser:
    parser = harness.parser("answers", __doc__, rounds=1)
    parser.add_argument("--size", choices=("tiny", "full"), default="full")
    parser.add_argument("--tokens", type=int, default=TOKENS)
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
