"""Prompts that begin like earlier rows: what is computed of them, what they get, and the memory of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import zoo
from zoo.generate import ContinuousBatch, GenerationConfig, Request, generate
from zoo.generate.prefixes import BLOCK, Prefixes
from zoo.models.llama3 import LlamaConfig, LlamaForCausalLM
from zoo.models.mistral import MistralConfig

SIZES = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
SIZES |= {"vocab_size": 60, "num_key_value_heads": 2, "max_position_embeddings": 400}
FEW = GenerationConfig(max_new_tokens=6)


class Counted:
    """A decoder that counts the tokens it computes."""

    def __init__(self, model: Any):
        self._model, self.count = model, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def next_logits(self, input_ids: Any, *args: Any, **options: Any) -> Any:
        self.count += np.asarray(input_ids).size
        return self._model.next_logits(input_ids, *args, **options)


@pytest.fixture(scope="module")
def llama() -> Any:
    return LlamaForCausalLM.from_config(LlamaConfig.from_dict({**SIZES, "initializer_range": 0.5}))


def tokens(size: int, seed: int = 0) -> list[int]:
    return np.random.default_rng(seed).integers(0, 60, size).tolist()


def counting(model: Any) -> Any:
    return Counted(model)


def computed(batch: ContinuousBatch, model: Counted, prompt: list[int], owner: str = "") -> tuple[list[int], int]:
    """The tokens that follow a prompt, and the number of tokens of the prompt that were computed."""
    before, request = model.count, Request(prompt, FEW, owner=owner)
    batch.add(request)
    while batch.rows or batch.waiting:
        assert not any(step.error for step in batch.step())
    return request.generated_ids, model.count - before - (request.new - 1)


def alone(model: Any, prompt: list[int]) -> list[int]:
    return generate(model, [prompt], FEW)[0][0].ids.tolist()


def windowed(window: int) -> Any:
    config = {**SIZES, "sliding_window": window, "initializer_range": 0.5}
    return LlamaForCausalLM.from_config(MistralConfig.from_dict(config))


@pytest.mark.parametrize("window", [None, 24])
def test_of_a_second_prompt_only_its_own_end_is_computed(llama, window):
    model = llama if window is None else windowed(window)
    counted = counting(model)
    batch, system = ContinuousBatch(counted), tokens(200)
    first, second = [*system, 1, 2, 3], [*system, 4, 5]
    assert computed(batch, counted, first) == (alone(model, first), 203)
    known = 200 // BLOCK * BLOCK
    assert computed(batch, counted, second) == (alone(model, second), 202 - known)
    turn = [*first, *alone(model, first), *tokens(20, 1)]
    known = (len(first) + 5) // BLOCK * BLOCK  # the last token of an answer is never computed
    assert computed(batch, counted, turn) == (alone(model, turn), len(turn) - known)
    assert computed(batch, counted, tokens(40, 2))[1] == 40
    assert (batch.reused, batch.prompt_tokens) == (192 + known, 203 + 202 + len(turn) + 40)


def test_memory_is_bounded_and_the_least_recently_used_end_goes_first(llama):
    counted, block = counting(llama), 2 * 2 * BLOCK * 2 * 8 * 4
    batch = ContinuousBatch(counted, kept=10 * block)
    a, b = tokens(4 * BLOCK), tokens(4 * BLOCK, 1)
    for prompt in (a, b, [*a[: 3 * BLOCK], *b]):  # 4 blocks, 4 blocks, and 4 that follow 3 of the first
        assert computed(batch, counted, prompt)[0] == alone(llama, prompt)
        assert batch.prefixes.bytes <= 10 * block
    assert batch.prefixes.bytes == 10 * block
    assert computed(batch, counted, [*a[: 3 * BLOCK], *b])[1] == BLOCK  # its last token is computed in any case
    assert computed(batch, counted, [*b, 1])[1] == BLOCK + 1  # its end went, not its beginning
    long = tokens(20 * BLOCK, 3)
    assert computed(batch, counted, long) == (alone(llama, long), 20 * BLOCK)
    assert computed(batch, counted, long) == (alone(llama, long), 10 * BLOCK)
    batch.close()
    assert computed(batch, counted, long)[1] == 20 * BLOCK


@pytest.mark.parametrize("window", [None, 24])
def test_an_owners_prompts_are_computed_from_none_of_another(llama, window):
    """The time of an answer would tell whether its prompt was asked before, by whomever."""
    model = llama if window is None else windowed(window)
    counted = counting(model)
    batch, prompt = ContinuousBatch(counted), tokens(100)
    following = alone(model, prompt)
    answer = [*prompt, *following, 7]
    for owner in ("", "a", "b"):
        assert computed(batch, counted, prompt, owner) == (following, 100)
        assert computed(batch, counted, prompt[:48], owner)[1] == 16
        assert computed(batch, counted, answer, owner)[1] == len(answer) - 96
    assert batch.reused == 3 * (32 + 96)


def test_nothing_is_kept_without_memory_or_where_lengths_matter(llama):
    every: list[dict[str, Any]] = [{"kept": 0}, {"kept": 100}, {"alone": True}]
    for options in every:
        counted = counting(llama)
        batch = ContinuousBatch(counted, **options)
        prompt = tokens(100)
        assert [computed(batch, counted, prompt)[1] for _ in range(2)] == [100, 100]
        assert batch.prefixes.bytes == 0


def test_random_rows_keep_their_own_numbers(llama):
    """Whatever is kept and forgotten: what a row begins with are the keys and values of its own tokens."""
    rng, kept = np.random.default_rng(0), Prefixes(6 * 2 * 2 * BLOCK * 2 * 8 * 4)
    stems = [rng.integers(0, 60, 70) for _ in range(3)]
    found = 0
    for _ in range(60):
        stem = stems[rng.integers(3)][: rng.integers(1, 70)]
        ids = np.append(stem, rng.integers(0, 60, rng.integers(1, 40)))
        cache = llama.new_cache(1, len(ids))
        found += (count := kept.match(ids[:-1], cache))
        llama.next_logits(ids[None, count:], None, cache)
        own = llama.new_cache(1, len(ids))
        llama.next_logits(ids[None], None, own)
        for x, y in zip((*cache.keys, *cache.values), (*own.keys, *own.values), strict=True):
            np.testing.assert_allclose(x, y, atol=1e-5)
        kept.insert(ids, cache)
    assert found > 500


@pytest.mark.parametrize(("device", "package"), [("onnx", "onnxruntime"), ("torch:cpu", "torch")])
def test_on_other_engines(device, package):
    pytest.importorskip(package, reason=f"needs {package}")
    llm: Any = zoo.load("stories260k", device=device)
    counted = counting(llm.runner.decoder(llm.model))
    batch, text = ContinuousBatch(counted), "Once upon a time, there was a little girl named Lily. She loved to play"
    prompts = [llm.prompt_ids(f"{text} {end}") for end in ("outside", "with her")]
    whole = computed(batch, counted, prompts[0])
    assert whole == (alone(counted, prompts[0]), len(prompts[0]))
    found, count = computed(batch, counted, prompts[1])
    assert found == alone(counted, prompts[1])
    assert count <= len(prompts[1]) - BLOCK
