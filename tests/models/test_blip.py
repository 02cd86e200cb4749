"""BLIP: captions as transformers writes them, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import zoo
from parity.checkpoints import build
from parity.specs import SPECS, config_of
from zoo.errors import ConfigError, UnsupportedError
from zoo.inputs.image_prompt import ids_of
from zoo.models.blip import BlipConfig
from zoo.tasks.image_text import user_messages

RAW = config_of(SPECS["blip-image-captioning-base"], "tiny")


def noise(seed: int, height: int = 60, width: int = 90) -> Image.Image:
    return Image.fromarray(np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8))


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return build("blip-image-captioning-base", tmp_path_factory.mktemp("blip"))


@pytest.mark.parametrize("asked", ["", "a picture of the"])
def test_captions_are_those_of_transformers(folder, asked):
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    import torch

    read: Any = zoo.load(folder)
    tokenizer = transformers.BertTokenizer.from_pretrained(folder)
    processor = transformers.BlipProcessor(transformers.BlipImageProcessorPil.from_pretrained(folder), tokenizer)
    model = transformers.BlipForConditionalGeneration.from_pretrained(folder, dtype=torch.float32).eval()
    for seed in range(2):
        given = processor(images=noise(seed), text=asked or None, return_tensors="pt")
        wanted = model.generate(**given, max_new_tokens=8, do_sample=False)[0].tolist()
        prompt = ids_of(read.chat_ids(user_messages([noise(seed)], asked), {})[0]).tolist()
        found = read(noise(seed), asked, max_new_tokens=8, details=True)
        assert prompt + [token.token_id for token in found.tokens] == wanted


def test_a_question_has_no_objects(folder):
    read: Any = zoo.load(folder)
    with pytest.raises(UnsupportedError, match="answers in plain text"):
        read(noise(0), "a", parsed=True, max_new_tokens=2)


@pytest.mark.parametrize(
    ("part", "change", "error", "problem"),
    [
        ("text_config", {"is_decoder": False}, UnsupportedError, "text_config: blip_text_model: is_decoder = False"),
        ("vision_config", {"image_size": [48, 32]}, ConfigError, "expected squares"),
        ("vision_config", {"patch_size": 64}, ConfigError, "patch_size = 64 is larger than image_size = 48"),
        ("vision_config", {"num_attention_heads": 5}, ConfigError, "num_attention_heads = 5 does not divide"),
        ("text_config", {"vocab_size": 0}, ConfigError, "text_config: vocab_size = 0"),
    ],
)
def test_configs_that_are_not_implemented_are_refused(part, change, error, problem):
    with pytest.raises(error) as found:
        BlipConfig.from_dict({**RAW, part: {**RAW[part], **change}})
    assert problem in str(found.value)


def test_parts_that_are_left_out_have_defaults():
    assert BlipConfig.from_dict({"text_config": None}) == BlipConfig.from_dict({"vision_config": {}})
    with pytest.raises(ConfigError, match="text_config is 0"):
        BlipConfig.from_dict({"text_config": 0})
