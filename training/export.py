"""A run's averaged weights as a checkpoint that zoo and transformers load: float16, a colour picture, a model card.

`python -m training.export reader|structure|detect [--run DIR] [--out DIR] [--beside FOLDER]`

The heads that are of training alone lie beside it, so that training can begin with what was exported (`start`).
"""

import argparse
import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, decoders, models, processors
from transformers import GenerationConfig, TableTransformerForObjectDetection, VisionEncoderDecoderModel

from training import detr, reader
from training.lines import HEIGHT, WIDTH
from training.loop import Run, read_state
from zoo.errors import InputError

# Pillow's grey, folded into the first convolution.
LUMA = torch.tensor([0.299, 0.587, 0.114]).reshape(1, 3, 1, 1)
FIRST = {"reader": "patch_embeddings.projection.weight"}
FIRST |= dict.fromkeys(("structure", "detect"), "embedder.embedder.convolution.weight")
PIXELS = {"do_resize": True, "resample": 2, "do_rescale": True, "rescale_factor": 1 / 255}
PIXELS |= {"do_normalize": True, "image_mean": [0.5] * 3, "image_std": [0.5] * 3}
HEADS, TRAINED, SCORES = "training_heads.safetensors", "training.json", "scores.json"
TITLES = {"reader": "zoo-read", "structure": "zoo-table-structure", "detect": "zoo-table-detect"}
WHAT = {
    "reader": "Reads a line of up to 40 characters: words, numbers, money, dates, punctuation, Latin letters with\n"
    "accents.\n\n"
    "**With transformers**, pad a line that is narrower than 10 : 1 on its right with paper before the processor gets\n"
    "it, which would stretch it. zoo does that by itself (`do_pad_line` in preprocessor_config.json).",
    "structure": "Finds rows, columns, the header, projected rows and spanning cells of a table of 2-12 columns and\n"
    "2-25 rows.",
    "detect": "Finds the tables of a page.",
}
LIMITS = {
    "reader": "One upright line of print in a Latin script, cut close: it fills the picture's height. What is longer\n"
    "than 10 : 1 is read in parts by zoo; transformers squeezes it. No handwriting, no formulas. What it was shown is\n"
    "no language: it has no dictionary to lean on. Other scripts come out as Latin letters that look like them;\n"
    "zoo tells such lines by scripts.json, which `python -m training.scripts` fits to these weights.",
    "structure": "Pictures turned by a degree at most. Larger tables, nested ones and photographs were not shown.",
    "detect": "Upright pages of print; tables turned by 90 degrees, photographs and handwriting were not shown.",
}


def write(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def export(what: str, state: dict[str, Any], out: Path) -> None:
    """state: as `loop.read_state` returns it."""
    out.mkdir(parents=True, exist_ok=True)
    weights = {k.removeprefix("model."): v for k, v in state["average"].items() if k.startswith("model.")}
    weights = {k: v for k, v in weights.items() if not k.endswith("num_batches_tracked")}
    config = dict(state["identity"]["config"])
    if what == "reader":
        model = reader.build(**config, channels=3)
        size = {"height": HEIGHT, "width": WIDTH}
        pixels = {"image_processor_type": "ViTImageProcessor", "size": size, "do_pad_line": True, **PIXELS}
        write(out / "preprocessor_config.json", pixels)
        _tokenizer(out)
    else:
        queries, labels, side = config.pop("queries"), config.pop("labels"), state["side"]
        model = detr.build(detr.Size(**config), queries, labels, channels=3)
        size = {"height": side, "width": side}
        pixels = {"image_processor_type": "DetrImageProcessor", "size": size, "do_pad": False, **PIXELS}
        write(out / "preprocessor_config.json", pixels)
    first = next(k for k in weights if k.endswith(FIRST[what]))
    weights[first] = weights[first] * LUMA
    heads = {k: v.half() for k, v in state["average"].items() if not k.startswith("model.")}
    save_file(heads, out / HEADS)
    model.load_state_dict(weights)
    if what == "reader":
        special = {"bos_token_id": reader.BOS, "eos_token_id": reader.EOS, "pad_token_id": reader.PAD}
        model.generation_config = GenerationConfig(**special, decoder_start_token_id=reader.BOS, max_new_tokens=42)
    model.half().save_pretrained(out)
    hours = state["cpu"] / 3600
    trained = {"model": what, "seed": state["identity"]["seed"], "steps": state["step"], "stage": state["stage"]}
    trained |= {"mean_with": state["mean_with"]} if "mean_with" in state else {}
    trained |= {"typeset": state["typeset"]} if state.get("typeset") else {}
    write(out / TRAINED, {**trained, "cpu_hours": hours, "config": state["identity"]["config"]})
    card(out)


def exported(folder: Path, name: str, config: dict[str, Any]) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    """Read the files of `export` -> weights under the recipe's names, float32 and grey; training.json."""
    try:
        trained = json.loads((folder / TRAINED).read_text(encoding="utf-8"))
        kind = VisionEncoderDecoderModel if name == "reader" else TableTransformerForObjectDetection
        # Its names in memory are others than those in the file.
        loaded: Any = kind.from_pretrained(folder, local_files_only=True)
        weights = {f"model.{k}": v.float() for k, v in loaded.state_dict().items()}
        weights |= {k: v.float() for k, v in load_file(folder / HEADS).items()}
        found = trained["model"], trained["config"]
    except (OSError, ValueError, KeyError, SafetensorError) as e:
        raise InputError(f"{folder} was not written by training.export: {e!r:.200}") from None
    if found != (name, config):
        raise InputError(f"{folder} has {found}, expected {(name, config)}")
    first = next(k for k in weights if k.endswith(FIRST[name]))
    weights[first] = weights[first].sum(1, keepdim=True)
    return reader.grown(weights) if name == "reader" else weights, trained


@torch.no_grad()
def start(run: Run, folder: Path) -> None:
    """Begin a run with what was exported to a folder: its weights and step, new moments of the optimiser."""
    recipe = run.recipe
    weights, trained = exported(folder, recipe.name, recipe.config)
    if trained["steps"] >= recipe.steps:
        raise InputError(
            f"{folder} has seen {trained['steps']} steps: say with --steps how many more than these it gets"
        )
    own = recipe.modules.state_dict()
    for name, tensor in own.items():
        if name in weights:  # not what a batch norm counts, nor heads of training that are new
            tensor.copy_(weights[name])
        elif name.startswith("model.") and not name.endswith("num_batches_tracked"):
            raise InputError(f"{folder} has no {name}")
    for name, tensor in run.average.items():
        tensor.copy_(own[name])
    run.step = run.begun = trained["steps"]
    run.stage, run.cpu = trained["stage"], 3600 * trained["cpu_hours"]
    run.side = recipe.side(run.stage)


def export_run(what: str, run: Path, out: Path, beside: Path | None = None) -> None:
    """Export the run in a folder, or the mean of it and of the export in `beside`.

    Two runs with the same beginning lie in one valley, and their mean is often better than both
    (https://arxiv.org/abs/2203.05482).
    """
    state = read_state(run / "state.pt")
    found = state["identity"]
    if found["name"] != what:
        raise InputError(f"{run} is a run of {found['name']}, expected {what}")
    if beside:
        weights, trained = exported(beside, what, found["config"])
        state["average"] = {k: (v + weights.get(k, v)) / 2 for k, v in state["average"].items()}
        state["mean_with"] = trained["steps"]
    export(what, state, out)


def _tokenizer(out: Path) -> None:
    """A token for each character: a BPE without merges."""
    special = ["<pad>", "<s>", "</s>", "<unk>"]
    vocabulary = {token: i for i, token in enumerate(special)} | reader.IDS
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[], unk_token="<unk>"))
    tokenizer.decoder = decoders.Fuse()  # type: ignore[assignment]
    ends = [("<s>", reader.BOS), ("</s>", reader.EOS)]
    template = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=ends)
    tokenizer.post_processor = template  # type: ignore[assignment]
    tokenizer.add_special_tokens(special)
    tokenizer.save(str(out / "tokenizer.json"))
    names = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}
    config = {"tokenizer_class": "PreTrainedTokenizerFast", **names, "clean_up_tokenization_spaces": False}
    write(out / "tokenizer_config.json", config)


def card(out: Path) -> None:
    """README.md, from how it was trained and, once `training.evaluate` has written them, its scores."""
    trained = json.loads((out / TRAINED).read_text(encoding="utf-8"))
    what, scores = trained["model"], out / SCORES
    table = "Not scored yet."
    if scores.exists():
        found = json.loads(scores.read_text(encoding="utf-8"))
        rows = [f"| {k.replace('_', ' ')} | {round(v, 4)} |" for k, v in found.items()]
        table = "\n".join(["| held-out fonts and layouts | |", "|---|---|", *rows])
    mean = (
        f"\nThe mean of these weights and of those after {trained['mean_with']} steps."
        if "mean_with" in trained
        else ""
    )
    typeset = (
        f"\n{trained['typeset']:.0%} of what was shown last was set by Chromium, LaTeX, LibreOffice."
        if "typeset" in trained
        else ""
    )
    words = "words of ten languages (Debian's lists)" if what == "reader" else "common English words"
    text = f"""---
license: apache-2.0
library_name: zoo
---
# {TITLES[what]}

{WHAT[what]}

**Data.** Pictures that `training/` of zoo renders with Pillow and fonts of Debian packages, from seed
{trained["seed"]}; nothing was downloaded.{typeset} Strings are pseudo-words, {words},
names, numbers, money, dates and codes.

**Training.** `python -m training {what}`: {trained["steps"]} steps, {trained["cpu_hours"]:.1f} hours of a core.{mean}

**Scores.** `python -m training.evaluate {what} FOLDER`

{table}

**Limits.** {LIMITS[what]}
"""
    (out / "README.md").write_text(text, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m training.export", description=__doc__)
    parser.add_argument("what", choices=tuple(TITLES))
    parser.add_argument("--run", help="the run's folder (default: runs/WHAT)")
    parser.add_argument("--out", help="where to (default: zoo-read, ...)")
    parser.add_argument(
        "--beside", type=Path, metavar="FOLDER", help="the mean of the run and of what was exported here"
    )
    args = parser.parse_args()
    export_run(args.what, Path(args.run or f"runs/{args.what}"), Path(args.out or TITLES[args.what]), args.beside)


if __name__ == "__main__":
    main()
