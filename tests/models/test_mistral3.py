"""Mistral 3: the layer and the decoder that the config names, sizes of images, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import zoo
from parity.specs import SPECS, config_of
from tests.image_text_checkpoint import write_mistral3_checkpoint
from zoo.errors import ConfigError, InputError, UnsupportedError
from zoo.images import ImageProcessor
from zoo.inputs.image_prompt import ids_of
from zoo.models.ministral3 import Ministral3Model
from zoo.models.mistral3 import Mistral3Config, Mistral3Model

RAW = config_of(SPECS["Mistral-Small-3.1-24B-Instruct-2503"], "tiny")
OF_MINISTRAL = config_of(SPECS["Ministral-3-3B-Instruct-2512-BF16"], "tiny")
VISION = RAW["vision_config"]


@pytest.mark.parametrize(("layer", "count"), [(-1, 3), (1, 1), (0, 0)])
def test_the_decoder_reads_the_layer_that_the_config_names(layer: int, count: int, rng):
    model: Any = Mistral3Model.from_config(Mistral3Config.from_dict({**RAW, "vision_feature_layer": layer}))
    vision = model.vision_model
    p = vision.pixels(rng.standard_normal((1, 12, 20, 3), np.float32))
    x, cos_sin = vision.embeddings(p), vision.rotations(p.grid)
    for one in vision.layers[:count]:
        x = one(x, cos_sin)
    np.testing.assert_allclose(vision.encode(p), x, rtol=1e-5, atol=1e-6)
    assert model.image_length(p.grid) == 2


def test_text_config_chooses_the_decoder():
    decoder = Mistral3Model.from_config(Mistral3Config.from_dict(OF_MINISTRAL)).language_model
    assert isinstance(decoder, Ministral3Model)
    assert not isinstance(Mistral3Model.from_config(Mistral3Config.from_dict(RAW)).language_model, Ministral3Model)


def test_images_are_resized_to_whole_squares_of_patches(tmp_path):
    folder = write_mistral3_checkpoint(tmp_path)
    pixels = ImageProcessor.from_folder(folder)(np.zeros((13, 30, 3), np.uint8)).pixel_values
    assert pixels.shape[1:3] == (16, 32)  # of 2 x 2 patches of 4 pixels
    (folder / "processor_config.json").write_text('{"patch_size": "4"}')
    with pytest.raises(ConfigError, match=r"patch_size = '4' and spatial_merge_size = 1 of processor_config.json"):
        ImageProcessor.from_folder(folder)


def test_prompts_and_answers_are_those_of_transformers(tmp_path, rng):
    torch = pytest.importorskip("torch", reason="needs torch, the reference")
    pytest.importorskip("transformers", reason="needs transformers, the reference")
    from transformers import AutoTokenizer, Mistral3ForConditionalGeneration
    from transformers.models.pixtral.image_processing_pil_pixtral import PixtralImageProcessorPil

    read: Any = zoo.load(write_mistral3_checkpoint(tmp_path))
    image = rng.integers(0, 256, (21, 34, 3), np.uint8)
    # Their PixtralProcessor asks for torchvision, so what it does is written out here.
    done = PixtralImageProcessorPil.from_pretrained(tmp_path, patch_size=8)(image, return_tensors="pt")
    rows, columns = (int(size) // 8 for size in done["image_sizes"][0])
    place = "[IMG_BREAK]".join(["[IMG]" * columns] * rows) + "[IMG_END]"
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    chat = [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "What is it?"}]}]
    text = tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
    ids = tokenizer(text.replace("[IMG]", place), add_special_tokens=False)["input_ids"]
    content = [{"type": "image", "image": image}, {"type": "text", "text": "What is it?"}]
    prompt = read.chat_ids([{"role": "user", "content": content}], {})[0]
    assert ids_of(prompt).tolist() == ids
    model = Mistral3ForConditionalGeneration.from_pretrained(tmp_path, dtype=torch.float32)
    new = model.generate(input_ids=torch.tensor([ids]), **done, max_new_tokens=10, do_sample=False)[0, len(ids) :]
    wanted = tokenizer.decode([i for i in new.tolist() if i not in read.generation.eos_token_id])
    assert read(image, "What is it?", max_new_tokens=10) == wanted


def test_images_of_less_than_a_token_are_refused(rng):
    model: Any = Mistral3Model.from_config(Mistral3Config.from_dict(RAW))
    with pytest.raises(InputError, match="is 1 x 5 patches, which is less than a token"):
        model.image_length((1, 5))


@pytest.mark.parametrize(
    ("change", "error", "problem"),
    [
        ({"text_config": {"model_type": "qwen2"}}, UnsupportedError, "text_config is of the model_type 'qwen2'"),
        ({"vision_config": {"model_type": "siglip"}}, UnsupportedError, "expected 'pixtral'"),
        ({"vision_config": {**VISION, "head_dim": 16}}, UnsupportedError, "head_dim = 16"),
        ({"vision_feature_layer": [-2, -1]}, ConfigError, "vision_feature_layer = [-2, -1]"),
        ({"vision_feature_layer": 4}, ConfigError, "vision_feature_layer = 4, and the encoder has 3 layers"),
        ({"spatial_merge_size": 0}, ConfigError, "spatial_merge_size = 0"),
        ({"image_token_index": 500}, ConfigError, "image_token_index = 500 is out of range"),
    ],
)
def test_configs_that_are_not_implemented_are_refused(change, error, problem):
    with pytest.raises(error) as found:
        Mistral3Config.from_dict({**RAW, **change})
    assert problem in str(found.value)
