"""Figures that others published for real checkpoints: what the tests and scripts of transformers expect of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import zoo
from zoo.errors import ZooError
from zoo.hub import find
from zoo.images import ImageProcessor
from zoo.loading import load_model
from zoo.registry import FAMILIES, architectures
from zoo.text.tokenizer import Tokenizer

from .taps import outputs

if TYPE_CHECKING:
    from PIL import Image

IMAGES = Path(__file__).parents[1] / "tests" / "data" / "images"
# What an entry's "needs" stands for, which keeps it from being run whatever the hub's cache holds.
NOT_AT_HAND = {
    "ade20k": "the first test image of the data set hf-internal-testing/fixtures_ade20k",
    "example pdf": "the image of the data set nielsr/example-pdf",
    "jpeg": "the JPEG file of COCO val2017 39769: the PNG that is here has slightly other pixels",
    "librispeech": "the recordings of the data set hf-internal-testing/librispeech_asr_dummy",
    "ocr images": "the images of the data set hf-internal-testing/fixtures_ocr",
    "old pillow": "Pillow 8, whose pixels are not those of the versions that zoo runs with",
    "relative positions": "relative positions in BERT, which zoo refuses, as transformers 5 computes without them",
    "repository": "the name of a repository: the conversion script knows only unilm's own file",
}

HUB = "the hub's files"

Answer = Mapping[str, Any]


def answers() -> list[Answer]:
    """The entries of known_answers.json, whose "about" says what their fields mean."""
    return json.loads((Path(__file__).parent / "known_answers.json").read_text("utf-8"))["entries"]


def label_of(answer: Answer) -> str:
    return f"{answer['repo']}, {answer['model_class']}"


def missing_need(answer: Answer) -> str | None:
    """The reason why an answer cannot be checked on this machine, or None.  Downloads nothing."""
    if "needs" in answer:
        return NOT_AT_HAND[answer["needs"]]
    image = answer["input"].get("image")
    if image is not None and not (IMAGES / image).is_file():
        return f"the image {image}, which is in the repository's tests/data/images"
    try:
        cached_folder(answer["repo"], weights=answer.get("kind") != "ids")
        cached_folder(answer["input"].get("processor", answer["repo"]), weights=False)
    except ZooError:
        return HUB
    return None


def cached_folder(repo: str, weights: bool = True) -> Path:
    """The folder of a repository in the hub's cache; ZooError where it is not there."""
    return find(repo, local_files_only=True, with_weights=weights).folder


def difference(answer: Answer) -> str | None:
    """A message if zoo's figures differ from an answer for which nothing is missing, else None."""
    kind, folder = answer.get("kind"), cached_folder(answer["repo"], weights=answer.get("kind") != "ids")
    if kind == "text":
        found = task_output(answer, folder)
        return None if found == answer["expected"] else f"{found!r}, expected {answer['expected']!r}"
    model: Any = None if kind == "ids" else load(answer, folder)
    if kind == "score":
        apart = abs(score(answer, folder, model) - answer["expected"])
        return None if apart <= answer["atol"] else f"{apart:.1e} apart, expected {answer['atol']:g} or less"
    if kind in ("ids", "tokens"):
        found = ids_of(answer, folder) if model is None else likeliest(answer, folder, model)
        return None if found == answer["expected"] else f"{found}, expected {answer['expected']}"
    fields = outputs(model, model(**arguments(answer)))
    whole, found = fields[answer["slice"].partition("[")[0]], part(fields, answer["slice"])
    if list(whole.shape) != answer.get("output_shape", list(whole.shape)):
        return f"shape {whole.shape}, expected {answer['output_shape']}"
    if "argmax" in answer and whole[0].argmax() != answer["argmax"]:
        return f"the largest at {whole[0].argmax()}, expected {answer['argmax']}"
    apart = float(np.abs(found - np.array(answer["expected"])).max())
    return None if apart <= answer["atol"] else f"{apart:.1e} apart, expected {answer['atol']:g} or less"


def ids_of(answer: Answer, folder: Path) -> list[list[int]]:
    """The token ids of an entry's texts."""
    given = answer["input"]
    rows = Tokenizer.from_folder(folder).encode_batch(given.get("texts", given.get("text"))).rows
    return [list(row.ids) for row in rows]


def likeliest(answer: Answer, folder: Path, model: Any) -> list[str]:
    """The five likeliest words at an entry's mask, which is at token 6."""
    given, tokenizer = answer["input"], Tokenizer.from_folder(folder)
    encoded = tokenizer(given["text"], padding=given["max_length"])
    logits = model(encoded.input_ids, encoded.attention_mask)
    return tokenizer.decode(np.argsort(-logits[0, 6])[:5]).split()


def task_output(answer: Answer, folder: Path) -> Any:
    """The output of the checkpoint's own task for an entry's text, or texts."""
    task: Any = zoo.load(folder)
    given = answer["input"]
    return task(given["texts"] if "texts" in given else given["text"], **given["options"])


def score(answer: Answer, folder: Path, model: Any) -> float:
    """The log probability of an entry's target after its text, for a model of two sides."""
    tokenizer = Tokenizer.from_folder(folder)
    source, target = (tokenizer(answer["input"][name]).input_ids for name in ("text", "target"))
    start = np.full((1, 1), model.config.decoder_start_token_id)
    logits = model(source, decoder_input_ids=np.concatenate([start, target[:, :-1]], 1)).logits[0].astype(np.float64)
    most = logits.max(1, keepdims=True)
    shares = logits - most - np.log(np.exp(logits - most).sum(1, keepdims=True))
    return float(shares[np.arange(target.shape[1]), target[0]].sum())


def circle(height: int, width: int) -> Image.Image:
    """A blue circle with a green border on red, as transformers' test of SigLIP 2 draws it."""
    from PIL import Image, ImageDraw

    image, (x, y) = Image.new("RGB", (width, height), color="red"), (width // 2, height // 2)
    r = min(x, y) // 8 * 7
    ImageDraw.Draw(image).ellipse((x - r, y - r, x + r, y + r), fill="blue", outline="green", width=width // 20)
    return image


def load(answer: Answer, folder: Path) -> Any:
    """The model of an entry's class, which need not be the one that the repository's config names."""
    family = FAMILIES[architectures()[answer["model_class"]]]
    return load_model(folder, head=family.head(answer["model_class"]))


def arguments(answer: Answer) -> dict[str, Any]:
    """The arguments of the model's call, from an entry's input."""
    given = answer["input"]
    if "input_ids" in given:
        return {name: np.array(given[name]) for name in ("input_ids", "attention_mask") if name in given}
    if "text" in given:
        encoded = Tokenizer.from_folder(cached_folder(answer["repo"], weights=False))(given["text"])
        return {"input_ids": encoded.input_ids, "attention_mask": encoded.attention_mask}
    processor = ImageProcessor.from_folder(cached_folder(given.get("processor", answer["repo"]), weights=False))
    if "size" in given:
        processor = replace(processor, size={"height": given["size"], "width": given["size"]})
    image = circle(*given["circle"]) if "circle" in given else IMAGES / given["image"]
    found: dict[str, Any] = {"pixel_values": processor(image).pixel_values}
    if "masked_patches" in given:
        found["bool_masked_pos"] = np.ones((1, given["masked_patches"]), bool)
    if given.get("interpolate_pos_encoding"):
        found["interpolate_pos_encoding"] = True
    if "texts" in given:  # beside the image
        tokenizer = Tokenizer.from_folder(cached_folder(answer["repo"], weights=False))
        found["input_ids"] = tokenizer(given["texts"], padding=given.get("max_length", True)).input_ids
    return found


def part(fields: Mapping[str, np.ndarray], expression: str) -> np.ndarray:
    """The array that an expression such as "logits[0, :3]" names."""
    name, _, index = expression.rstrip("]").partition("[")
    if not index:
        return fields[name]
    axes = [[int(n) if n else None for n in axis.strip().split(":")] for axis in index.split(",")]
    return fields[name][tuple(axis[0] if len(axis) == 1 else slice(*axis) for axis in axes)]
