"""Idefics3, and what all models of images and texts share: prompts with images, alone, together, and in caches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from parity.specs import SPECS, config_of
from tests.image_prompts import EIGHT, answer, ids_around, prompt_of, tiles
from zoo.errors import ConfigError, InputError, UnsupportedError
from zoo.generate import ContinuousBatch, GenerationConfig, PromptCache, Request, generate, stream
from zoo.inputs.images import fractional_places
from zoo.models.idefics3 import Idefics3Config, Idefics3ForConditionalGeneration

RAW = {**config_of(SPECS["idefics3-untied"], "tiny"), "scale_factor": 2}


@pytest.fixture(scope="module")
def model() -> Any:
    raw = {**RAW, "text_config": {**RAW["text_config"], "initializer_range": 0.3}}
    return Idefics3ForConditionalGeneration.from_config(Idefics3Config.from_dict(raw))


def test_images_change_the_answer(model):
    assert answer(model, prompt_of(model, 1, 0)) != answer(model, prompt_of(model, 1, 1))


@pytest.mark.parametrize("beams", [1, 3])
def test_rows_with_images_and_without_are_those_alone(model, beams):
    config = GenerationConfig(max_new_tokens=8, num_beams=beams)
    words = np.random.default_rng(5).integers(3, model.config.image_token_id, 12)
    prompts = [prompt_of(model, 2, 0), words, prompt_of(model, 1, 1), prompt_of(model, 3, 2)]
    together = [found[0].ids.tolist() for found in generate(model, prompts, config)]
    assert together == [answer(model, prompt, config) for prompt in prompts]


def test_a_long_prompt_passes_in_chunks_and_slices(model):
    prompt = prompt_of(model, 40, 3)  # of 658 tokens
    assert len(prompt) > 512
    whole = model(prompt.ids[None], pixel_values=tiles(model, 40, 3))[0]
    cache = model.new_cache(1, len(prompt))
    for a, b in ((0, 100), (100, 131), (131, len(prompt))):  # through the middle of tiles
        logits = model.next_logits(None, None, cache, prompts=[prompt[a:b]])
        np.testing.assert_allclose(logits[0], whole[b - 1], rtol=1e-3, atol=1e-4)


def test_a_slice_computes_its_own_tiles_alone(model, monkeypatch):
    seen: list[int] = []
    features = model.image_features
    monkeypatch.setattr(model, "image_features", lambda p: [seen.append(len(p.pixel_values)), features(p)][1])
    prompt, each = prompt_of(model, 5, 0), model.image_length(model.config.vision_config.grid)
    prompt[:9].embeds()
    assert not seen
    prompt[9 + 2 * each :].embeds()
    assert sum(seen) == 3
    prompt[9 + 2 * each + 1 :].embeds()
    assert sum(seen) == 3


def test_a_prompt_cache_knows_images_by_their_pixels(model, tmp_path):
    known, prompts = PromptCache(model), [prompt_of(model, 2, seed) for seed in (0, 1, 0)]
    for prompt in prompts:
        cache = known.begin(prompt, len(prompt) + 8)
        assert cache.length in (0, 9)  # the words before the images, in the next ones
        assert [token.id for token in stream(model, prompt, EIGHT, cache=cache)] == answer(model, prompt)
    known.ids = [*known.ids, *answer(model, prompts[2])]
    known.save_cache(tmp_path / "known.safetensors")
    again = PromptCache(model)
    again.load_cache(tmp_path / "known.safetensors")
    assert again.begin(prompts[2], len(prompts[2]) + 8).length == len(prompts[2]) - 1
    assert again.begin(prompts[1], len(prompts[1]) + 8).length == 9


def test_a_batch_that_rows_join_never_takes_one_image_for_another(model):
    prompts = [prompt_of(model, 3, seed) for seed in (0, 1, 0, 1)]
    words = ids_around(model, 0, words=20)
    wanted = [answer(model, prompt) for prompt in [*prompts, words]]
    batch = ContinuousBatch(model, 3)
    requests = [Request(prompt, EIGHT) for prompt in [*prompts, words]]
    for request in requests:
        batch.add(request)
        assert not any(step.error for step in batch.step())
    while batch.rows or batch.waiting:
        assert not any(step.error for step in batch.step())
    assert [request.generated_ids for request in requests] == wanted
    begun = batch.reused
    batch.add(again := Request(prompt_of(model, 3, 1), EIGHT))
    while batch.rows or batch.waiting:
        batch.step()
    assert again.generated_ids == wanted[1]
    assert batch.reused - begun >= 48  # the same pixels are known


def test_drafts_from_the_prompt_change_nothing(model):
    prompt = prompt_of(model, 1, 0)
    assert answer(model, prompt, EIGHT.replace(prompt_lookup_num_tokens=4)) == answer(model, prompt)
    with pytest.raises(UnsupportedError, match="assistant_model does not see the images"):
        answer(model, prompt, EIGHT.replace(assistant_model=model))


def test_what_does_not_fit_is_refused(model):
    ids, pixels = ids_around(model, 2), tiles(model, 1, 0)
    with pytest.raises(InputError, match=r"32 places of images .*, and the images take 16"):
        model.prompt(ids, [pixels])
    with pytest.raises(InputError, match=r"32 places of images .*, and the images take 0"):
        model(ids[None])
    with pytest.raises(InputError, match=r"0 places of images .*, and the images take 16"):
        model(ids_around(model, 0)[None], pixel_values=pixels)
    with pytest.raises(InputError, match=r"32 places of images .*, and the images take 0"):
        answer(model, ids)
    with pytest.raises(InputError, match="pixel_values need input_ids"):
        model(inputs_embeds=np.zeros((1, 5, model.config.hidden_size), np.float32), pixel_values=pixels)
    with pytest.raises(InputError, match="pixel_values are 40 x 32, the checkpoint's images 32 x 32"):
        model(ids[None], pixel_values=np.zeros((2, 40, 32, 3), np.float32))


@pytest.mark.parametrize(
    ("change", "error", "problem"),
    [
        ({"scale_factor": 3}, ConfigError, "scale_factor = 3 does not divide 8"),
        ({"image_token_id": 500}, ConfigError, "image_token_id = 500 is out of range, expected 0 ... 499"),
        ({"text_config": None}, ConfigError, "text_config is None"),
        ({"text_config": {"model_type": "mistral"}}, UnsupportedError, "text_config is of the model_type 'mistral'"),
        ({"vision_config": {"image_size": 0}}, ConfigError, "vision_config: image_size = 0"),
    ],
)
def test_configs_that_are_not_implemented_are_refused(change, error, problem):
    with pytest.raises(error) as found:
        Idefics3Config.from_dict({**RAW, **change})
    assert problem in str(found.value)


def test_places_are_rounded_as_torch_rounds_them():
    torch = pytest.importorskip("torch", reason="needs torch, the reference")
    for side in range(1, 65):
        starts = torch.arange(1 / side, 1.0, 1 / side)
        at = torch.arange(side, dtype=torch.float32) * (1.0 / torch.tensor([side]))[:, None]
        wanted = torch.bucketize(torch.clamp(at, max=1.0 - 1e-6), starts, right=True)[0]
        assert fractional_places(side) == wanted.tolist()
