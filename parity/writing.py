"""The texts that both sides write by themselves, token after token, and logits in steps with a cache."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from zoo import ops
from zoo.generate import GenerationConfig, generate
from zoo.inputs.audio import AudioModel
from zoo.inputs.encoder_decoder import EncoderDecoder
from zoo.inputs.heads import CausalLM
from zoo.inputs.image_text import ImageTextCausalLM
from zoo.registry import FAMILIES
from zoo.text.tokenizer import Tokenizer

from .choices import compare_ids
from .compare import Rule, Stage
from .texts import Batch

if TYPE_CHECKING:
    from .reference import Reference

NEW, NEW_OF_ENCODED = 64, 20  # tokens that are written, after a text and of what an encoder has read
ROWS = 4  # texts that are continued
END = 3  # the token that ends a text, if no tokenizer names one
SEARCHES = (("greedy, ends", 1), ("4 beams", 4), ("10 beams", 10))  # after "greedy", with one end more


class Written(NamedTuple):
    """The new tokens of each row of a batch, up to and with the first that ends a text.

    ends: the tokens that end one.  texts: the tokens decoded, if the checkpoint has a tokenizer.
    """

    batch: str
    search: str
    beams: int
    ends: tuple[int, ...]
    new: int  # tokens at the most
    prompts: Any  # each row's
    ids: list[list[int]]
    texts: list[str]


def has_encoder(model: Any) -> bool:
    """True if a model has an encoder, and a decoder that attends to its hidden states."""
    return isinstance(model, EncoderDecoder)


def continues(model: Any) -> bool:
    """True if a model continues a text.  Not for families that have encoders as well: transformers counts positions of
    theirs otherwise when it generates.
    """
    return isinstance(model, CausalLM) and FAMILIES[model.config.model_type].is_decoder


def write_texts(model: Any, inputs: Sequence[Batch], tokenizer: Tokenizer | None) -> list[Written]:
    """The texts that zoo writes: for every batch of an encoder in several ways, after the first texts greedily."""
    if isinstance(model, ImageTextCausalLM):
        return [_write_after_images(model, batch, tokenizer) for batch in inputs]
    if not has_encoder(model):
        return _continue_texts(model, inputs[0], tokenizer)
    if isinstance(model.encoder, AudioModel):  # whose `generate` in transformers is one of its own
        return []
    out: list[Written] = []
    config = getattr(model.config, "decoder", model.config)
    for batch in inputs:
        context = model.context(**_encoder_arguments(batch.arrays))
        start = np.full((len(context["encoder_hidden_states"]), 1), config.decoder_start_token_id)
        write = partial(_write, model, tokenizer, batch.name, start, NEW_OF_ENCODED, context)
        out.append(write("greedy", 1, (config.eos_token_id,)))
        first = out[-1].ids[0]
        # Random models seldom end a text: with a token from the middle of the first row for one more end, rows do.
        ends = (config.eos_token_id, first[len(first) // 2])
        out += [write(search, beams, ends) for search, beams in SEARCHES]
    return out


def _continue_texts(model: Any, batch: Batch, tokenizer: Tokenizer | None) -> list[Written]:
    if not continues(model):
        return []
    end = END if tokenizer is None or tokenizer.eos_token_id is None else tokenizer.eos_token_id
    most = max(model.max_positions - NEW, model.max_positions // 2)  # tokens of a prompt, for new ones need positions
    assert batch.mask is not None
    rows = zip(batch.arrays["input_ids"][:ROWS], batch.mask, strict=False)
    prompts = [ids[mask][:most] for ids, mask in rows]
    new = min(NEW, model.max_positions - max(map(len, prompts)))
    return [_write(model, tokenizer, batch.name, prompts, new, {}, "greedy", 1, (end,))]


def _write_after_images(model: ImageTextCausalLM, batch: Batch, tokenizer: Tokenizer | None) -> Written:
    """What follows texts with images in them, which are one batch of zoo's."""
    assert batch.mask is not None
    rows, left = [ids[mask] for ids, mask in zip(batch.arrays["input_ids"], batch.mask, strict=True)], 0
    prompts: list[Any] = []
    for ids in rows:
        tiles = batch.arrays.get("pixel_values", np.empty(0))[left:]
        each = 0 if not len(tiles) else model.image_length(model.vision_model.grid(tiles))
        count = int((ids == model.config.image_token_id).sum()) // each if each else 0
        prompts.append(model.prompt(ids, [tiles[:count]]) if count else ids)
        left += count
    written = _write(model, tokenizer, batch.name, prompts, NEW_OF_ENCODED, {}, "greedy", 1, (END,))
    return written._replace(prompts=rows)


def _write(
    model: Any,
    tokenizer: Tokenizer | None,
    batch: str,
    prompts: Any,
    new: int,
    context: dict[str, Any],
    search: str,
    beams: int,
    ends: tuple[int, ...],
) -> Written:
    config = GenerationConfig(max_new_tokens=new, num_beams=beams, eos_token_id=ends)
    # A batch has the positions of its longest text; transformers writes each text alone.
    batches = [[prompt] for prompt in prompts] if model.depends_on_length else [prompts]
    rows = [found[0].ids.tolist() for some in batches for found in generate(model, some, config, **context)]
    texts = [] if tokenizer is None else [tokenizer.decode(row) for row in rows]
    return Written(batch, search, beams, ends, new, prompts, rows, texts)


def written_by_reference(reference: Reference, ours: Sequence[Written], inputs: Sequence[Batch]) -> list[Written]:
    """The same of the reference, with the same tokens for ends."""
    arrays = {batch.name: batch.arrays for batch in inputs}
    out = []
    for one in ours:
        options = {"max_new_tokens": one.new, "num_beams": one.beams, "eos_token_id": list(one.ends)}
        if "decoder_input_ids" in arrays[one.batch]:
            rows = reference.generate(_encoder_arguments(arrays[one.batch]), **options)
        elif "pixel_values" in arrays[one.batch] and "input_ids" in arrays[one.batch]:
            rows = reference.generate(_with_padding_before(arrays[one.batch]), **options)
        else:
            rows = [reference.generate({"input_ids": ids[None]}, **options)[0] for ids in one.prompts]
        out.append(one._replace(ids=rows, texts=reference.texts(rows) if one.texts else []))
    return out


def _with_padding_before(arrays: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments with the padding of texts before them, where transformers continues rows."""
    found, lengths = dict(arrays), arrays["attention_mask"].sum(1)
    for name in found.keys() & {"input_ids", "attention_mask", "token_type_ids"}:
        found[name] = np.stack([np.roll(row, len(row) - n) for row, n in zip(arrays[name], lengths, strict=True)])
    return found


def cached_logits(model: Any, arrays: Mapping[str, Any], by_graph: bool) -> np.ndarray:
    """The logits of the given tokens (B, T, V) with a cache: the first half in one call, the others one by one.

    by_graph: one by one from the first, since graphs with a cache give only the logits of the last token.
    """
    decoder, given = model, dict(arrays)
    if "decoder_input_ids" in given:
        context, ids = model.context(**_encoder_arguments(given)), given["decoder_input_ids"]
        decoder, given = model.decoder, {"input_ids": ids, **context}
    ids = given.pop("input_ids")
    half, cache = 1 if by_graph else ids.shape[1] // 2, decoder.new_cache(*ids.shape)
    if by_graph:
        parts = [model.next_logits(ids[:, :1], None, cache, **given)[:, None]]
    else:
        parts = [decoder(ids[:, :half], cache=cache, **given)]
    parts += [model.next_logits(ids[:, t : t + 1], None, cache)[:, None] for t in range(half, ids.shape[1])]
    return np.concatenate([ops.to_numpy(part) for part in parts], 1)


def _encoder_arguments(arrays: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of the encoder."""
    return {name: array for name, array in arrays.items() if not name.startswith("decoder_")}


def compare_written(
    ours: Sequence[Written], wanted: Sequence[Written], rule: Rule, own: Sequence[Written] = ()
) -> list[Stage]:
    """The last stages: for each way to search the ids, and the texts if there are some.

    own: in low precision the texts of the reference itself.
    """
    stages = []
    for search in dict.fromkeys(one.search for one in ours):
        mine, its = ([(a, b) for a, b in zip(some, wanted, strict=False) if a.search == search] for some in (ours, own))
        ids = [[(a.batch, a.ids, b.ids) for a, b in pairs] for pairs in (mine, its)]
        stages.append(compare_ids(ids[0], f"written, {search}", rule, ids[1]))
        if any(a.texts for a, _ in mine):
            texts = [[(a.batch, _letters(a.texts), _letters(b.texts)) for a, b in pairs] for pairs in (mine, its)]
            stages.append(compare_ids(texts[0], f"text, {search}", rule, texts[1]))
    return stages


def _letters(texts: Sequence[str]) -> list[list[int]]:
    return [[ord(letter) for letter in text] for text in texts]
