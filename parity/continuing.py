"""Llama: texts and tokens to go on from, and what both sides write after them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from zoo import ops
from zoo.generate import GenerationConfig, generate
from zoo.text.tokenizer import Tokenizer

from .cases import LONGEST, TEXTS, Batch
from .written import Written

if TYPE_CHECKING:
    from .reference import Reference

LENGTHS = (37, 5, 20, 12)  # of the rows of a batch of random tokens
NEW, END = 64, 3  # tokens that are written, and the one that ends a text where no tokenizer names one
ROWS = 4  # of the first batch, that are gone on from
FILES = ("tokenizer.json", "tokenizer.model")  # of which a checkpoint has one, if it has a tokenizer


def tokenizer_of(folder: Path) -> Tokenizer | None:
    """The tokenizer of a Llama checkpoint; None where the folder has none, as that of a random one."""
    return Tokenizer.from_folder(folder) if any((folder / name).is_file() for name in FILES) else None


def batches(config: Any, tokenizer: Tokenizer | None, seed: int) -> list[Batch]:
    """The texts as the checkpoint's tokenizer sees them, padded on either side, where it has one; and for every
    checkpoint random tokens: padded on either side, alone, filling many positions.
    """
    rng = np.random.default_rng(seed)
    pad, most = config.pad_token_id or 0, max(LENGTHS)
    found = [] if tokenizer is None else _of_texts(tokenizer, min(config.max_positions, LONGEST) - NEW, pad)
    for name, mask in (
        ("padded", np.arange(most) < np.array(LENGTHS)[:, None]),
        ("left-padded", np.arange(most) >= most - np.array(LENGTHS)[:, None]),
    ):
        ids = np.where(mask, rng.integers(5, config.vocab_size, mask.shape), pad)
        found.append(Batch(name, {"input_ids": ids, "attention_mask": mask.astype(np.int64)}, mask))
    for name, length in (("alone", 60), ("longest", min(config.max_positions, LONGEST))):
        ids = rng.integers(5, config.vocab_size, (1, length))
        found.append(Batch(name, {"input_ids": ids}, np.ones_like(ids, bool)))
    return found


def _of_texts(tokenizer: Tokenizer, limit: int, pad: int) -> list[Batch]:
    """Two batches of the same texts, cut to `limit` tokens: what is written after them needs positions too."""
    rows = [row.ids for row in tokenizer.encode_batch(list(TEXTS), max_length=limit).rows]
    lengths = np.array([len(row) for row in rows])[:, None]
    most, found = int(lengths.max()), []
    for name, mask in (
        ("texts", np.arange(most) < lengths),
        ("texts, left-padded", np.arange(most) >= most - lengths),
    ):
        ids = np.full(mask.shape, pad)
        ids[mask] = np.concatenate(rows)
        found.append(Batch(name, {"input_ids": ids, "attention_mask": mask.astype(np.int64)}, mask, TEXTS))
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
    return architecture == "LlamaForCausalLM" and batch.name == "alone"


def written(model: Any, inputs: Sequence[Batch], tokenizer: Tokenizer | None) -> list[Written]:
    """What zoo writes after the first batch's rows, all at once: the token of the largest logit, each time."""
    if type(model).__name__ != "LlamaForCausalLM":
        return []
    end = END if tokenizer is None or tokenizer.eos_token_id is None else tokenizer.eos_token_id
    config = GenerationConfig(max_new_tokens=NEW, eos_token_id=(end,))
    rows = [found[0].ids.tolist() for found in generate(model, _prompts(inputs[0]), config)]
    texts = [] if tokenizer is None else [tokenizer.decode(row) for row in rows]
    return [Written(inputs[0].name, "greedy", 1, (end,), rows, texts)]


def written_by_reference(reference: Reference, ours: Sequence[Written], inputs: Sequence[Batch]) -> list[Written]:
    """The same of the reference, one row after the other."""
    out = []
    for one in ours:
        options = {"max_new_tokens": NEW, "eos_token_id": list(one.ends)}
        rows = [reference.continued(row, **options) for row in _prompts(inputs[0])]
        out.append(one._replace(ids=rows, texts=reference.texts(rows) if one.texts else []))
    return out


def _prompts(batch: Batch) -> list[np.ndarray]:
    assert batch.mask is not None
    return [ids[mask] for ids, mask in zip(batch.arrays["input_ids"][:ROWS], batch.mask, strict=False)]
