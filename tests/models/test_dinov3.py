"""DINOv2 with registers and DINOv3 as tasks: the file of an image processor, and registers beside the class token."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from PIL import Image

import zoo
from parity.checkpoints import build

PROCESSOR = {"image_processor_type": "DINOv3ViTImageProcessorFast", "do_resize": True, "do_rescale": True}
PROCESSOR |= {"do_normalize": True, "do_center_crop": None, "crop_size": None, "data_format": "channels_first"}
PROCESSOR |= {"resample": 2, "rescale_factor": 1 / 255, "size": {"height": 48, "width": 64}, "device": None}


def test_embeddings_of_images_and_of_their_patches(tmp_path):
    folder = build("dinov3-vits16-pretrain-lvd1689m", tmp_path)
    (folder / "preprocessor_config.json").write_text(json.dumps(PROCESSOR))
    image = Image.fromarray(np.random.default_rng(0).integers(0, 256, (80, 70, 3), np.uint8))
    embed: Any = zoo.load(folder)
    assert embed(image).shape == (48,)
    assert embed.patches(image).shape == (12, 48)


def test_registers_of_dinov2_are_no_patches(tmp_path):
    embed: Any = zoo.load(build("dinov2-with-registers-base", tmp_path))
    image = Image.fromarray(np.random.default_rng(0).integers(0, 256, (80, 70, 3), np.uint8))
    h, w, width = embed.patches(image, grid=True).shape
    states = embed.model(embed.processor(image).pixel_values).last_hidden_state
    assert (states.shape[1], width) == (1 + 4 + h * w, 48)
    np.testing.assert_allclose(embed.patches(image), states[0, 5:], atol=1e-6)
