"""The inputs of both models: texts, images, or random numbers, in batches.

The kind of a model's class says which: `TextModel`, `ImageModel`, or a model that has several of these for its parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from zoo.images import ImageProcessor
from zoo.inputs import ImageModel, TextModel
from zoo.inputs.encoder_decoder import EncoderDecoder
from zoo.inputs.sounds import SoundModel
from zoo.registry import FAMILIES
from zoo.text.tokenizer import Tokenizer

from . import images, texts
from .specs import spec_class
from .texts import Batch

TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.txt", "vocab.json", "sentencepiece.bpe.model", "spiece.model")
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
    tokenizer = Tokenizer.from_folder(folder) if family.reads_texts and _has_any(folder, TOKENIZERS) else None
    processor = ImageProcessor.from_folder(folder) if family.reads_images and _has_any(folder, PROCESSORS) else None
    spec = spec_class(model.config.model_type)
    pictures = [] if processor is None else spec.pictures(model.config, processor, seed)
    return Given(_batches(model, tokenizer, processor, pictures, seed), tokenizer)


def _has_any(folder: Path, names: Sequence[str]) -> bool:
    return any((folder / name).is_file() for name in names)


def _batches(
    model: Any, tokenizer: Tokenizer | None, processor: ImageProcessor | None, pictures: Sequence[Any], seed: int
) -> list[Batch]:
    if isinstance(model, TextModel):
        return texts.batches(model, tokenizer, seed)
    if isinstance(model, ImageModel):
        return images.batches(model, processor, pictures, seed)
    if isinstance(model, SoundModel):
        return sounds(model.config, seed)
    # A model of several parts: arguments for each, and for a decoder tokens to go on from.
    parts = {name: part for name, part in vars(model).items() if isinstance(part, (TextModel, ImageModel, SoundModel))}
    decoder, found = parts.pop("decoder", None), []
    for part in parts.values():
        own = _batches(part, tokenizer, processor, pictures, seed)[:2]
        found = [_joined(a, b) for a, b in zip(found, own, strict=True)] if found else own
    if decoder is None:
        return found
    ids = texts.first_tokens(decoder.config, tokenizer, seed)
    found = [texts.first_rows(batch, len(ids)) for batch in found]
    given = [ids[: len(next(iter(batch.arrays.values())))] for batch in found]
    return [
        batch._replace(arrays={**batch.arrays, "decoder_input_ids": rows}, steps=isinstance(model, EncoderDecoder))
        for batch, rows in zip(found, given, strict=True)
    ]


def sounds(config: Any, seed: int) -> list[Batch]:
    """Spectrograms of noise in the range of real ones, and a single one."""
    shape = (3, config.num_mel_bins, config.frames)
    x = np.random.default_rng(seed).normal(0, 0.4, shape).astype(np.float32)
    return [Batch("random sounds", {"input_features": x}), Batch("alone", {"input_features": x[1:2] / 2})]


def _joined(a: Batch, b: Batch) -> Batch:
    """One batch with the arguments of two."""
    mask = b.mask if a.mask is None else a.mask
    arrays = {**a.arrays, **b.arrays}
    return a._replace(arrays=arrays, texts=a.texts or b.texts, images=a.images or b.images, mask=mask)
