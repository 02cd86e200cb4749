"""Llama: tokens to go on from, and what both sides write after them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from zoo import ops
from zoo.generate import GenerationConfig, generate

from .cases import LONGEST, Batch
from .written import Written

if TYPE_CHECKING:
    from .reference import Reference

LENGTHS = (37, 5, 20, 12)  # of the rows of a batch
NEW, END = 64, 3  # tokens that are written, and the one that ends a text


def batches(config: Any, seed: int) -> list[Batch]:
    """Random tokens, since random weights know no text: padded on either side, alone, filling many positions."""
    rng = np.random.default_rng(seed)
    pad, most = config.pad_token_id or 0, max(LENGTHS)
    found = []
    for name, mask in (
        ("padded", np.arange(most) < np.array(LENGTHS)[:, None]),
        ("left-padded", np.arange(most) >= most - np.array(LENGTHS)[:, None]),
    ):
        ids = np.where(mask, rng.integers(5, config.vocab_size, mask.shape), pad)
        found.append(Batch(name, {"input_ids": ids, "attention_mask": mask.astype(np.int64)}, mask))
    for name, length in (("alone", 60), ("longest", min(config.most_tokens, LONGEST))):
        ids = rng.integers(5, config.vocab_size, (1, length))
        found.append(Batch(name, {"input_ids": ids}, np.ones_like(ids, bool)))
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


def written(model: Any, inputs: Sequence[Batch]) -> list[Written]:
    """What zoo writes after each of the first batch's rows, all at once: the token of the largest logit, each time."""
    if type(model).__name__ != "LlamaForCausalLM":
        return []
    config = GenerationConfig(max_new_tokens=NEW, eos_token_id=(END,))
    rows = [found[0].ids.tolist() for found in generate(model, _prompts(inputs[0]), config)]
    return [Written(inputs[0].name, "greedy", 1, (END,), rows, [])]


def written_by_reference(reference: Reference, ours: Sequence[Written], inputs: Sequence[Batch]) -> list[Written]:
    """The same of the reference, one row after the other."""
    options = {"max_new_tokens": NEW, "eos_token_id": [END]}
    return [one._replace(ids=[reference.continued(row, **options) for row in _prompts(inputs[0])]) for one in ours]


def _prompts(batch: Batch) -> list[np.ndarray]:
    assert batch.mask is not None
    return [ids[mask] for ids, mask in zip(batch.arrays["input_ids"], batch.mask, strict=True)]
