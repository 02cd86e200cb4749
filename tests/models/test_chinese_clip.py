"""Chinese-CLIP: its labels beside transformers' pipeline, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

import zoo
from parity.checkpoints import build
from zoo.errors import InputError, UnsupportedError
from zoo.models.chinese_clip import ChineseCLIPTextConfig


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return build("chinese-clip-vit-base-patch16", tmp_path_factory.mktemp("chinese-clip"))


def test_labels_are_those_of_the_pipeline(folder):
    pytest.importorskip("torch", reason="needs torch, the reference")
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    image = Image.fromarray(np.random.default_rng(0).integers(0, 255, (40, 30, 3), np.uint8))
    labels = ["a cat", "two dogs and a house", "the sea"]
    found = zoo.load(folder)(image, labels)
    model = transformers.ChineseCLIPModel.from_pretrained(folder).eval()
    texts = transformers.AutoTokenizer.from_pretrained(folder)(
        [f"This is a photo of {label}." for label in labels], padding=True, return_tensors="pt"
    )
    pixels = transformers.ChineseCLIPImageProcessorPil.from_pretrained(folder)(images=image, return_tensors="pt")
    scores = model(**texts, **pixels).logits_per_image.softmax(-1)[0].tolist()
    wanted = dict(zip(labels, scores, strict=True))
    assert len(found) == 3
    for one in found:
        assert one.score == pytest.approx(wanted[one.label], rel=1e-4)


def test_a_text_has_no_types(folder):
    model = zoo.load_model(folder)
    given = model.example()
    with pytest.raises(InputError, match="token_type_ids"):
        model(**given, token_type_ids=given["input_ids"] * 0)


def test_an_encoder_of_texts_is_no_decoder():
    with pytest.raises(UnsupportedError, match="is_decoder = True"):
        ChineseCLIPTextConfig.from_dict({"is_decoder": True})
