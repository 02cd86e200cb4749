"""GOT-OCR 2.0: attention by distances against a loop over them, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from parity.specs import SPECS, config_of
from tests.image_prompts import EIGHT, answer, prompt_of
from zoo.errors import ConfigError, UnsupportedError
from zoo.generate import generate
from zoo.models.got_ocr2 import GotOcr2Config, GotOcr2ForConditionalGeneration

RAW = config_of(SPECS["GOT-OCR-2.0-hf"], "tiny")
VISION = RAW["vision_config"]


@pytest.fixture(scope="module")
def model() -> Any:
    text = {**RAW["text_config"], "initializer_range": 0.3}
    return GotOcr2ForConditionalGeneration.from_config(GotOcr2Config.from_dict({**RAW, "text_config": text}))


def test_scores_have_a_part_by_the_rows_and_columns_between_two_patches(model, rng):
    attention, side, heads = model.vision_model.layers[0].attention, 6, 4
    x = rng.standard_normal((2, side**2, 32), np.float32)
    q, k, v = np.moveaxis(np.float64(attention.qkv(x)).reshape(2, side**2, 3, heads, 8), 2, 0)
    bias = np.empty((2, heads, side**2, side**2))
    for t, s in np.ndindex(side**2, side**2):
        down, right = t // side - s // side + side - 1, t % side - s % side + side - 1
        bias[:, :, t, s] = q[:, t] @ np.float64(attention.rows[down] + attention.columns[right])
    scores = np.einsum("bthk,bshk->bhts", q, k) * 8**-0.5 + bias
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    mixed = np.einsum("bhts,bshk->bthk", weights / weights.sum(-1, keepdims=True), v)
    wanted = attention.out(np.float32(mixed.reshape(x.shape)))
    np.testing.assert_allclose(attention(x, side), wanted, rtol=1e-4, atol=1e-6)


def test_rows_of_a_batch_are_those_alone(model):
    words = np.random.default_rng(5).integers(3, model.config.image_token_id, 12)
    prompts = [prompt_of(model, 2, 0), words, prompt_of(model, 1, 1)]
    together = [found[0].ids.tolist() for found in generate(model, prompts, EIGHT)]
    assert together == [answer(model, prompt) for prompt in prompts]


@pytest.mark.parametrize(
    ("change", "error", "problem"),
    [
        ({"text_config": {"model_type": "llama"}}, UnsupportedError, "text_config is of the model_type 'llama'"),
        ({"vision_config": {**VISION, "use_rel_pos": False}}, UnsupportedError, "use_rel_pos = False"),
        ({"vision_config": {**VISION, "use_abs_pos": False}}, UnsupportedError, "use_abs_pos = False"),
        ({"vision_config": {**VISION, "image_size": [64, 32]}}, UnsupportedError, "16 x 8 patches are not implemented"),
        ({"vision_config": {**VISION, "window_size": -1}}, ConfigError, "vision_config: window_size = -1"),
        ({"image_token_index": 500}, ConfigError, "image_token_index = 500 is out of range"),
    ],
)
def test_configs_that_are_not_implemented_are_refused(change, error, problem):
    with pytest.raises(error) as found:
        GotOcr2Config.from_dict({**RAW, **change})
    assert problem in str(found.value)
