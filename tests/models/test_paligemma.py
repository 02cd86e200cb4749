"""PaliGemma: all tokens of a prompt attend to each other, in one chunk, and are known only as a whole."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import zoo.generate.continuous
import zoo.inputs.heads
from parity.specs import SPECS, config_of
from tests.image_prompts import EIGHT, answer, ids_around, prompt_of, tiles
from zoo.errors import ConfigError, UnsupportedError
from zoo.generate import ContinuousBatch, PromptCache, Request, generate, stream
from zoo.models.paligemma import PaliGemmaConfig, PaliGemmaForConditionalGeneration

RAW = config_of(SPECS["paligemma-3b-mix-224"], "tiny")
TEXT = {**RAW["text_config"], "initializer_range": 0.3}


@pytest.fixture(scope="module")
def model() -> Any:
    return PaliGemmaForConditionalGeneration.from_config(PaliGemmaConfig.from_dict({**RAW, "text_config": TEXT}))


@pytest.fixture(autouse=True)
def short_chunks(monkeypatch):
    for module in (zoo.inputs.heads, zoo.generate.continuous):
        monkeypatch.setattr(module, "CHUNK", 7)


def test_rows_of_a_batch_are_those_alone(model):
    words = np.random.default_rng(5).integers(3, model.config.image_token_id, 12)  # which attend to those before them
    prompts = [prompt_of(model, 2, 0), words, prompt_of(model, 1, 1)]
    together = [found[0].ids.tolist() for found in generate(model, prompts, EIGHT)]
    assert together == [answer(model, prompt) for prompt in prompts]


def test_an_answer_is_a_suffix_of_type_1(model):
    ids, pixels = ids_around(model, 1), tiles(model, 1, 0)
    types = np.zeros((1, len(ids)), np.int64)
    for token in answer(model, model.prompt(ids, [pixels])):
        assert int(model(ids[None], pixel_values=pixels, token_type_ids=types)[0, -1].argmax()) == token
        ids, types = np.append(ids, token), np.append(types, [[1]], 1)


def test_a_cache_knows_a_prompt_as_a_whole(model):
    known, ids, pixels = PromptCache(model), ids_around(model, 1), tiles(model, 1, 0)
    other = np.append(ids[:-1], (ids[-1] + 1) % model.config.image_token_id)
    for given, length in ((ids, 0), (other, 0), (other, len(ids) - 1)):
        prompt = model.prompt(given, [pixels])
        cache = known.begin(prompt, len(prompt) + 8)
        assert cache.length == length
        assert [token.id for token in stream(model, prompt, EIGHT, cache=cache)] == answer(model, prompt)


def test_rows_that_join_a_batch_are_those_alone(model):
    prompts = [prompt_of(model, 2, seed) for seed in (0, 1, 0)]
    batch, requests = ContinuousBatch(model, 2), [Request(prompt, EIGHT) for prompt in prompts]
    for request in requests:
        batch.add(request)
    while batch.rows or batch.waiting:
        assert not any(step.error for step in batch.step())
    assert [request.generated_ids for request in requests] == [answer(model, prompt) for prompt in prompts]
    assert batch.reused == 48


@pytest.mark.parametrize(
    ("change", "error", "problem"),
    [
        ({"projection_dim": 48}, ConfigError, "projection_dim = 48, and the decoder has the width 64"),
        ({"image_token_index": 500}, ConfigError, "image_token_index = 500 is out of range"),
        ({"text_config": {"model_type": "gemma2"}}, UnsupportedError, "text_config is of the model_type 'gemma2'"),
        (
            {"text_config": {**TEXT, "use_bidirectional_attention": False}},
            UnsupportedError,
            "use_bidirectional_attention = False",
        ),
    ],
)
def test_configs_that_are_not_implemented_are_refused(change, error, problem):
    with pytest.raises(error) as found:
        PaliGemmaConfig.from_dict({**RAW, **change})
    assert problem in str(found.value)
