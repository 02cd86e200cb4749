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
from zoo.text.tokenizer import Tokenizer

from .cases import TEXTS, Batch
from .images import lines, random_pixels
from .written import Written

if TYPE_CHECKING:
    from .reference import Reference

SIZES = ((40, 400), (64, 256), (20, 130))  # height and width of lines of text
GIVEN, NEW = 12, 20  # tokens that are given, and that are written


def batches(config: Any, processor: ImageProcessor | None, tokenizer: Tokenizer | None, seed: int) -> list[Batch]:
    """Images with tokens to go on from, as many in each row."""
    ids = _ids(config.decoder.vocab_size, tokenizer, seed)
    ids[:, 0] = config.decoder.decoder_start_token_id or 0
    if processor is None:
        pixels = [batch.arrays["pixel_values"] for batch in random_pixels(config.encoder, seed)]
        given = zip(("random pixels", "alone"), pixels, strict=True)
        return [Batch(name, {"pixel_values": x, "decoder_input_ids": ids[: len(x)]}) for name, x in given]
    given = lines(SIZES, processor, seed)
    return [
        Batch("lines", {"pixel_values": processor(given).pixel_values, "decoder_input_ids": ids}, images=given),
        Batch(
            "alone",
            {"pixel_values": processor(given[1]).pixel_values, "decoder_input_ids": ids[:1]},
            images=given[1:2],
        ),
    ]


def batches_of_decoder(config: Any, tokenizer: Tokenizer | None, seed: int) -> list[Batch]:
    """Of a decoder alone tokens, and states to look at."""
    ids, texts = _ids(config.vocab_size, tokenizer, seed), () if tokenizer is None else TEXTS[:3]
    rng, mask = np.random.default_rng(seed), np.arange(GIVEN) < [[GIVEN], [5], [8]]
    given = {"input_ids": np.where(mask, ids, config.pad_token_id or 0), "attention_mask": mask}
    seen = np.arange(11) < [[11], [5], [8]]
    states = {"encoder_hidden_states": rng.standard_normal((3, 11, config.cross_size), np.float32)}
    return [
        Batch("states", {**given, **states, "encoder_attention_mask": seen}, mask, texts),
        Batch("no states", {"input_ids": ids}, np.ones_like(mask), texts),
    ]


def _ids(vocab_size: int, tokenizer: Tokenizer | None, seed: int) -> np.ndarray:
    """The first tokens of three texts (3, GIVEN), and random ones where the tokenizer makes fewer of them."""
    ids = np.random.default_rng(seed).integers(min(5, vocab_size - 1), vocab_size, (3, GIVEN))
    rows = [] if tokenizer is None else tokenizer.encode_batch(list(TEXTS[:3]), truncation=False).rows
    for i, row in enumerate(rows):
        some = row.ids[:GIVEN]
        ids[i, : len(some)] = some
    return ids


def cached_logits(model: Any, arrays: dict[str, Any]) -> np.ndarray:
    """The logits of the given tokens (B, T, V), two in the first call and the others one by one."""
    ids, states = arrays["decoder_input_ids"], _encoded(model, arrays["pixel_values"])
    cache = model.new_cache(len(ids), ids.shape[1])
    first = model.decoder(ids[:, :2], encoder_hidden_states=states, cache=cache)
    rest = [model.next_logits(ids[:, t : t + 1], None, cache)[:, None] for t in range(2, ids.shape[1])]
    return np.concatenate([ops.to_numpy(part) for part in (first, *rest)], 1)


def written(model: Any, inputs: Sequence[Batch], tokenizer: Tokenizer | None) -> list[Written]:
    """What zoo writes of each batch of images, in each way.

    Random models seldom end a text: what the first row writes in the middle is one more end, and rows leave the batch.
    """
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
    model: Any, tokenizer: Tokenizer | None, batch: Batch, states: Any, search: str, beams: int, ends: tuple[int, ...]
) -> Written:
    start = np.full((len(states), 1), model.config.decoder.decoder_start_token_id)
    config = GenerationConfig(max_new_tokens=NEW, num_beams=beams, eos_token_id=ends)
    rows = [found[0].ids.tolist() for found in generate(model, start, config, encoder_hidden_states=states)]
    texts = [] if tokenizer is None else [tokenizer.decode(row) for row in rows]
    return Written(batch.name, search, beams, ends, rows, texts)


def written_by_reference(reference: Reference, ours: Sequence[Written], inputs: Sequence[Batch]) -> list[Written]:
    """The same of the reference, with the same tokens for ends."""
    pixels = {batch.name: batch.arrays["pixel_values"] for batch in inputs}
    out = []
    for one in ours:
        options = {"max_new_tokens": NEW, "num_beams": one.beams, "eos_token_id": list(one.ends)}
        rows = reference.generate(pixels[one.batch], **options)
        out.append(one._replace(ids=rows, texts=reference.texts(rows) if one.texts else []))
    return out
