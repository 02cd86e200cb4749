"""Decoders alone, such as Llama: texts and tokens to go on from, and what both sides write after them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from zoo import ops
from zoo.generate import GenerationConfig, generate
from zoo.registry import FAMILIES
from zoo.text.tokenizer import Tokenizer

from .cases import LONGEST, TEXTS, Batch, random_batches
from .written import Written

if TYPE_CHECKING:
    from .reference import Reference

NEW, END = 64, 3  # tokens that are written, and the one that ends a text where no tokenizer names one
ROWS = 4  # of the first batch, that are gone on from


def writes_alone(model_type: str) -> bool:
    """Whether a family is one of decoders alone, trained to go on from a text."""
    family = FAMILIES[model_type]
    return not family.reads_images and bool(family.heads_for("generate")) and not family.heads_for("fill-mask")


def batches(config: Any, architecture: str, tokenizer: Tokenizer | None, seed: int) -> list[Batch]:
    """The texts as the checkpoint's tokenizer sees them, padded on either side, where it has one; and for every
    checkpoint random tokens: padded on either side, alone, filling many positions.
    """
    limit = getattr(config, "max_positions", LONGEST)
    pad = config.pad_token_id or 0
    found = [] if tokenizer is None else _of_texts(tokenizer, min(limit, LONGEST) - NEW, pad)
    return found + random_batches(config, architecture, limit, seed)


def _of_texts(tokenizer: Tokenizer, limit: int, pad: int) -> list[Batch]:
    """Two batches of the same texts, cut to `limit` tokens: what is written after them needs positions too."""
    encoded = zip(TEXTS, tokenizer.encode_batch(list(TEXTS), max_length=limit).rows, strict=True)
    rows = {text: row.ids for text, row in encoded if len(row.ids)}
    if not rows:  # a vocabulary that has nothing of them
        return []
    lengths = np.array([len(ids) for ids in rows.values()])[:, None]
    most, found = int(lengths.max()), []
    for name, mask in (
        ("texts", np.arange(most) < lengths),
        ("texts, left-padded", np.arange(most) >= most - lengths),
    ):
        ids = np.full(mask.shape, pad)
        ids[mask] = np.concatenate(list(rows.values()))
        found.append(Batch(name, {"input_ids": ids, "attention_mask": mask.astype(np.int64)}, mask, list(rows)))
    return found


def cached_logits(model: Any, arrays: dict[str, Any]) -> np.ndarray:
    """The logits of the given tokens (B, T, V), in two steps with a cache."""
    ids = arrays["input_ids"]
    middle, cache = ids.shape[1] // 2, model.new_cache(*ids.shape)
    steps = [model(ids[:, :middle], cache=cache), model(ids[:, middle:], cache=cache)]
    return np.concatenate([ops.to_numpy(step) for step in steps], 1)


def has_steps(architecture: str, batch: Batch) -> bool:
    """Whether the logits in two steps are one of the stages."""
    # Not of a long text: with dynamic scaling what is in a cache was turned for a shorter one, in transformers too.
    return architecture.endswith("ForCausalLM") and batch.name.endswith("alone")


def written(model: Any, inputs: Sequence[Batch], tokenizer: Tokenizer | None) -> list[Written]:
    """What zoo writes after the first batch's rows, all at once: the token of the largest logit, each time."""
    if not type(model).__name__.endswith("ForCausalLM"):
        return []
    end = END if tokenizer is None or tokenizer.eos_token_id is None else tokenizer.eos_token_id
    prompts = _prompts(inputs[0])
    room = model.max_positions - max(map(len, prompts))
    if room < 1:
        return []
    config = GenerationConfig(max_new_tokens=min(NEW, room), eos_token_id=(end,))
    rows = [found[0].ids.tolist() for found in generate(model, prompts, config)]
    texts = [] if tokenizer is None else [tokenizer.decode(row) for row in rows]
    return [Written(inputs[0].name, "greedy", 1, (end,), rows, texts)]


def written_by_reference(reference: Reference, ours: Sequence[Written], inputs: Sequence[Batch]) -> list[Written]:
    """The same of the reference, one row after the other."""
    out = []
    for one in ours:
        options = {"max_new_tokens": max(map(len, one.ids)), "eos_token_id": list(one.ends)}
        rows = [reference.continued(row, **options) for row in _prompts(inputs[0])]
        out.append(one._replace(ids=rows, texts=reference.texts(rows) if one.texts else []))
    return out


def _prompts(batch: Batch) -> list[np.ndarray]:
    assert batch.mask is not None
    return [ids[mask] for ids, mask in zip(batch.arrays["input_ids"][:ROWS], batch.mask, strict=False)]
