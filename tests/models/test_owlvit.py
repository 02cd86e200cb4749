"""OWL-ViT and OWLv2: boxes of what words name, as transformers' processor and pipeline give them."""

from __future__ import annotations

import json

import numpy as np
import pytest
from PIL import Image

import zoo
from parity.checkpoints import build
from parity.pictures import draw
from zoo.errors import BatchError, ConfigError, InputError, UnsupportedError
from zoo.images import ImageProcessor
from zoo.images.boxes import post_process_grounded_object_detection
from zoo.models.owlvit import OwlViTConfig
from zoo.models.owlvit.config import box_logits

LABELS = ["a cat", "some water", "the old town by the river"]
NAMES = {"owlvit": "owlvit-base-patch32", "owlv2": "owlv2-base-patch16-ensemble"}
SIZES = ((40, 60), (75, 30), (33, 33))


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return {name: build(spec, tmp_path_factory.mktemp("owl") / name) for name, spec in NAMES.items()}


@pytest.fixture(scope="module")
def theirs(folders):
    """`theirs(name)`: transformers' model, tokenizer and image processor."""
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    pytest.importorskip("torch", reason="needs torch, the reference")
    pytest.importorskip("scipy", reason="needs scipy, with which transformers resizes")

    def load(name):
        model = transformers.AutoModelForZeroShotObjectDetection.from_pretrained(folders[name])
        tokenizer = transformers.AutoTokenizer.from_pretrained(folders[name])
        return model, tokenizer, transformers.AutoImageProcessor.from_pretrained(folders[name], backend="pil")

    return load


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("threshold", [0.1, 0.3, 0.5])
def test_objects_are_those_of_transformers_processor(folders, theirs, name, threshold):
    import torch

    images = [draw(*size, seed=i) for i, size in enumerate(SIZES)]
    model, tokenizer, processor = theirs(name)
    texts = tokenizer(LABELS, return_tensors="pt", padding=True)["input_ids"].repeat(len(images), 1)
    with torch.no_grad():
        output = model(input_ids=texts, pixel_values=processor(images, return_tensors="pt")["pixel_values"])
    wanted = processor.post_process_object_detection(output, threshold, [(one.height, one.width) for one in images])
    found = zoo.load(folders[name])(images, LABELS, threshold=threshold)
    assert sum(map(len, found)) > 0 or threshold == 0.5
    for ours, their in zip(found, wanted, strict=True):
        order = np.argsort(-their["scores"].numpy(), kind="stable")
        assert [one.label for one in ours] == [LABELS[i] for i in their["labels"].numpy()[order]]
        np.testing.assert_allclose([one.score for one in ours], their["scores"].numpy()[order], atol=1e-5)
        boxes = np.array([one.box for one in ours]).reshape(-1, 4)
        np.testing.assert_allclose(boxes, their["boxes"].numpy()[order], atol=1e-3)


def test_one_label_gives_what_the_pipeline_gives(folders, theirs):
    import transformers

    model, tokenizer, processor = theirs("owlv2")
    pipe = transformers.pipeline(
        "zero-shot-object-detection", model=model, tokenizer=tokenizer, image_processor=processor
    )
    image = draw(40, 60)
    for label in LABELS:  # several are independent of each other in the pipeline alone
        wanted = pipe(image, candidate_labels=[label], threshold=0.2)
        ours = zoo.load(folders["owlv2"])(image, [label], threshold=0.2)
        assert [round(one.score, 4) for one in ours] == [round(one["score"], 4) for one in wanted]
        assert [[int(v) for v in one.box] for one in ours] == [list(one["box"].values()) for one in wanted]


def test_boxes_of_an_owlv2_are_parts_of_the_padded_square():
    logits, boxes = np.zeros((1, 1, 2), np.float32), np.array([[[0.5, 0.25, 0.5, 0.1]]], np.float32)
    ((found,),) = post_process_grounded_object_detection(logits, boxes, [(80, 80)], ["a", "b"], threshold=0.4)
    assert found.label == "a"  # the first of equals
    np.testing.assert_allclose(found.box, (20, 16, 60, 24), rtol=1e-6)
    assert post_process_grounded_object_detection(logits, boxes, [(80, 80)], ["a", "b"], threshold=0.5) == [[]]


@pytest.mark.parametrize("grid", [(1, 1), (3, 5), (60, 60)])
def test_a_box_begins_at_its_patch(grid):
    torch = pytest.importorskip("torch", reason="needs torch, the reference")
    owlv2 = pytest.importorskip("transformers.models.owlv2.modeling_owlv2", reason="needs transformers, the reference")

    class Model(owlv2.Owlv2ForObjectDetection):
        def __init__(self):
            torch.nn.Module.__init__(self)

    # float32 keeps four digits of 1 - 0.9999.
    np.testing.assert_allclose(box_logits(grid), Model().compute_box_bias(*grid).numpy(), atol=3e-4)


SMALL = {"height": 24, "width": 20}


@pytest.mark.parametrize("size", [(1, 9), (2, 3), (24, 24), (30, 44), (97, 61), (300, 5), (333, 500)])
@pytest.mark.parametrize("options", [{}, {"size": SMALL}, {"size": SMALL, "resample": 0}, {"do_normalize": False}])
def test_pixels_of_an_owlv2_are_those_of_transformers(size, options):
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    pytest.importorskip("scipy", reason="needs scipy, with which transformers resizes")
    options = {"size": {"height": 96, "width": 96}, **options}
    image = Image.fromarray(np.random.default_rng(sum(size)).integers(0, 256, (*size, 3), np.uint8))
    wanted = transformers.Owlv2ImageProcessorPil(**options)(
        image, return_tensors="np", input_data_format="channels_last"
    )
    ours = ImageProcessor.from_dict({"image_processor_type": "Owlv2ImageProcessor", **options})(image).pixel_values
    np.testing.assert_array_equal(ours, np.moveaxis(wanted["pixel_values"], 1, -1))


def test_a_long_image_is_refused_before_it_is_padded():
    processor = ImageProcessor.from_dict({"image_processor_type": "Owlv2ImageProcessor"})
    with pytest.raises(InputError, match="1 x 20000 would be resized to 20000 x 20000, more than"):
        processor(np.zeros((1, 20000, 3), np.uint8))


@pytest.mark.parametrize("step", ["do_resize", "do_rescale", "do_pad"])
def test_an_owlv2_without_one_of_its_steps_is_refused(step):
    with pytest.raises(UnsupportedError, match=f"{step} = False for Owlv2ImageProcessor"):
        ImageProcessor.from_dict({"image_processor_type": "Owlv2ImageProcessor", step: False})


def test_a_text_ends_at_its_highest_token_whatever_the_config_says(folders):
    ids = np.array([[3, 7, 4, 9, 4], [4, 8, 8, 8, 2]])
    assert zoo.load_model(folders["owlv2"]).text_model.eos_positions(ids).tolist() == [3, 1]


def test_images_of_another_size(folders, theirs):
    import torch

    model, tokenizer, _ = theirs("owlv2")
    pixels = np.random.default_rng(0).standard_normal((2, 40, 40, 3)).astype(np.float32)
    ids = tokenizer(LABELS, return_tensors="np", padding=True)["input_ids"]
    given = {"input_ids": torch.tensor(np.tile(ids, (2, 1))), "pixel_values": torch.tensor(pixels).permute(0, 3, 1, 2)}
    with torch.no_grad():
        wanted = model(**given, interpolate_pos_encoding=True)
    for device in ("cpu", "onnx"):
        ours = zoo.load_model(folders["owlv2"], device=device)(ids, pixels, interpolate_pos_encoding=True)
        for name in ("logits", "pred_boxes", "objectness_logits"):
            np.testing.assert_allclose(getattr(ours, name), wanted[name].numpy(), rtol=1e-4, atol=2e-4)


def test_a_detector_compares_images_and_texts_too(folders):
    task = zoo.load(folders["owlvit"], task="zero-shot-image-classification")
    assert {one.label for one in task(draw(40, 60), LABELS)} == set(LABELS)
    assert zoo.load(folders["owlvit"], task="embed")(draw(40, 60)).shape == (48,)


def test_what_is_refused(folders):
    detector = zoo.load(folders["owlvit"])
    image = draw(40, 60)
    with pytest.raises(InputError, match="candidate_labels have 'a cat' twice"):
        detector(image, ["a cat", "a cat"])
    with pytest.raises(InputError, match="candidate_labels is empty"):
        detector(image, [])
    with pytest.raises(InputError, match=r"threshold is 1\.5"):
        detector(image, "a cat", threshold=1.5)
    with pytest.raises(BatchError):
        detector([image, b"no image"], "a cat, a dog")
    with pytest.raises(ConfigError, match="vision_config: patch_size = 0 is neither"):
        OwlViTConfig.from_dict({"vision_config": {"image_size": 8, "patch_size": 0}})
    config = json.loads((folders["owlvit"] / "config.json").read_text())
    with pytest.raises(ConfigError, match="projection_dim = 40 and hidden_size = 48 of text_config"):
        OwlViTConfig.from_dict({**config, "projection_dim": 40}).check_widths()
