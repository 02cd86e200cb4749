"""TrOCR: what it is given to read and to write, and what both sides write by themselves.

A reader's stages are those of its encoder, of its decoder on given tokens, and the tokens and texts that follow from
images alone, greedily and with beams.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from zoo import ops
from zoo.generate import GenerationConfig, generate
from zoo.images import ImageProcessor
from zoo.models.trocr import TrOCRConfig, TrOCRForCausalLM, VisionEncoderDecoderConfig
from zoo.text.tokenizer import Tokenizer

from .cases import TEXTS, Batch
from .images import draw
from .written import Written

if TYPE_CHECKING:
    from .reference import Reference

SIZES = ((40, 400), (64, 256), (20, 130))  # height and width of lines of text
GIVEN, NEW = 12, 20  # tokens that are given, and that are written


def is_reader(config: Any) -> bool:
    """Whether a model is TrOCR, or its decoder alone."""
    return isinstance(config, VisionEncoderDecoderConfig | TrOCRConfig)


def batches(config: Any, processor: ImageProcessor | None, tokenizer: Tokenizer, seed: int) -> list[Batch]:
    """Images with tokens to go on from, as many in each row; of a decoder alone tokens, and states to look at."""
    ids = np.stack([row.ids[:GIVEN] for row in tokenizer.encode_batch(list(TEXTS[:3]), truncation=False).rows])
    if processor is None:
        rng, mask = np.random.default_rng(seed), np.arange(GIVEN) < [[GIVEN], [5], [8]]
        given = {"input_ids": np.where(mask, ids, config.pad_token_id), "attention_mask": mask}
        seen = np.arange(11) < [[11], [5], [8]]
        states = {"encoder_hidden_states": rng.standard_normal((3, 11, config.cross_size), np.float32)}
        return [
            Batch("states", {**given, **states, "encoder_attention_mask": seen}, mask, TEXTS[:3]),
            Batch("no states", {"input_ids": ids}, np.ones_like(mask), TEXTS[:3]),
        ]
    ids[:, 0] = config.decoder.decoder_start_token_id
    lines = [draw(*size, seed=seed) for size in SIZES]
    return [
        Batch("lines", {"pixel_values": processor(lines).pixel_values, "decoder_input_ids": ids}, images=lines),
        Batch(
            "alone",
            {"pixel_values": processor(lines[1]).pixel_values, "decoder_input_ids": ids[:1]},
            images=lines[1:2],
        ),
    ]


def cached_logits(model: Any, arrays: dict[str, Any]) -> np.ndarray:
    """The logits of the given tokens (B, T, V), two in the first call and the others one by one."""
    ids, states = arrays["decoder_input_ids"], _encoded(model, arrays["pixel_values"])
    cache = model.new_cache(len(ids), ids.shape[1])
    first = model.decoder(ids[:, :2], encoder_hidden_states=states, cache=cache)
    rest = [model.next_logits(ids[:, t : t + 1], None, cache)[:, None] for t in range(2, ids.shape[1])]
    return np.concatenate([ops.to_numpy(part) for part in (first, *rest)], 1)


def written(model: Any, inputs: Sequence[Batch], tokenizer: Tokenizer) -> list[Written]:
    """What zoo writes of each batch of images, in each way.

    Random models seldom end a text: what the first row writes in the middle is one more end, and rows leave the batch.
    """
    if isinstance(model, TrOCRForCausalLM):
        return []
    out: list[Written] = []
    for batch in inputs:
        states = _encoded(model, batch.arrays["pixel_values"])
        write = partial(_write, model, tokenizer, batch, states)
        end = model.config.decoder.eos_token_id
        out.append(write("greedy", 1, (end,)))
        first = out[-1].ids[0]
        ends = (end, first[len(first) // 2])
        out += [write("greedy, ends", 1, ends), write("4 beams", 4, ends), write("10 beams", 10, ends)]
    return out


def _encoded(model: Any, pixel_values: Any) -> Any:
    return model.encode(ops.as_pixels(pixel_values, model.decoder.body.embeddings.word, 3))


def _write(
    model: Any, tokenizer: Tokenizer, batch: Batch, states: Any, search: str, beams: int, ends: tuple[int, ...]
) -> Written:
    start = np.full((len(batch.images), 1), model.config.decoder.decoder_start_token_id)
    config = GenerationConfig(max_new_tokens=NEW, num_beams=beams, eos_token_id=ends)
    rows = [found[0].ids.tolist() for found in generate(model, start, config, encoder_hidden_states=states)]
    return Written(batch.name, search, beams, ends, rows, [tokenizer.decode(row) for row in rows])


def written_by_reference(reference: Reference, ours: Sequence[Written], inputs: Sequence[Batch]) -> list[Written]:
    """The same of the reference, with the same tokens for ends."""
    pixels = {batch.name: batch.arrays["pixel_values"] for batch in inputs if batch.images}
    out = []
    for one in ours:
        options = {"max_new_tokens": NEW, "num_beams": one.beams, "eos_token_id": list(one.ends)}
        rows = reference.generate(pixels[one.batch], **options)
        out.append(one._replace(ids=rows, texts=reference.texts(rows)))
    return out
