"""The image processor: equal bit by bit to transformers' Pillow backend, in every form that a config may have."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from zoo.errors import ConfigError, InputError, NotFoundError, UnsupportedError, ZooError
from zoo.images import ImageProcessor
from zoo.images.presets import PRESETS

HALF = {"image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]}
IMAGENET = {"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}
OLD = {"do_normalize": True, "do_resize": True}

# As on the hub: the forms of each family's checkpoints.
VIT = {**OLD, **HALF, "feature_extractor_type": "ViTFeatureExtractor", "resample": 2, "size": 224}
DEIT = {
    **OLD,
    **IMAGENET,
    "feature_extractor_type": "DeiTFeatureExtractor",
    "crop_size": 224,
    "do_center_crop": True,
    "resample": 3,
    "size": 256,
}
BEIT = {
    **OLD,
    **HALF,
    "feature_extractor_type": "BeitFeatureExtractor",
    "crop_size": 224,
    "do_center_crop": False,
    "reduce_labels": True,
    "resample": 2,
    "size": 224,
}
TROCR = {**VIT, "processor_class": "TrOCRProcessor", "size": 384}
TROCR_SMALL = {**DEIT, **HALF, "processor_class": "TrOCRProcessor", "do_center_crop": False, "size": 384}
TABLE = {
    **OLD,
    **IMAGENET,
    "feature_extractor_type": "DetrFeatureExtractor",
    "format": "coco_detection",
    "max_size": 800,
    "size": 800,
}

DPT = {"image_processor_type": "DPTImageProcessor", "keep_aspect_ratio": True, "ensure_multiple_of": 14}

CONFIGS: dict[str, dict[str, Any]] = {
    "vit": VIT,
    "vit defaults": {"image_processor_type": "ViTImageProcessor"},
    "vit nulls": {**VIT, "do_rescale": None, "do_normalize": None, "image_mean": None, "pad_size": None},
    "detr nulls": {"image_processor_type": "DetrImageProcessor", "size": None, "do_pad": None},
    "detr old pad": {"image_processor_type": "DetrImageProcessor", "pad_and_return_pixel_mask": False},
    "vit fast": {**HALF, "image_processor_type": "ViTImageProcessorFast", "size": {"height": 100, "width": 60}},
    "vit pair": {**VIT, "size": [90, 120], "rescale_factor": 0.00392156862745098, "do_rescale": True},
    "vit crop": {**VIT, "do_center_crop": True, "crop_size": [200, 301]},
    "vit pad": {**VIT, "size": {"shortest_edge": 64}, "do_pad": True},
    "vit pad size": {**VIT, "do_pad": True, "pad_size": {"height": 300, "width": 225}},
    "vit as it is": {**VIT, "do_resize": False, "do_pad": True},
    "vit shortest edge": {**VIT, "size": {"shortest_edge": 224}, "do_center_crop": True, "crop_size": 224},
    "vit within": {**VIT, "size": {"max_height": 100, "max_width": 150}, "do_pad": True},
    "no rescaling": {**VIT, "do_rescale": False},
    "no normalising": {**VIT, "do_normalize": False},
    "neither": {**VIT, "do_normalize": False, "do_rescale": False},
    "odd factor": {**VIT, "do_rescale": True, "rescale_factor": 1 / 127.5},
    "scalar mean": {**VIT, "image_mean": 0.4, "image_std": 0.3},
    "deit": DEIT,
    "deit defaults": {"image_processor_type": "DeiTImageProcessor"},
    "deit odd crop": {**DEIT, "size": 225, "crop_size": {"height": 224, "width": 301}},
    "beit": BEIT,
    "beit defaults": {"image_processor_type": "BeitImageProcessor"},
    "beit ade": {**BEIT, "crop_size": 640, "size": 640},
    "beit crop": {**BEIT, "do_center_crop": True, "size": {"height": 256, "width": 300}},
    "trocr": TROCR,
    "trocr small": TROCR_SMALL,
    "table detection": TABLE,
    "table structure": {**TABLE, "max_size": 1000},
    "bit defaults": {"image_processor_type": "BitImageProcessor"},
    "dinov2": {**IMAGENET, "image_processor_type": "BitImageProcessor", "size": {"shortest_edge": 256}},
    "clip old": {"feature_extractor_type": "CLIPFeatureExtractor", "size": 240, "crop_size": 200, "resample": 3},
    "chinese clip": {"image_processor_type": "ChineseCLIPImageProcessor"},
    "convnext": {**IMAGENET, "feature_extractor_type": "ConvNextFeatureExtractor", "size": 150, "crop_pct": 0.875},
    "convnext defaults": {"image_processor_type": "ConvNextImageProcessor"},
    "convnext unresized": {"image_processor_type": "ConvNextImageProcessor", "do_resize": False, "size": 150},
    "convnext whole": {"image_processor_type": "ConvNextImageProcessor", "size": 400, "crop_pct": None},
    "mobilenet defaults": {"image_processor_type": "MobileNetV2ImageProcessor"},
    "mobilenet": {**HALF, "feature_extractor_type": "MobileNetV2FeatureExtractor", "size": 150, "crop_size": 120},
    "mobilevit defaults": {"image_processor_type": "MobileViTImageProcessor"},
    "mobilevit": {"feature_extractor_type": "MobileViTFeatureExtractor", "size": 150, "crop_size": 120, "resample": 2},
    "mobilevit red first": {
        "image_processor_type": "MobileViTImageProcessor",
        "do_flip_channel_order": False,
        "do_normalize": True,
    },
    "owlvit defaults": {"image_processor_type": "OwlViTImageProcessor"},
    "owlvit": {**HALF, "feature_extractor_type": "OwlViTFeatureExtractor", "size": 150, "crop_size": 120},
    "owlvit cropped": {"image_processor_type": "OwlViTImageProcessor", "size": [90, 70], "do_center_crop": True},
    "efficientnet defaults": {"image_processor_type": "EfficientNetImageProcessor"},
    "efficientnet": {**IMAGENET, "image_processor_type": "EfficientNetImageProcessor", "resample": 0, "size": 90},
    "efficientnet offset": {
        "image_processor_type": "EfficientNetImageProcessor",
        "rescale_factor": 1 / 127.5,
        "rescale_offset": True,
        "include_top": False,
        "do_center_crop": True,
    },
    "efficientnet top alone": {"image_processor_type": "EfficientNetImageProcessor", "do_normalize": False},
    "siglip": {"image_processor_type": "SiglipImageProcessor", "size": {"height": 100, "width": 60}},
    "segformer": {"image_processor_type": "SegformerImageProcessor", "do_reduce_labels": True, "size": 90},
    "layoutlmv3": {"image_processor_type": "LayoutLMv3ImageProcessor", "apply_ocr": False},
    "donut": {"image_processor_type": "DonutImageProcessor", "size": {"height": 128, "width": 96}},
    "donut turned": {
        "feature_extractor_type": "DonutFeatureExtractor",
        "size": [96, 128],
        "do_align_long_axis": True,
        "resample": 3,
    },
    "donut wide": {"image_processor_type": "DonutImageProcessor", "size": {"height": 90, "width": 150}},
    "dpt defaults": {"image_processor_type": "DPTImageProcessor"},
    "dpt": {"image_processor_type": "DPTImageProcessor", "size": [100, 150], "ensure_multiple_of": 14},
    "dpt shape": {**IMAGENET, **DPT, "size": {"height": 140, "width": 210}},
    "pixtral defaults": {"image_processor_type": "PixtralImageProcessor", "patch_size": 14},
    "pixtral smaller": {
        "image_processor_type": "PixtralImageProcessorFast",
        "size": {"longest_edge": 150},
        "patch_size": {"height": 14, "width": 10},
        "default_to_square": True,
    },
    "pixtral pads": {"image_processor_type": "PixtralImageProcessor", "pad_size": {"height": 1100, "width": 1100}},
    "pixtral box": {"image_processor_type": "PixtralImageProcessor", "size": {"height": 90, "width": 200}},
    "sam defaults": {"image_processor_type": "SamImageProcessor", "processor_class": "SamProcessor"},
    "sam": {
        "image_processor_type": "SamImageProcessorFast",
        "size": {"longest_edge": 150},
        "pad_size": {"height": 150, "width": 160},
        "mask_size": {"longest_edge": 32},
        "mask_pad_size": {"height": 32, "width": 32},
    },
    "sam alone": {"image_processor_type": "SamImageProcessor", "size": {"longest_edge": 99}, "do_pad": False},
    "detr defaults": {"image_processor_type": "DetrImageProcessor"},
    "detr int": {"image_processor_type": "DetrImageProcessor", "size": 300},
    "detr edges": {"image_processor_type": "DetrImageProcessor", "size": {"shortest_edge": 200, "longest_edge": 300}},
    "detr max_size unused": {**TABLE, "size": {"shortest_edge": 200, "longest_edge": 250}, "max_size": 7},
    "detr exact": {**TABLE, "size": {"height": 200, "width": 300}},
    "detr pad size": {**TABLE, "size": 100, "max_size": 200, "pad_size": {"height": 210, "width": 250}},
    "detr no crop": {**TABLE, "do_center_crop": True, "crop_size": 100},
    "mask2former": {
        **IMAGENET,
        "image_processor_type": "Mask2FormerImageProcessor",
        "_max_size": 2048,
        "size": {"height": 100, "width": 150},
        "ignore_index": 255,
        "num_labels": 80,
        "reduce_labels": False,
        "size_divisor": 32,
    },
    "mask2former defaults": {"image_processor_type": "Mask2FormerImageProcessor"},
    "mask2former old": {"image_processor_type": "Mask2FormerImageProcessor", "size": 90, "max_size": 150},
    "mask2former within": {
        "image_processor_type": "Mask2FormerImageProcessorFast",
        "size": {"max_height": 90, "max_width": 150},
        "size_divisor": 7,
    },
    "mask2former as it is": {"image_processor_type": "Mask2FormerImageProcessor", "size_divisor": 0, "size": [50, 61]},
    **{f"filter {n}": {**VIT, "resample": n} for n in range(6)},
}
UNREAD_MASKS = {"Mask2Former"}  # whose models do not read a mask
FAMILY = {name: f"{name}ImageProcessorPil" for name in PRESETS}


def noise(height: int, width: int, seed: int = 0) -> Image.Image:
    """Blocks of noise: edges at all sizes, so that a shift by a pixel or another filter shows."""
    rng = np.random.default_rng(seed)
    coarse = np.kron(rng.integers(0, 200, (height // 8 + 1, width // 8 + 1, 3)), np.ones((8, 8, 1), int))
    return Image.fromarray((coarse[:height, :width] + rng.integers(0, 56, (height, width, 3))).astype(np.uint8))


def same(a: ImageProcessor, b: ImageProcessor) -> bool:
    one, other = dataclasses.asdict(a), dataclasses.asdict(b)
    return np.array_equal(one.pop("table"), other.pop("table")) and one == other


IMAGES = {
    "landscape": (480, 640),
    "portrait": (333, 250),
    "square": (224, 224),
    "odd": (101, 77),
    "small": (7, 12),
    "wide": (30, 299),
}


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("image", IMAGES)
def test_equals_transformers(config: str, image: str) -> None:
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    raw, image = CONFIGS[config], noise(*IMAGES[image])
    ours = ImageProcessor.from_dict(raw)
    reference = getattr(transformers, FAMILY[ours.family]).from_dict(dict(raw))
    theirs = reference(images=[image], return_tensors="np")
    batch = ours(image)
    assert batch.pixel_values.dtype == np.float32
    np.testing.assert_array_equal(batch.pixel_values.transpose(0, 3, 1, 2), theirs["pixel_values"])
    assert batch.sizes == [(image.height, image.width)]
    assert (batch.pixel_mask is None) == ("pixel_mask" not in theirs or ours.family in UNREAD_MASKS)
    if batch.pixel_mask is not None:
        np.testing.assert_array_equal(batch.pixel_mask, theirs["pixel_mask"])


@pytest.mark.parametrize("config", ["vit", "deit", "vit pad", "table detection", "detr edges"])
def test_batch_equals_transformers(config: str) -> None:
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    raw, images = CONFIGS[config], [noise(*size, seed=i) for i, size in enumerate(IMAGES.values())]
    ours = ImageProcessor.from_dict(raw)
    theirs = getattr(transformers, FAMILY[ours.family]).from_dict(dict(raw))(images=images, return_tensors="np")
    batch = ours(images)
    np.testing.assert_array_equal(batch.pixel_values.transpose(0, 3, 1, 2), theirs["pixel_values"])
    if batch.pixel_mask is not None:
        assert batch.pixel_mask.dtype == bool
        np.testing.assert_array_equal(batch.pixel_mask, theirs["pixel_mask"])


def test_near_the_torchvision_backend() -> None:
    """The other backend resizes and rounds in other ways: within two grey levels where bicubic enlarges, else one."""
    pytest.importorskip("torchvision", reason="needs torchvision, the other backend")
    transformers = pytest.importorskip("transformers", reason="needs transformers")
    for raw, name in ((VIT, "ViTImageProcessor"), (DEIT, "DeiTImageProcessor"), (TABLE, "DetrImageProcessor")):
        image = noise(480, 640)
        theirs = getattr(transformers, name).from_dict(dict(raw))(images=[image], return_tensors="np")["pixel_values"]
        ours = ImageProcessor.from_dict(raw)(image).pixel_values.transpose(0, 3, 1, 2)
        grey = np.array(raw["image_std"])[:, None, None] * 255
        assert np.abs((ours - theirs) * grey).max() <= 2.01


@pytest.mark.parametrize(
    ("config", "height", "width", "expected"),
    [
        # 640 / 480 * 800 = 1067 > 800, so the short side is 800 * 480 / 640 = 600 and the long one 600 * 640 / 480.
        ("table detection", 480, 640, (600, 800)),
        ("table detection", 1061, 777, (800, 586)),  # 800 * 777 / 1061 = 585.86, rounded to the short side
        ("table structure", 1061, 777, (1000, 732)),
        ("table structure", 800, 1000, (800, 1000)),
        ("detr defaults", 480, 640, (800, 1066)),  # 800 * 640 / 480 = 1066.67, cut
        ("detr defaults", 100, 1000, (133, 1333)),
        ("vit shortest edge", 100, 50, (224, 224)),
        ("vit pad", 480, 640, (64, 85)),
        ("vit within", 480, 640, (100, 133)),
        ("trocr", 480, 640, (384, 384)),
        ("sam alone", 165, 330, (50, 99)),  # 49.5, and halves are rounded up
    ],
)
def test_sizes(config: str, height: int, width: int, expected: tuple[int, int]) -> None:
    processor = ImageProcessor.from_dict(CONFIGS[config])
    assert processor.output_size(height, width) == expected
    assert processor(noise(height, width)).pixel_values.shape[1:3] == expected


@pytest.mark.parametrize(
    ("height", "width", "expected"),
    [(400, 200, (800, 400)), (1600, 800, (800, 400)), (333, 1000, (266, 800)), (800, 3, (800, 3)), (3, 2, (800, 533))],
)
def test_longest_edge_alone(height: int, width: int, expected: tuple[int, int]) -> None:
    """The Table Transformers v1.1 have it, and transformers raises: the long side, up and down, the other rounded."""
    raw = {**IMAGENET, "image_processor_type": "DetrImageProcessor", "size": {"longest_edge": 800}}
    batch = ImageProcessor.from_dict(raw)(noise(height, width))
    assert batch.pixel_values.shape == (1, *expected, 3)
    assert batch.pixel_mask is not None
    assert batch.pixel_mask.all()


def test_normalised_values_by_hand() -> None:
    raw = {**VIT, "size": {"height": 1, "width": 3}, "image_std": [0.5, 0.25, 1.0]}
    colours = np.array([[[0, 0, 0], [255, 255, 255], [51, 51, 51]]], np.uint8)
    values = ImageProcessor.from_dict(raw)(colours).pixel_values
    np.testing.assert_allclose(values[0, 0], [[-1, -2, -0.5], [1, 2, 0.5], [-0.6, -1.2, -0.3]], rtol=1e-6)


def test_small_images_are_cropped_onto_black() -> None:
    raw = {**VIT, "do_resize": False, "do_normalize": False, "do_center_crop": True, "crop_size": [4, 5]}
    values = ImageProcessor.from_dict(raw)(np.full((1, 2, 3), 255, np.uint8)).pixel_values[0, :, :, 0]
    expected = np.zeros((4, 5))
    expected[2, 2:4] = 1  # the odd pixel goes above and to the left
    np.testing.assert_array_equal(values, expected)


def test_images_are_padded_on_the_right_and_below() -> None:
    processor = ImageProcessor.from_dict({**TABLE, "do_resize": False})
    pixel_values, mask, sizes, _ = processor([np.full((2, 3, 3), 9, np.uint8), np.full((4, 1, 3), 9, np.uint8)])
    assert pixel_values.shape == (2, 4, 3, 3)
    assert sizes == [(2, 3), (4, 1)]
    assert mask is not None
    np.testing.assert_array_equal(mask.sum((1, 2)), [6, 4])
    assert mask[0, :2].all()
    assert mask[1, :, 0].all()
    np.testing.assert_array_equal(pixel_values != 0, np.broadcast_to(mask[..., None], pixel_values.shape))


def test_four_dimensions_are_a_list() -> None:
    images = np.stack([np.asarray(noise(20, 30, seed)) for seed in (1, 2)])
    processor = ImageProcessor.from_dict(VIT)
    np.testing.assert_array_equal(processor(images).pixel_values, processor(list(images)).pixel_values)
    first = processor(images.transpose(0, 3, 1, 2), data_format="channels_first").pixel_values
    np.testing.assert_array_equal(first, processor(images).pixel_values)


def test_from_folder(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="preprocessor_config"):
        ImageProcessor.from_folder(tmp_path)
    (tmp_path / "preprocessor_config.json").write_text(json.dumps({**HALF, "size": 32}))
    with pytest.raises(ConfigError, match="which processor"):
        ImageProcessor.from_folder(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "beit"}')
    assert same(
        ImageProcessor.from_folder(tmp_path), ImageProcessor.from_dict({**HALF, "size": 32}, "BeitImageProcessor")
    )
    (tmp_path / "config.json").write_text('{"model_type": "vision-encoder-decoder", "encoder": {"model_type": "deit"}}')
    assert ImageProcessor.from_folder(tmp_path).family == "DeiT"
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    with pytest.raises(ConfigError, match=r"which processor this is, and the model type in config\.json has none"):
        ImageProcessor.from_folder(tmp_path)
    # transformers 5 saves a TrOCR processor in one file.
    nested = {"processor_class": "TrOCRProcessor", "image_processor": {**TROCR, "size": 48}}
    (tmp_path / "processor_config.json").write_text(json.dumps(nested))
    assert ImageProcessor.from_folder(tmp_path).size == {"height": 48, "width": 48}


def test_from_folder_saved_by_transformers(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    for name, raw in CONFIGS.items():
        ours = ImageProcessor.from_dict(raw)
        getattr(transformers, FAMILY[ours.family]).from_dict(dict(raw)).save_pretrained(tmp_path)
        assert same(ImageProcessor.from_folder(tmp_path), ours), name


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"size": 0}, ConfigError, "size = 0"),
        ({"size": True}, ConfigError, "size = True"),
        ({"size": 10**9}, ConfigError, "1 ... 32768"),
        ({"size": [20000, 20000]}, ConfigError, "pixels"),
        ({"size": [1, 2, 3]}, ConfigError, "size"),
        ({"size": "224"}, ConfigError, "'224'"),
        ({"size": 224.5}, ConfigError, "224.5"),
        ({"size": {"height": 224}}, UnsupportedError, "shortest_edge"),
        ({"size": {"min_pixels": 4, "max_pixels": 9}}, UnsupportedError, "min_pixels"),
        ({"max_size": 800}, UnsupportedError, "max_size"),
        ({"do_center_crop": True}, ConfigError, "crop_size = None"),
        ({"do_center_crop": True, "crop_size": {"shortest_edge": 9}}, ConfigError, "crop_size"),
        ({"do_resize": "yes"}, ConfigError, "do_resize"),
        ({"resample": 6}, ConfigError, "resample = 6"),
        ({"resample": "bilinear"}, ConfigError, "resample"),
        ({"image_mean": [0.5]}, UnsupportedError, "1 channels"),
        ({"image_mean": [0.5, "0.5", 0.5]}, ConfigError, "image_mean"),
        ({"image_std": [0.5, 0.0, 0.5]}, ConfigError, "not finite"),
        ({"image_mean": None}, ConfigError, "image_mean = None"),
        ({"resample": None}, ConfigError, "resample = None"),
        ({"size": None}, ConfigError, "size = None"),
        ({"rescale_factor": "1/255", "do_rescale": True}, ConfigError, "rescale_factor"),
        ({"rescale_factor": 1e300}, ConfigError, "not finite"),
        ({"do_flip_channel_order": True}, UnsupportedError, "do_flip_channel_order"),
        ({"do_nomalize": True}, UnsupportedError, "did you mean 'do_normalize'"),
        ({"size_divisor": 32}, UnsupportedError, "size_divisor"),
        ({"default_to_square": False}, UnsupportedError, "default_to_square"),
        ({"feature_extractor_type": "LevitFeatureExtractor"}, UnsupportedError, "LevitFeatureExtractor"),
        ({"image_processor_type": "ViTHybridImageProcessor"}, UnsupportedError, "did you mean"),
        ({"image_processor_type": "ConvNextImageProcessor", "crop_pct": 0}, ConfigError, "crop_pct = 0, expected"),
        ({"image_processor_type": "ConvNextImageProcessor", "do_center_crop": True}, UnsupportedError, "crop"),
        (
            {"feature_extractor_type": "DetrFeatureExtractor", "size": None, "max_size": 9},
            ConfigError,
            "without a size",
        ),
    ],
)
def test_refused_configs(change: dict[str, Any], error: type[ZooError], message: str) -> None:
    with pytest.raises(error, match=message):
        ImageProcessor.from_dict({**VIT, **change})


def test_keys_that_change_nothing() -> None:
    raw = {
        **VIT,
        "default_to_square": True,
        "do_convert_rgb": None,
        "do_flip_channel_order": False,
        "size_divisor": None,
        "auto_map": {"a": "b"},
    }
    assert same(ImageProcessor.from_dict(raw), ImageProcessor.from_dict(VIT))


def test_refused_batches() -> None:
    with pytest.raises(InputError, match=r"224 x 224 does not fit into pad_size = \(300, 200\)"):
        ImageProcessor.from_dict({**VIT, "do_pad": True, "pad_size": [300, 200]})(noise(9, 9))
    with pytest.raises(InputError, match="images is empty"):
        ImageProcessor.from_dict(VIT)([])
    with pytest.raises(InputError, match=r"different sizes \(\(224, 298\) and \(298, 224\)"):
        ImageProcessor.from_dict({**VIT, "size": {"shortest_edge": 224}})([noise(30, 40), noise(40, 30)])
    with pytest.raises(InputError, match="image 1 of 2: 1 x 10000 is too narrow"):
        ImageProcessor.from_dict(TABLE)([noise(5, 5), np.zeros((1, 10000, 3), np.uint8)])
    with pytest.raises(InputError, match="would be resized to 224 x 2240000"):
        ImageProcessor.from_dict({**VIT, "size": {"shortest_edge": 224}})(np.zeros((1, 10000, 3), np.uint8))
    with pytest.raises(InputError, match=r"of type list is not an image"):
        ImageProcessor.from_dict(VIT)([[noise(5, 5)]])


def test_pillow_is_imported_at_first_use() -> None:
    code = "import sys, zoo.images; assert not {'PIL', 'torch', 'transformers'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)


def test_a_line_is_padded_with_paper_and_not_stretched():
    raw = {"image_processor_type": "ViTImageProcessor", "size": {"height": 8, "width": 80}, "do_pad_line": True}
    processor = ImageProcessor.from_dict({**raw, "do_rescale": False, "do_normalize": False})
    line = np.full((16, 40, 3), (250, 240, 230), np.uint8)
    line[4:12, 8:32] = 0
    (wide,) = processor(line).pixel_values
    assert wide.shape == (8, 80, 3)
    small = np.asarray(Image.fromarray(line).resize((20, 8), Image.Resampling.BILINEAR))
    np.testing.assert_array_equal(wide[:, :20], small)
    assert (wide[:, 20:] == (250, 240, 230)).all()
    long = np.zeros((2, 90, 3), np.uint8)  # longer than 10 to 1: squeezed
    assert processor([line, long]).pixel_values.shape == (2, 8, 80, 3)
    with pytest.raises(ConfigError, match="do_pad_line"):
        ImageProcessor.from_dict({**raw, "image_processor_type": "DetrImageProcessor", "size": 800})
