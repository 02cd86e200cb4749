"""The inputs of both models: texts, images, or random numbers, in batches.

The kind of a model's class says which: `TextModel`, `ImageModel`, a model that has several of these for its parts, or a
kind of its own, whose `example` makes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from zoo.files.json_file import read_json
from zoo.images import ImageProcessor
from zoo.inputs import ChoiceModel, ImageModel, TextModel
from zoo.inputs.entities import EntityTextModel
from zoo.inputs.image_text import ImageTextModel
from zoo.inputs.image_text_encoder import ImageTextToText
from zoo.inputs.mask_generation import MaskGenerator
from zoo.registry import FAMILIES
from zoo.text.tokenizer import Tokenizer
from zoo.text.tokenizer_classes import CLASSES
from zoo.text.tokenizer_files import VOCABULARY_FILES

from . import image_texts, images, texts
from .pictures import draw
from .specs import spec_class
from .texts import Batch

PROCESSORS = ("preprocessor_config.json", "processor_config.json")


class Given(NamedTuple):
    """The batches for both models, and the tokenizer that made them if there is one."""

    batches: list[Batch]
    tokenizer: Tokenizer | None = None


def given_to(model: Any, folder: Path, seed: int) -> Given:
    """The batches for a model of zoo, as its checkpoint's own tokenizer or image processor makes them.

    Without these, as in a folder that a model alone was saved to, they are random tokens and pixels.
    """
    family = FAMILIES[model.config.model_type]
    tokenizer = Tokenizer.from_folder(folder) if family.has_tokenizer and _has_tokenizer(folder) else None
    spec = spec_class(model.config.model_type)
    processor = spec.read_processor(folder) if family.reads_images and _has_any(folder, PROCESSORS) else None
    pictures = [] if processor is None else spec.pictures(model.config, processor, seed)
    return Given(_batches(model, tokenizer, processor, pictures, seed), tokenizer)


def _has_tokenizer(folder: Path) -> bool:
    """True if there is a vocabulary, or a class of tokenizers that needs none."""
    path = folder / "tokenizer_config.json"
    named = CLASSES.get(read_json(path).get("tokenizer_class", "")) if path.is_file() else None
    return _has_any(folder, VOCABULARY_FILES) or (named is not None and named.file == path.name)


def _has_any(folder: Path, names: Sequence[str]) -> bool:
    return any((folder / name).is_file() for name in names)


def _batches(
    model: Any, tokenizer: Tokenizer | None, processor: ImageProcessor | None, pictures: Sequence[Any], seed: int
) -> list[Batch]:
    if type(model).example is TextModel.example or isinstance(model, ChoiceModel | EntityTextModel):
        return texts.batches(model, tokenizer, seed)
    if type(model).example is ImageModel.example:
        square = spec_class(model.config.model_type).square
        return images.batches(model, processor, pictures, seed, square)
    if isinstance(model, ImageTextModel):
        return image_texts.batches(model, processor, pictures, seed)
    if isinstance(model, ImageTextToText):
        return [
            batch._replace(
                arrays={**batch.arrays, "decoder_input_ids": ids[: len(batch.arrays["input_ids"])]}, steps=True
            )
            for ids in [texts.first_tokens(model.decoder.config, tokenizer, seed)]
            for batch in image_texts.batches(model, processor, pictures, seed)
        ]
    if not model.parts:
        return examples(model, tokenizer, processor, seed)
    if isinstance(model, MaskGenerator):
        rows = 1 if max(model.config.image) >= images.LARGE_IMAGE else 3
        whole, alone = examples(model, tokenizer, processor, seed, rows)
        points = {name: x for name, x in alone.arrays.items() if name not in ("input_boxes", "input_masks")}
        return [whole, alone._replace(name="points alone", arrays=points)]
    # A model of several parts: arguments for each, and for a decoder tokens to go on from.
    parts = {name: getattr(model, name) for name in model.parts}
    decoder, found = parts.pop("decoder", None), []
    for part in parts.values():
        own = _batches(part, tokenizer, processor, pictures, seed)[:2]
        # Large images come one at a time, in one batch alone.
        found = [_merge(a, b) for a, b in zip(found, own, strict=False)] if found else own
    if decoder is None:
        return [_in_pairs(batch) for batch in found] if getattr(model, "in_pairs", False) else found
    ids = texts.first_tokens(decoder.config, tokenizer, seed)
    found = [texts.first_rows(batch, len(ids)) for batch in found]
    given = [ids[: len(next(iter(batch.arrays.values())))] for batch in found]
    steps = model.step_decoder is not None
    return [
        batch._replace(arrays={**batch.arrays, "decoder_input_ids": rows}, steps=steps)
        for batch, rows in zip(found, given, strict=True)
    ]


def examples(
    model: Any, tokenizer: Tokenizer | None, processor: ImageProcessor | None, seed: int, rows: int = 3
) -> list[Batch]:
    """The arguments that a kind of input makes by itself: several rows, and one.

    Tokens and pixels among them are those of the checkpoint's tokenizer and processor, where it has them.
    """
    if isinstance(model, TextModel):
        found = [batch for batch in texts.batches(model, tokenizer, seed) if batch.name.endswith(("padded", "alone"))]
    else:
        found = [Batch("random", {}), Batch("random, alone", {})]
    out = []
    for i, batch in enumerate(found):
        ids = batch.arrays.get("input_ids")
        shape = (rows if i == 0 else 1, 7) if ids is None else ids.shape
        arrays = {**model.example(seed + i, rows=shape[0], length=shape[1]), **batch.arrays}
        if processor is not None and "pixel_values" in arrays:
            drawn = [draw(*images.SIZES[j % len(images.SIZES)], seed=seed + j) for j in range(shape[0])]
            arrays["pixel_values"], batch = processor(drawn).pixel_values, batch._replace(images=drawn)
        out.append(batch._replace(arrays=arrays))
    return out


def _in_pairs(batch: Batch) -> Batch:
    """As many texts as images."""
    count = min(map(len, batch.arrays.values()))
    return texts.first_rows(batch, count)._replace(images=batch.images[:count])


def _merge(a: Batch, b: Batch) -> Batch:
    """One batch with the arguments of two."""
    mask = b.mask if a.mask is None else a.mask
    arrays = {**a.arrays, **b.arrays}
    return a._replace(arrays=arrays, texts=a.texts or b.texts, images=a.images or b.images, mask=mask)
