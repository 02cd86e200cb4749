"""Llama: tokens to go on from, and what both sides write after them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from zoo import ops
from zoo.generate import GenerationConfig, generate

from .cases import LONGEST, Batch
from .compare import Stage, compare_ids

if TYPE_CHECKING:
    from .reference import Reference

LENGTHS = (37, 5, 20, 12)  # of the rows of a batch
NEW = 64  # tokens that are written


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


def written(model: Any, inputs: Sequence[Batch]) -> list[list[int]]:
    """What zoo writes after each of the first batch's rows, all at once: the token of the largest logit, each time."""
    if type(model).__name__ != "LlamaForCausalLM":
        return []
    config = GenerationConfig(max_new_tokens=NEW, eos_token_id=(3,))
    return [found[0].ids.tolist() for found in generate(model, _prompts(inputs[0]), config)]


def compare_written(ours: list[list[int]], reference: Reference, inputs: Sequence[Batch]) -> list[Stage]:
    """The last stage: the ids, of the reference one row after the other."""
    if not ours:
        return []
    theirs = [reference.continued(prompt, max_new_tokens=NEW, eos_token_id=[3]) for prompt in _prompts(inputs[0])]
    return [replace(compare_ids([(inputs[0].name, ours, theirs)]), name="written, greedy")]


def _prompts(batch: Batch) -> list[np.ndarray]:
    assert batch.mask is not None
    return [ids[mask] for ids, mask in zip(batch.arrays["input_ids"], batch.mask, strict=True)]
