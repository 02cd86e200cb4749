"""Sampled text: the tokens that zoo draws, beside those that transformers' probabilities give for the same numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import zoo
from zoo.generate import GenerationConfig
from zoo.generate.sampling import distribution

from .llama_cpp import LlamaCpp
from .outcome import Outcome
from .transformers_side import Transformers

NEW_TOKENS, SEED = 40, 5
MAX_DIFFERENCE = 1e-5  # two probabilities of one token may be that far apart
# Gemma's own, and others.
OPTIONS: tuple[dict[str, Any], ...] = (
    {"temperature": 1.0, "top_k": 64, "top_p": 0.95},
    {"temperature": 0.7, "top_k": 0, "top_p": 0.9},
    {"temperature": 1.5, "top_k": 40, "top_p": 1.0, "min_p": 0.05},
)


def measure_sampling(
    path: Path, source: dict[str, Any], prompts: Sequence[str], beside_llama_cpp: bool = False
) -> Iterator[Outcome]:
    """With each of OPTIONS some tokens after each prompt; random numbers are the generator's of zoo's seed."""
    llm = zoo.load(str(path))
    starts = [llm.prompt_ids(prompt) for prompt in prompts]
    texts: list[tuple[dict[str, Any], list[int], list[int], int]] = []  # options, prompt, new tokens, prompt's number
    apart = 0.0
    for options in OPTIONS:
        found = llm(list(prompts), details=True, do_sample=True, seed=SEED, max_new_tokens=NEW_TOKENS, **options)
        for i, (start, one) in enumerate(zip(starts, found, strict=True)):
            new = [token.token_id for token in one.tokens]
            texts.append((options, start, new, i))
            rows = np.asarray(llm.model(np.array([start + new[:-1]]))[0])[len(start) - 1 :]
            config = GenerationConfig(do_sample=True, **options)
            for row, wanted in zip(rows, probabilities(rows, options), strict=True):
                own = np.zeros(len(row))
                ids, p = distribution(row, config)
                own[ids] = p
                apart = max(apart, float(np.abs(own - wanted).max()))
    del llm  # one model in memory at a time
    label = "largest difference of a token's probability to its warpers', from the same logits"
    yield Outcome(label, apart, {"transformers": 0.0}, limit=MAX_DIFFERENCE)
    sides: dict[str, Any] = {"transformers": lambda: Transformers(source)}
    if beside_llama_cpp:
        sides["llama.cpp"] = lambda: LlamaCpp(path)
    counts: dict[str, float] = {}
    for name, load in sides.items():
        model = load()
        counts[name] = 0
        for options, start, new, i in texts:
            rows = model.all_logits(start + new[:-1])[len(start) - 1 :]
            counts[name] += count_drawn(probabilities(rows, options), new, np.random.default_rng((SEED, i, 0)))
        del model
    tokens = sum(len(new) for _, _, new, _ in texts)
    label = f"sampled tokens that others' probabilities give, {len(prompts)} prompts, {len(OPTIONS)} settings, one seed"
    yield Outcome(label, tokens, counts)


def probabilities(logits: np.ndarray, options: dict[str, Any]) -> np.ndarray:
    """Of each next token after rows of logits (T, V), by transformers' classes for these options."""
    import torch
    from transformers import MinPLogitsWarper, TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

    scores = torch.tensor(logits, dtype=torch.float32)
    ids: Any = None  # which none of them reads
    kinds: list[tuple[str, Any]] = [("temperature", TemperatureLogitsWarper), ("top_k", TopKLogitsWarper)]
    kinds += [("top_p", TopPLogitsWarper), ("min_p", MinPLogitsWarper)]
    for name, kind in kinds:  # in the order of its `generate`, which leaves out what changes nothing
        if options.get(name) not in (None, 0, 1.0):
            scores = kind(options[name])(ids, scores)
    return scores.double().softmax(-1).numpy()


def count_drawn(chances: np.ndarray, tokens: Sequence[int], rng: np.random.Generator) -> int:
    """The tokens at which the sum of the probabilities (T, V) before passes the next random number."""
    return sum(
        int(np.searchsorted(row.cumsum(), rng.random() * row.sum(), side="right")) == token
        for row, token in zip(chances, tokens, strict=True)
    )
