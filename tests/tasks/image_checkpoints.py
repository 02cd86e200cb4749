"""Configs for checkpoints of image tasks, and images for them."""

from __future__ import annotations

import numpy as np
from PIL import Image

SMALL = {
    "hidden_size": 32,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "image_size": 24,
    "patch_size": 4,
}
UPER = {"out_indices": [1, 2, 3, 4], "auxiliary_channels": 16, "pool_scales": [1, 2, 3], "use_mean_pooling": True}
RELATIVE = {"use_relative_position_bias": True, "use_absolute_position_embeddings": True, "image_size": 24}
PROCESSORS = {
    "vit": {"image_processor_type": "ViTImageProcessor", "size": {"height": 24, "width": 24}},
    "deit": {"feature_extractor_type": "DeiTFeatureExtractor", "size": 28, "crop_size": 24, "do_center_crop": True},
    "beit": {"feature_extractor_type": "BeitFeatureExtractor", "size": 24, "crop_size": 24, "do_center_crop": False},
}
LABELS = {i: f"kind {i}" for i in range(7)}


def draw(rng, height, width):
    """An image with shapes in it, so that neither its patches nor its pixels are alike."""
    small = rng.integers(0, 256, (5, 7, 3), np.uint8)
    return Image.fromarray(small).resize((width, height), Image.Resampling.BICUBIC)
