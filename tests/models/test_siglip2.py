"""SigLIP 2 NaFlex: images of several shapes against transformers, which fills them up; its tokenizer; refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import zoo
from parity.checkpoints import build
from parity.pictures import draw
from zoo.errors import ConfigError, InputError, UnsupportedError
from zoo.images import ImageProcessor
from zoo.images.sizes import read_size
from zoo.models.siglip2 import Siglip2VisionConfig
from zoo.text.tokenizer import Tokenizer

NAFLEX = "siglip2-base-patch16-naflex"
LABELS = ["a Cat", "some WATER", "the old town by the river"]
IMAGES = [draw(40, 60), draw(300, 30, seed=1), draw(33, 200, seed=2), draw(64, 64, seed=3)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return build(NAFLEX, tmp_path_factory.mktemp("naflex"))


@pytest.mark.parametrize("device", ["cpu", "onnx", "torch:cpu"])
def test_images_of_several_shapes_are_those_of_transformers(folder, device):
    """There every image is filled up to one number of patches; here it is not."""
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    torch = pytest.importorskip("torch", reason="needs torch, the reference")
    pytest.importorskip("onnxruntime", reason="needs onnxruntime, for device='onnx'")
    model = transformers.AutoModel.from_pretrained(folder).eval()
    images = transformers.AutoImageProcessor.from_pretrained(folder, backend="pil")(IMAGES, return_tensors="pt")
    assert len({tuple(shape) for shape in images["spatial_shapes"].tolist()}) == 4
    texts = [f"This is a photo of {label}." for label in LABELS]
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    ids = tokenizer(texts, padding="max_length", max_length=40, return_tensors="pt")["input_ids"]
    with torch.no_grad():
        wanted = model(input_ids=ids, **images)
    zero_shot: Any = zoo.load(folder, device=device)
    for found, row in zip(zero_shot(IMAGES, LABELS), wanted.logits_per_image.sigmoid().numpy(), strict=True):
        assert [one.label for one in found] == [LABELS[i] for i in np.argsort(-row)]
        np.testing.assert_allclose([one.score for one in found], -np.sort(-row), rtol=1e-4)
    embed: Any = zoo.load(folder, task="embed", device=device)
    np.testing.assert_allclose(embed(IMAGES), wanted.image_embeds, atol=1e-5)
    np.testing.assert_allclose(embed.texts(texts), wanted.text_embeds, atol=1e-5)


def test_texts_are_in_small_letters(folder, tmp_path):
    """The Hub's files name Gemma's tokenizer, which keeps capitals; transformers takes Siglip2Tokenizer for them."""
    tokenizer = Tokenizer.from_folder(folder)
    assert np.array_equal(tokenizer("Some WATER").input_ids, tokenizer("some water").input_ids)
    zoo.save(zoo.load(folder), tmp_path)
    assert np.array_equal(Tokenizer.from_folder(tmp_path)("A B").input_ids, tokenizer("a b").input_ids)
    (tmp_path / "config.json").unlink()
    gemma = Tokenizer.from_folder(tmp_path)
    assert not np.array_equal(gemma("Some WATER").input_ids, gemma("some water").input_ids)


@pytest.mark.parametrize("size", [(480, 640), (7, 12), (30, 299), (1000, 3), (64, 64)])
@pytest.mark.parametrize("fields", [{}, {"max_num_patches": 40, "patch_size": 8}, {"do_resize": False}])
def test_the_processor_is_that_of_transformers(size, fields):
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    raw = {"image_processor_type": "Siglip2ImageProcessor", **fields}
    image = draw(*(size if "do_resize" not in fields else (96, 48)))
    found = ImageProcessor.from_dict(raw)(image).pixel_values[0]
    theirs = transformers.Siglip2ImageProcessorPil.from_dict(dict(raw))(images=[image], return_tensors="np")
    (h, w), patch = theirs["spatial_shapes"][0], raw.get("patch_size", 16)
    cut = found.reshape(h, patch, w, patch, 3).swapaxes(1, 2).reshape(h * w, -1)
    np.testing.assert_array_equal(cut, theirs["pixel_values"][0, : h * w])


def test_patches_of_an_image(folder):
    embed: Any = zoo.load(folder, task="embed")
    assert embed(draw(50, 20)).shape == (48,)
    alone: Any = zoo.load_model(folder, head="VisionModel")
    assert alone(np.zeros((1, 16, 48, 3), np.float32)).last_hidden_state.shape == (1, 12, 48)
    with pytest.raises(InputError, match="50 x 48, expected multiples of 8 pixels"):
        alone(np.zeros((1, 50, 48, 3), np.float32))


def test_what_is_refused():
    with pytest.raises(ConfigError, match="num_patches = 250 is not a square number"):
        Siglip2VisionConfig(num_patches=250)
    with pytest.raises(ConfigError, match=r"patch_size = \[16, 8\], expected a square"):
        Siglip2VisionConfig(patch_size=[16, 8])
    with pytest.raises(ConfigError, match="max_num_patches = 32768, expected at most 4096"):
        read_size({"patch_size": 8, "max_num_patches": 1 << 15}, None, True)
    with pytest.raises(UnsupportedError, match="beside max_num_patches"):
        ImageProcessor.from_dict({"image_processor_type": "Siglip2ImageProcessor", "size": 224})
