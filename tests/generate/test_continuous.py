"""Continuous batching: rows that join and leave at any step get the tokens that their prompts get alone."""

from __future__ import annotations

import numpy as np
import pytest

import zoo
from zoo.errors import InputError, ZooError
from zoo.generate import ContinuousBatch, GenerationConfig, Request, generate
from zoo.generate.prefixes import BLOCK
from zoo.models.llama3 import LlamaConfig, LlamaForCausalLM

SIZES = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}


@pytest.fixture(scope="module")
def llama() -> LlamaForCausalLM:
    config = {**SIZES, "vocab_size": 60, "num_key_value_heads": 2, "max_position_embeddings": 400}
    model = LlamaForCausalLM.from_config(LlamaConfig.from_dict({**config, "initializer_range": 0.5}))
    return model


def prompts(count: int, longest: int = 150) -> list[list[int]]:
    rng = np.random.default_rng(0)
    return [rng.integers(0, 60, size).tolist() for size in rng.integers(1, longest, count)]


def alone(model, prompt, config, index: int = 0) -> list[int]:
    many = config.replace(num_return_sequences=index + 1)
    return generate(model, [prompt], many)[0][index].ids.tolist()


def run(batch: ContinuousBatch, arriving: list[tuple[int, Request]]) -> list[list[Request]]:
    """Requests that are added before some steps -> those that got a token in each step."""
    seen, at = [], 0
    while arriving or batch.rows or batch.waiting:
        for one in [one for one in arriving if one[0] <= at]:
            batch.add(one[1])
            arriving.remove(one)
        steps, at = batch.step(), at + 1
        assert not any(step.error for step in steps)
        seen.append([step.request for step in steps])
    return seen


@pytest.mark.parametrize("sampled", [False, True], ids=["greedy", "sampled"])
def test_rows_get_the_tokens_of_their_prompts_alone(llama, sampled):
    options = {"do_sample": True, "seed": 3, "top_k": 20} if sampled else {}
    configs = [GenerationConfig(max_new_tokens=n, **options) for n in (1, 30, 7, 12, 25, 3, 18, 9)]
    requests = [Request(p, c, context=400) for p, c in zip(prompts(len(configs)), configs, strict=True)]
    seen = run(ContinuousBatch(llama, 3), [(4 * i, one) for i, one in enumerate(requests)])
    assert max(len(set(step)) for step in seen) == 3
    for one in requests:
        assert one.generated_ids == alone(llama, one.prompt, one.config)


def test_continuations_are_those_of_generate(llama):
    config = GenerationConfig(max_new_tokens=10, do_sample=True, seed=5)
    prompt = prompts(1)[0]
    requests = [Request(prompt, config, index=i) for i in range(3)]
    batch = ContinuousBatch(llama, 3)
    run(batch, [(0, one) for one in requests])
    assert [one.generated_ids for one in requests] == [alone(llama, prompt, config, i) for i in range(3)]
    assert batch.reused == 2 * ((len(prompt) - 1) // BLOCK * BLOCK) > 0


def test_a_request_among_others_begins_after_its_prompt(llama):
    batch = ContinuousBatch(llama, 8)
    long = [Request(p, GenerationConfig(max_new_tokens=60)) for p in prompts(7, 20)]
    late = Request(list(range(50)) * 6, GenerationConfig(max_new_tokens=2))
    seen = run(batch, [*((0, one) for one in long), (5, late)])
    first = next(i for i, step in enumerate(seen) if late in step)
    assert first == 5 + len(late.prompt) // 128
    assert all(set(long) <= set(step) for step in seen[1 : first + 1])  # nobody waited for it


def test_a_cancelled_row_leaves_before_the_next_step(llama):
    batch = ContinuousBatch(llama, 2)
    requests = [Request(p, GenerationConfig(max_new_tokens=20)) for p in prompts(3)]
    for one in requests:
        batch.add(one)
    while batch.rows < 2:
        batch.step()
    requests[0].cancelled = True
    assert requests[0] not in [step.request for step in batch.step()]
    requests[2].cancelled = True
    assert {step.request for step in batch.step()} == {requests[1]}
    run(batch, [])
    assert requests[1].generated_ids == alone(llama, requests[1].prompt, requests[1].config)
    assert batch.close() == []


def test_an_error_ends_its_row_alone(llama):
    good, bad = (Request(p, GenerationConfig(max_new_tokens=8)) for p in prompts(2, 30))
    choose = bad.choose
    bad.choose = lambda logits: choose(logits * np.nan if bad.new == 3 else logits)  # type: ignore[method-assign]
    batch = ContinuousBatch(llama, 2)
    batch.add(good)
    batch.add(bad)
    steps = []
    while batch.rows or batch.waiting:
        steps += batch.step()
    (error,) = [step for step in steps if step.error]
    assert error.request is bad
    assert bad.new == 3
    assert isinstance(error.error, ZooError)
    assert good.generated_ids == alone(llama, good.prompt, good.config)


def test_the_likeliest_tokens_are_reported(llama):
    request = Request([1, 2, 3], GenerationConfig(max_new_tokens=2), top=4)
    batch = ContinuousBatch(llama)
    batch.add(request)
    step = batch.step()[0]
    assert step.token is not None
    assert step.top[0] == (step.token.id, step.token.logprob)
    assert [p for _, p in step.top] == sorted((p for _, p in step.top), reverse=True)
    assert len(step.top) == 4


def test_what_a_batch_refuses():
    with pytest.raises(InputError, match="num_beams is 2"):
        Request([1], GenerationConfig(num_beams=2))
    with pytest.raises(InputError, match="context is 3"):
        Request([1, 2, 3], GenerationConfig(), context=3)


def test_rows_on_onnx_runtime_are_those_of_prompts_alone():
    pytest.importorskip("onnxruntime", reason="needs onnxruntime")
    llm = zoo.load("stories260k", device="onnx")
    decoder = llm.runner.decoder(llm.model)
    texts = ["Once upon a time", "Tom and Lily went to the", "One day a dog"]
    config = GenerationConfig(max_new_tokens=24)
    requests = [Request(llm.tokenizer(text).input_ids[0], config) for text in texts]
    run(ContinuousBatch(decoder, 3), [(5 * i, one) for i, one in enumerate(requests)])
    for one in requests:
        assert one.generated_ids == alone(decoder, one.prompt, config)
