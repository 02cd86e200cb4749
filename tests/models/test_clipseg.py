"""CLIPSeg: what only it has, what it refuses, and its masks against transformers'."""

from __future__ import annotations

import json

import numpy as np
import pytest

import zoo
from parity.checkpoints import build
from parity.pictures import draw
from zoo.errors import BatchError, ConfigError, InputError
from zoo.models.clipseg import CLIPSegConfig

LABELS = ["a cat", "some water", "the old town by the river"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """`folder(spec)`: a checkpoint, made once."""
    made = {}

    def of(spec):
        if spec not in made:
            made[spec] = build(spec, tmp_path_factory.mktemp("clipseg") / spec)
        return made[spec]

    return of


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"extract_layers": [3, 12]}, r"extract_layers = \[3, 12\], expected numbers of layers of the image, 0 ... 11"),
        ({"extract_layers": []}, "extract_layers"),
        ({"extract_layers": [-1]}, "extract_layers"),
        ({"reduce_dim": 0}, "reduce_dim = 0"),
        ({"decoder_num_attention_heads": 5}, "does not divide reduce_dim = 64"),
        ({"vision_config": {"patch_size": [16, 32]}}, "patch_size = .* is not a square|is not a square of patches"),
        ({"vision_config": {"patch_size": 2}, "use_complex_transposed_convolution": True}, "expected at least 4 and 2"),
    ],
)
def test_configs_that_are_refused(change, says):
    with pytest.raises(ConfigError, match=says):
        CLIPSegConfig.from_dict(change)


def test_a_text_for_each_image(folder):
    model = zoo.load_model(folder("clipseg-rd64"))
    given = model.example(rows=2, size=(40, 24))
    found = model(**given)
    assert found.logits.shape == (2, 40, 24)
    assert found.pooled_output.shape == found.conditional_embeddings.shape == (2, 32)
    with pytest.raises(InputError, match="there are 1 texts for 2 images, expected one for each"):
        model(given["input_ids"][:1], given["pixel_values"])
    states = model.image_states(model.vision_model.pixels(given["pixel_values"][:1]))
    asked = model.logits(model.place(states, found.conditional_embeddings))  # one image, two texts
    np.testing.assert_allclose(asked[0], found.logits[0], atol=1e-4)


@pytest.mark.parametrize("spec", ["clipseg-rd64-refined", "clipseg-rd64"])
def test_masks_are_those_of_transformers(folder, spec):
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    torch = pytest.importorskip("torch", reason="needs torch, the reference")
    images, path = [draw(40, 60), draw(60, 30, seed=1)], folder(spec)
    model = transformers.CLIPSegForImageSegmentation.from_pretrained(path).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(path)
    processor = transformers.AutoImageProcessor.from_pretrained(path, backend="pil")
    texts = tokenizer(LABELS, padding=True, return_tensors="pt", return_token_type_ids=False)
    found = zoo.load(path)(images, LABELS, threshold=0.4)
    for image, one in zip(images, found, strict=True):
        pixels = processor([image] * len(LABELS), return_tensors="pt")["pixel_values"]
        with torch.no_grad():
            logits = model(**texts, pixel_values=pixels).logits
        np.testing.assert_allclose(one.logits, logits, rtol=1e-3, atol=1e-4)
        size = (image.height, image.width)
        wanted = torch.nn.functional.interpolate(logits[:, None], size, mode="bilinear")[:, 0].sigmoid().numpy()
        for label, chance in zip(LABELS, wanted, strict=True):
            np.testing.assert_allclose(one.probabilities(label), chance, atol=1e-4)
            clear = np.abs(chance - 0.4) > 1e-4
            np.testing.assert_array_equal(one.mask_of(label)[clear], (chance > 0.4)[clear])
        best = np.where(wanted.max(0) > 0.4, wanted.argmax(0) + 1, 0)
        assert (one.mask == best).mean() > 0.99
        assert [area.score for area in one.labels] == sorted((area.score for area in one.labels), reverse=True)
        for area in one.labels:
            assert area.id == LABELS.index(area.label) + 1
            np.testing.assert_allclose(area.score, wanted[area.id - 1].max(), atol=1e-4)
            np.testing.assert_allclose(area.share, (wanted[area.id - 1] > 0.4).mean(), atol=0.01)


def test_calls(folder, tmp_path):
    segment = zoo.load(folder("clipseg-rd64-refined"), task="zero-shot-image-segmentation")
    image = draw(33, 50)
    found = segment(image, "a cat,some water", threshold=0.0)
    assert found.mask.shape == (33, 50)
    assert {area.share for area in found.labels} == {1.0}
    assert found.overlay(tmp_path / "overlay.png").size == (50, 33)
    assert len(json.dumps(segment.results.row(found))) > 0
    many = segment(image, [f"thing {i}" for i in range(11)], hypothesis_template="a photo of a {}.")
    assert many.logits.shape[0] == 11
    alone = segment(image, "thing 10", hypothesis_template="a photo of a {}.")
    np.testing.assert_allclose(alone.logits[0], many.logits[10], atol=1e-3)
    nothing = segment(image, LABELS, threshold=1.0)
    assert (nothing.labels, int(nothing.mask.max())) == ([], 0)
    with pytest.raises(InputError, match="label is 'a cot', expected one of a cat"):
        found.mask_of("a cot")
    with pytest.raises(InputError, match="threshold"):
        segment(image, LABELS, threshold=2)
    with pytest.raises(InputError, match="twice"):
        segment(image, "cat,cat")
    with pytest.raises(BatchError) as caught:
        segment([image, "none.png"], LABELS)
    assert [hasattr(one, "mask") for one in caught.value.results] == [True, False]


def test_clip_itself(folder):
    zero_shot = zoo.load(folder("clipseg-bare"))
    assert len(zero_shot(draw(40, 60), LABELS)) == 3
    embed = zoo.load(folder("clipseg-bare"), task="embed")
    assert embed([draw(40, 60), "a cat"]).shape == (2, 32)


def test_saved_and_read_again(folder, tmp_path):
    segment = zoo.load(folder("clipseg-rd64"))
    again = zoo.load(zoo.save(segment, tmp_path / "saved"))
    np.testing.assert_array_equal(again(draw(33, 50), LABELS).logits, segment(draw(33, 50), LABELS).logits)
