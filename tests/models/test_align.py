"""ALIGN: its labels beside transformers' processor and model, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

import zoo
from parity.checkpoints import build
from zoo.errors import ConfigError
from zoo.models.align import AlignConfig


def test_labels_are_those_of_transformers(tmp_path):
    """transformers' processor pads texts to 64 tokens, which changes nothing."""
    torch = pytest.importorskip("torch", reason="needs torch, the reference")
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    folder = build("align-base", tmp_path)
    image = Image.fromarray(np.random.default_rng(0).integers(0, 255, (80, 120, 3), np.uint8))
    labels = ["a cat", "two dogs and a house", "the sea"]
    found = zoo.load(folder)(image, labels)
    texts = transformers.AutoTokenizer.from_pretrained(folder)(
        [f"This is a photo of {label}." for label in labels], padding="max_length", max_length=40, return_tensors="pt"
    )
    pixels = transformers.EfficientNetImageProcessorPil.from_pretrained(folder)(images=image, return_tensors="pt")
    with torch.no_grad():
        scores = transformers.AlignModel.from_pretrained(folder).eval()(**texts, **pixels).logits_per_image.softmax(-1)
    wanted = dict(zip(labels, scores[0].tolist(), strict=True))
    assert {one.label: pytest.approx(one.score, rel=1e-4) for one in found} == wanted


def test_vectors_are_as_wide_as_the_last_block():
    with pytest.raises(ConfigError, match=r"projection_dim = 512, but .* 640 channels"):
        AlignConfig.from_dict({"projection_dim": 512})
