"""Every family at full size on the CPU: zoo on ONNX Runtime and transformers, one short input, each alone.

    python -m benchmarks.families --prepare          # the checkpoints, inputs and graphs, without any timing
    python -m benchmarks.families                    # writes benchmarks/results/families-<processor>-<date>.json
    python -m benchmarks.families --specs gpt2 t5-small --rounds 1 --json out.json
    python -m benchmarks.families --size tiny --seconds 0.1      # a look at whether all runs

Random checkpoints in float32 or 16 bits in the layouts of real ones, as `parity --full` has them; both sides compute in
float32.  Encoders read 128 tokens, or one image or half a minute of sound as their checkpoint's processor makes it;
decoders read 64 tokens and write 16, models that write about what they have read 16.  In each round every contender
loads the checkpoint in a process of its own, runs until its time is even (ONNX Runtime packs weights after some runs),
and is timed for some seconds.  Outputs are compared before a time is reported; tokens must be the same.  A ratio is the
median of the rounds' ratios.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import harness
from .checkpoints import of_spec

TARGETS = {"transformers": 0.9}
TOLERANCE = 1e-3  # of random weights, whose errors grow more than those of real ones
READ, PROMPT, WRITTEN = 128, 64, 16  # tokens
NOT_USED = r"pooler\.|num_batches_tracked$"  # parameters of transformers that the checkpoints have not
CONTENDERS = ("zoo", "transformers")
CHILD = """
import json, sys
from pathlib import Path
from benchmarks.families import measure
who, folder, out, threads, seconds = sys.argv[1:]
print(json.dumps(measure(who, Path(folder), out, int(threads), float(seconds))))
"""


def main(argv: Sequence[str] | None = None) -> int:
    args = _parser().parse_args(argv)
    environment = harness.start(args, torch_too=False)
    threads = environment["threads"]
    from parity.specs import FULL_SPECS

    path = args.json or harness.dated("families", environment)
    rows: list[dict[str, Any]] = []
    runs: dict[str, Any] = {}
    for spec in args.specs or FULL_SPECS:
        folder = of_spec(spec, args.cache, args.size)
        if args.prepare:
            _child("zoo", folder, "", threads, 0.0)
            print(spec, "is prepared", flush=True)
            continue
        row, runs[spec] = _row(spec, folder, args, threads)
        rows.append(row)
        print(_said(row), flush=True)
        result = {"environment": environment, "rounds": args.rounds, "rows": rows, "runs": runs}
        harness.write(path, _joined(path, result))
    if args.prepare:
        return 0
    harness.print_rows(rows, args.rounds)
    print(f"written to {path}")
    return 0 if all("times" in row for row in rows) else 1


def _row(spec: str, folder: Path, args: argparse.Namespace, threads: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """The comparison of one checkpoint, and the figures of each contender's processes."""
    import numpy as np

    runs: dict[str, list[Any]] = {name: [] for name in CONTENDERS}
    outputs: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as place:
        for name in harness.in_turns(CONTENDERS, args.rounds):
            out = str(Path(place) / f"{name}.npy")
            runs[name].append(_child(name, folder, out, threads, args.seconds))
            outputs[name] = np.load(out)
    found = harness.differences({name: (lambda x=x: x) for name, x in outputs.items()})
    about = runs["zoo"][0]
    row: dict[str, Any] = {"row": f"{spec} {about['work']}", "spec": spec, "differences": found}
    if found["zoo"] > (0 if about["writes"] else TOLERANCE):
        return row, runs
    return row | harness.compare({name: [run[args.clock] for run in of] for name, of in runs.items()}, TARGETS), runs


def _child(who: str, folder: Path, out: str, threads: int, seconds: float) -> dict[str, Any]:
    return harness.run_python(CHILD, who, str(folder), out, str(threads), str(seconds))


def _said(row: dict[str, Any]) -> str:
    if "ratios" not in row:
        return f"{row['row']}: no time is given, since outputs differ: {row['differences']}"
    return f"{row['row']}: {harness.show_ratio(row['ratios']['transformers'])}"


def _joined(path: Path, result: dict[str, Any]) -> dict[str, Any]:
    """With the rows of other families that a run of the same day has written before."""
    if not path.is_file():
        return result
    before = json.loads(path.read_text(encoding="utf-8"))
    mine = {row["spec"] for row in result["rows"]}
    rows = [row for row in before["rows"] if row["spec"] not in mine] + result["rows"]
    return {**result, "rows": sorted(rows, key=lambda row: row["spec"]), "runs": {**before["runs"], **result["runs"]}}


# A process that measures


def measure(who: str, folder: Path, out: str, threads: int, seconds: float) -> dict[str, Any]:
    """Time one contender; out: where its output goes.  Without seconds the graphs are made, and no more."""
    import time

    import numpy as np

    from .memory import peak

    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    began = time.perf_counter()
    run, about = (_zoo if who == "zoo" else _transformers)(folder, config, threads)
    found = np.asarray(run())
    about = {**about, "load and first": time.perf_counter() - began}
    if not seconds:
        return about
    np.save(out, found)
    walls, cpus = [], []
    warm = time.perf_counter() + seconds
    while time.perf_counter() < warm:
        run()
    end = time.perf_counter() + seconds
    while len(walls) < 3 or time.perf_counter() < end:
        wall, cpu = time.perf_counter(), time.process_time()
        run()
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    times = {"wall": float(np.median(walls)), "cpu": float(np.median(cpus)), "calls": len(walls)}
    return {**about, **times, "peak": peak()}


def _zoo(folder: Path, config: dict[str, Any], threads: int) -> tuple[Any, dict[str, Any]]:
    import numpy as np

    import zoo
    from zoo.generate import GenerationConfig, generate
    from zoo.inputs.encoder_decoder import EncoderDecoder
    from zoo.inputs.heads import CausalLM

    zoo.set_num_threads(threads)
    model: Any = zoo.load_model(folder, device="onnx")
    arrays = inputs(model, folder)
    np.savez(folder / "inputs.npz", **arrays)
    writing = GenerationConfig(max_new_tokens=WRITTEN, eos_token_id=())
    if isinstance(model, EncoderDecoder):
        start = [[getattr(model.config, "decoder", model.config).decoder_start_token_id]]

        def write() -> Any:
            context: Any = model.context(**arrays)
            return generate(model.runner.decoder(model.decoder), start, writing, **context)[0][0].ids

        return write, {"work": f"{_work(arrays)}, {WRITTEN} tokens written", "writes": True}
    if isinstance(model, CausalLM):
        decoder = model.runner.decoder(model)
        about = {"work": f"{PROMPT} tokens, {WRITTEN} more", "writes": True}
        return lambda: generate(decoder, arrays["input_ids"], writing)[0][0].ids, about
    return lambda: first_output(model(**arrays), False), {"work": _work(arrays), "writes": False}


def _transformers(folder: Path, config: dict[str, Any], threads: int) -> tuple[Any, dict[str, Any]]:
    import numpy as np
    import torch
    import transformers as package

    from parity.specs import spec_class

    torch.set_num_threads(threads)
    transformers: Any = package
    architecture = config["architectures"][0]
    spec = spec_class(config["model_type"])
    model, info = spec.load_reference(getattr(transformers, architecture), folder, config, torch.float32)
    if missing := [name for name in info["missing_keys"] if not re.search(NOT_USED, name)]:
        raise SystemExit(f"{folder}: transformers finds no {missing[0]}, and would compute with random numbers")
    model.eval()
    with contextlib.suppress(ValueError):  # of a family whose attention transformers computes in one way alone
        model.set_attn_implementation("sdpa")
    given = {name: torch.from_numpy(array) for name, array in np.load(folder / "inputs.npz").items()}
    given = {name: value.contiguous() for name, value in spec.arguments(given, config).items()}
    if not model.can_generate() or "Masked" in architecture:

        def run() -> Any:
            with torch.inference_mode():
                return first_output(model(**given), True)

        return run, {}
    settings = model.generation_config
    rules = ("forced_bos_token_id", "forced_eos_token_id", "suppress_tokens", "begin_suppress_tokens")
    for name in (*rules, "bad_words_ids", "eos_token_id"):
        setattr(settings, name, None)
    settings.num_beams, settings.use_cache = 1, True

    def write() -> Any:
        # Whisper's own `generate` adds tokens that tell a language: the one of all models is what is measured.
        found = transformers.GenerationMixin.generate(model, **given, max_new_tokens=WRITTEN, do_sample=False)
        return found[0, -WRITTEN:].numpy()

    return write, {}


def inputs(model: Any, folder: Path) -> dict[str, Any]:
    """The arguments of a call: random ones, and a picture where there is a processor for it."""
    from parity.pictures import draw
    from zoo.images import ImageProcessor

    writes = model.step_decoder is not None
    reader = getattr(model, "encoder", model) if writes else model
    found = reader.example(rows=1, length=PROMPT if reader is model and writes else READ)
    if "pixel_values" in found and (folder / "preprocessor_config.json").is_file():
        found["pixel_values"] = ImageProcessor.from_folder(folder)(draw(480, 640)).pixel_values
    names = ("input_ids", "bbox", "pixel_values", "input_features", "input_values")
    return {name: found[name] for name in names if name in found}


def _work(arrays: dict[str, Any]) -> str:
    names = {"input_ids": "tokens", "input_features": "frames of sound", "input_values": "samples of sound"}
    parts = [
        "x".join(map(str, array.shape[1:3])) if name == "pixel_values" else f"{array.shape[-1]} {names[name]}"
        for name, array in arrays.items()
        if name != "bbox"
    ]
    return " and ".join(parts)


def first_output(found: Any, channels_first: bool) -> Any:
    """The array of a model's output that is compared: its logits, its scores of pairs, its depths, or its states."""
    import numpy as np

    array = found
    for name in ("logits_per_image", "logits", "predicted_depth", "last_hidden_state"):
        if getattr(found, name, None) is not None:
            array = getattr(found, name)
            break
    array = np.asarray(array)
    return np.moveaxis(array, 1, -1) if channels_first and array.ndim == 4 else array


def _parser() -> argparse.ArgumentParser:
    parser = harness.parser("families", __doc__, rounds=1)
    parser.add_argument("--specs", nargs="+", metavar="NAME", help="of parity.specs (default: those that are full)")
    parser.add_argument("--size", choices=("tiny", "full"), default="full")
    parser.add_argument("--seconds", type=float, default=2.0, help="that each process warms up, and is timed")
    parser.add_argument("--prepare", action="store_true", help="write checkpoints, inputs and graphs, and time nothing")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
