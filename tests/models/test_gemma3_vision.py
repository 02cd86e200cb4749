"""Gemma 3 with images: tokens of one image attend to each other, whole or in chunks, alone or in a batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import zoo.cache.kv
import zoo.engines.onnx.decoder
import zoo.generate.continuous
import zoo.inputs.heads
import zoo.inputs.texts
from parity.specs import SPECS, config_of
from tests.image_prompts import EIGHT, answer, ids_around, prompt_of, tiles
from zoo import ops
from zoo.errors import ConfigError, InputError, UnsupportedError
from zoo.generate import ContinuousBatch, PromptCache, Request, generate, stream
from zoo.loading import load_model
from zoo.models.gemma3_vision import Gemma3Config, Gemma3ForConditionalGeneration
from zoo.saving import save_model

RAW = config_of(SPECS["gemma-3-4b-untied"], "tiny")
RAW["text_config"] = {**RAW["text_config"], "sliding_window": 6, "initializer_range": 0.3}
ENGINES = ["numpy", "torch:cpu", "onnx"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Any:
    found = tmp_path_factory.mktemp("gemma3")
    save_model(Gemma3ForConditionalGeneration.from_config(Gemma3Config.from_dict(RAW)), found)
    return found


@pytest.fixture(scope="module")
def models(folder) -> dict[str, Any]:
    return {"numpy": load_model(folder)}


@pytest.fixture(params=ENGINES)
def model(request, models, folder, monkeypatch) -> Any:
    """A model whose prompts pass in chunks that are shorter than the 16 tokens of an image."""
    packages = {"torch:cpu": "torch", "onnx": "onnxruntime"}
    if request.param != "numpy":
        pytest.importorskip(packages[request.param], reason=f"needs {packages[request.param]}, the engine")
    for module in (zoo.inputs.texts, zoo.inputs.heads, zoo.engines.onnx.decoder, zoo.generate.continuous):
        monkeypatch.setattr(module, "CHUNK", 7)
    monkeypatch.setattr(zoo.cache.kv, "SPARE_TOKENS", 3)
    if request.param not in models:
        models[request.param] = load_model(folder, device=request.param)
    return models[request.param]


def whole_logits(model: Any, ids: np.ndarray, pixels: np.ndarray) -> np.ndarray:
    """The logits (T, V) of a row in one call without a cache."""
    return ops.to_numpy(model(ids[None], pixel_values=pixels))[0]


@pytest.mark.parametrize("cuts", [(), (3, 9), (9, 25, 27), (20,)])
def test_chunks_and_slices_are_the_whole(model, cuts):
    ids, pixels = ids_around(model, 3, between=2), tiles(model, 3, 3)
    prompt, cache = model.prompt(ids, [pixels]), model.new_cache(1, len(ids))
    wanted, at = whole_logits(model, ids, pixels), 0
    for cut in (*cuts, len(ids)):
        if cut <= at:  # the chunk before had to be longer
            continue
        some = prompt[at:].first(cut - at)
        assert len(some) >= cut - at
        found = ops.to_numpy(model.next_logits(None, None, cache, prompts=[some]))[0]
        at = cache.length
        np.testing.assert_allclose(found, wanted[at - 1], rtol=1e-3, atol=2e-4)


def test_slices_begin_within_an_image(model, monkeypatch):
    monkeypatch.setattr(zoo.cache.kv, "SPARE_TOKENS", 64)
    ids, pixels = ids_around(model, 2, between=2), tiles(model, 2, 3)
    prompt, cache = model.prompt(ids, [pixels]), model.new_cache(1, len(ids))
    model.next_logits(None, None, cache, prompts=[prompt])
    cache.rewind(15)  # of the image whose places are 11 to 26
    assert cache.length == 15
    found = ops.to_numpy(model.next_logits(None, None, cache, prompts=[prompt[15:]]))[0]
    np.testing.assert_allclose(found, whole_logits(model, ids, pixels)[-1], rtol=1e-3, atol=2e-4)


def test_rows_of_a_batch_are_those_alone(model):
    words = np.random.default_rng(5).integers(3, model.config.image_token_id, 12)
    prompts = [prompt_of(model, 2, 0, 2), words, prompt_of(model, 1, 1, 5), prompt_of(model, 3, 2, 3)]
    together = [found[0].ids.tolist() for found in generate(model, prompts, EIGHT)]
    assert together == [answer(model, prompt) for prompt in prompts]


def test_steps_with_a_cache_choose_as_whole_texts_do(model):
    ids, pixels = ids_around(model, 2, between=2), tiles(model, 2, 0)
    found = answer(model, model.prompt(ids, [pixels]))
    for token in found:
        assert int(whole_logits(model, ids, pixels)[-1].argmax()) == token
        ids = np.append(ids, token)


def test_rows_that_join_a_batch_compute_images_whole(model):
    prompts = [prompt_of(model, 3, seed, 2) for seed in (0, 1, 0)]
    wanted = [answer(model, prompt) for prompt in prompts]
    batch = ContinuousBatch(model, 2)
    requests = [Request(prompt, EIGHT) for prompt in prompts]
    for request in requests:
        batch.add(request)
    while batch.rows or batch.waiting:
        assert not any(step.error for step in batch.step())
    assert [request.generated_ids for request in requests] == wanted
    assert batch.reused == 16  # in the middle of an image: windows have dropped later blocks


def test_a_prompt_cache_goes_on_after_images(model):
    known = PromptCache(model)
    for seed in (0, 0, 1):
        prompt = prompt_of(model, 2, seed, 2)
        cache = known.begin(prompt, len(prompt) + 8)
        assert [token.id for token in stream(model, prompt, EIGHT, cache=cache)] == answer(model, prompt)


def test_token_types_follow_from_the_ids(models):
    model, ids, pixels = models["numpy"], ids_around(models["numpy"], 1), tiles(models["numpy"], 1, 0)
    types = (ids == model.config.image_token_id).astype(np.int64)[None]
    found = model(ids[None], pixel_values=pixels)
    np.testing.assert_array_equal(found, model(ids[None], pixel_values=pixels, token_type_ids=types))
    assert np.abs(found - model(ids[None], pixel_values=pixels, token_type_ids=types * 0)).max() > 1e-2
    with pytest.raises(InputError, match="token_type_ids"):
        model(ids[None], pixel_values=pixels, token_type_ids=types * 2)


@pytest.mark.parametrize(
    ("change", "error", "problem"),
    [
        ({"mm_tokens_per_image": 15}, ConfigError, "mm_tokens_per_image = 15 are no squares of the 8 x 8 patches"),
        ({"mm_tokens_per_image": 9}, ConfigError, "mm_tokens_per_image = 9 are no squares"),
        ({"image_token_index": 500}, ConfigError, "image_token_index = 500 is out of range"),
        ({"text_config": {"model_type": "gemma2"}}, UnsupportedError, "text_config is of the model_type 'gemma2'"),
        (
            {"text_config": {**RAW["text_config"], "final_logit_softcapping": 30.0}},
            UnsupportedError,
            "final_logit_softcapping = 30.0 is not implemented beside images",
        ),
        (
            {"text_config": {**RAW["text_config"], "use_bidirectional_attention": True}},
            UnsupportedError,
            "use_bidirectional_attention = True",
        ),
    ],
)
def test_configs_that_are_not_implemented_are_refused(change, error, problem):
    with pytest.raises(error) as found:
        Gemma3Config.from_dict({**RAW, **change})
    assert problem in str(found.value)
