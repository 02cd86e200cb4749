"""Prompts of random words and images for a small model that reads both, and what it answers."""

from __future__ import annotations

from typing import Any

import numpy as np

from zoo.generate import GenerationConfig, generate

EIGHT = GenerationConfig(max_new_tokens=8)


def tiles(model: Any, count: int, seed: int) -> np.ndarray:
    shape = count, *model.config.image, model.config.num_channels
    return np.random.default_rng(seed).standard_normal(shape, np.float32) * 3


def ids_around(model: Any, count: int, words: int = 9, seed: int = 0, between: int = 0) -> np.ndarray:
    """Words, the places of so many tiles with `between` words before each, and words."""
    rng, place = np.random.default_rng(seed), model.config.image_token_id
    each = model.image_length(model.config.vision_config.grid)
    before, after = rng.integers(3, place, (2, words))
    inner = [part for _ in range(count) for part in (rng.integers(3, place, between), np.full(each, place))]
    return np.concatenate([before, *inner, after])


def prompt_of(model: Any, count: int, seed: int, between: int = 0) -> Any:
    """The same words for every seed, and other images."""
    return model.prompt(ids_around(model, count, between=between), [tiles(model, count, seed)])


def answer(model: Any, prompt: Any, config: GenerationConfig = EIGHT) -> list[int]:
    return generate(model, [prompt], config)[0][0].ids.tolist()
