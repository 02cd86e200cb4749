"""RF-DETR: files that transformers writes, windows, groups of queries, masks, and what it refuses."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import zoo
from parity.checkpoints import build
from parity.pictures import page
from zoo.errors import ConfigError, InputError, UnsupportedError
from zoo.images.instances import post_process_instance_segmentation
from zoo.loading import load_model
from zoo.models.rf_detr import RfDetrConfig

BACKBONE = {"model_type": "rf_detr_dinov2", "hidden_size": 32, "num_attention_heads": 4, "num_hidden_layers": 5}
BACKBONE |= {"mlp_ratio": 2, "image_size": 56, "patch_size": 7, "num_windows": 2, "out_features": ["stage1", "stage4"]}
SMALL = {"d_model": 32, "decoder_ffn_dim": 40, "decoder_layers": 3, "decoder_self_attention_heads": 2, "num_labels": 5}
SMALL |= {"decoder_cross_attention_heads": 8, "num_queries": 7, "group_detr": 2, "intermediate_size": 24}
LABELS = {0: "cat", 1: "dog", 2: "sky"}


def reference(folder, name, backbone=None, **config):
    """A random model of transformers, saved in `folder`."""
    torch = pytest.importorskip("torch", reason="needs torch, the reference")
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    torch.manual_seed(0)
    given = {**SMALL, **config, "backbone_config": {**BACKBONE, **(backbone or {})}}
    model = getattr(transformers, name)(transformers.RfDetrConfig(**given, attn_implementation="eager")).eval()
    with torch.no_grad():
        for p in model.parameters():
            p.add_(torch.randn_like(p) * 0.1)
    model.save_pretrained(folder)
    return model


def compare(folder, model, x, mask=None, tolerance=5e-5):
    tables = pytest.importorskip("table_checkpoints", reason="needs torch and transformers, the reference")
    wanted = tables.run(model, x, mask)
    for device in ("cpu", "torch:cpu"):
        found = load_model(folder, device=device, strict=True)(x, mask)
        tables.assert_close(found, {name: wanted[name] for name in found._fields}, tolerance)


@pytest.mark.parametrize("name", ["RfDetrForObjectDetection", "RfDetrForInstanceSegmentation", "RfDetrModel"])
def test_files_that_transformers_writes(name, tmp_path, rng):
    model = reference(tmp_path, name)
    for side in (56, 84):  # the size of the config, and one whose positions are resized
        compare(tmp_path, model, rng.standard_normal((2, side, side, 3)).astype(np.float32))


@pytest.mark.parametrize(
    "backbone",
    [
        {"num_windows": 1},
        {"num_windows": 4},
        {"out_features": ["stage2", "stage3", "stage5"]},
        {"out_features": ["stem", "stage3"], "qkv_bias": False},
        {"apply_layernorm": False, "use_mask_token": False},
    ],
    ids=str,
)
def test_windows_and_the_layers_that_see_the_whole_image(backbone, tmp_path, rng):
    more = {"attention_bias": False, "hidden_expansion": 0.75, "activation_function": "relu"}
    model = reference(tmp_path, "RfDetrForObjectDetection", backbone, **more)
    compare(tmp_path, model, rng.standard_normal((1, 56, 56, 3)).astype(np.float32))


def test_padding(tmp_path, rng):
    model = reference(tmp_path, "RfDetrForObjectDetection")
    mask = np.ones((2, 56, 56), bool)
    mask[1, 40:] = mask[1, :, 33:] = False
    compare(tmp_path, model, rng.standard_normal((2, 56, 56, 3)).astype(np.float32) * mask[..., None], mask)


def test_images_are_squares_of_whole_windows(tmp_path):
    model: Any = load_model(build("rf-detr-base", tmp_path))
    for size in ((96, 64), (48, 48), (97, 97)):
        with pytest.raises(InputError, match="expected"):
            model(np.zeros((1, *size, 3), np.float32))
    with pytest.raises(InputError, match="num_queries = 20"):
        model(np.zeros((1, 32, 32, 3), np.float32))


def test_instances_are_those_of_transformers(rng, monkeypatch):
    torch = pytest.importorskip("torch", reason="needs torch, the reference")
    pytest.importorskip("transformers", reason="needs transformers, the reference")
    if "torchvision" not in sys.modules:  # which the file imports, and this function does not need
        for name in ("torchvision", "torchvision.transforms", "torchvision.transforms.v2"):
            monkeypatch.setitem(sys.modules, name, ModuleType(name))
        sys.modules["torchvision.transforms.v2"].functional = SimpleNamespace(InterpolationMode=object)  # type: ignore[attr-defined]
    try:
        from transformers.models.rf_detr.image_processing_rf_detr import RfDetrImageProcessor
    except Exception as e:
        pytest.skip(f"transformers' image processor cannot be imported: {e}")
    logits = (rng.standard_normal((2, 9, 3)) * 2).astype(np.float32)
    masks = rng.standard_normal((2, 9, 5, 7)).astype(np.float32)
    given, sizes = SimpleNamespace(logits=torch.tensor(logits), pred_masks=torch.tensor(masks)), [(11, 9), (20, 31)]
    for thresholds in ((0.5, 0.0), (0.2, 0.7)):
        options: Any = dict(zip(("threshold", "mask_threshold"), thresholds, strict=True))
        wanted = RfDetrImageProcessor.post_process_instance_segmentation(None, given, target_sizes=sizes, **options)
        found = post_process_instance_segmentation(logits, masks, sizes, LABELS, **options)
        for (mask, objects), one in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(mask, np.maximum(one["segmentation"].numpy(), 0))
            assert [(o.id, o.label_id) for o in objects] == [(s["id"], s["label_id"]) for s in one["segments_info"]]
            scores = [s["score"] for s in one["segments_info"]]
            np.testing.assert_allclose([o.score for o in objects], scores, atol=2e-6)
            assert [o.share for o in objects] == [float((mask == o.id).mean()) for o in objects]


def test_pixels_are_rescaled_before_they_are_resized(tmp_path):
    torch = pytest.importorskip("torch", reason="needs torch, the reference")
    found = zoo.load(build("rf-detr-base", tmp_path)).processor(page()).pixel_values[0]
    pixels = torch.tensor(np.asarray(page())).permute(2, 0, 1)[None] / 255
    wanted = torch.nn.functional.interpolate(pixels, size=found.shape[:2], mode="bilinear")[0].permute(1, 2, 0).numpy()
    wanted = (wanted - np.array([0.485, 0.456, 0.406])) / np.array([0.229, 0.224, 0.225])
    np.testing.assert_allclose(found, wanted, rtol=0, atol=5e-6)


def test_segment_and_detect(tmp_path):
    task = zoo.load(build("rf-detr-seg", tmp_path / "masks"))
    assert (task.name, type(task).__name__) == ("segment", "SegmentInstances")
    found = task(page(), threshold=0.3)
    assert found.mask.shape == (page().height, page().width)
    assert len(found.labels) == found.mask.max() > 0
    assert [area.share for area in found.labels] == sorted((area.share for area in found.labels), reverse=True)
    with pytest.raises(InputError, match="mask_threshold"):
        task(page(), mask_threshold="0")
    assert zoo.load(build("rf-detr-base", tmp_path / "boxes")).name == "detect"


def test_what_is_refused():
    for backbone, error in (
        ({"use_swiglu_ffn": True}, UnsupportedError),
        ({"reshape_hidden_states": False}, UnsupportedError),
        ({"num_windows": 0}, ConfigError),
        ({"image_size": [56, 64]}, ConfigError),
    ):
        with pytest.raises(error, match=next(iter(backbone))):
            RfDetrConfig.from_dict({"backbone_config": {**BACKBONE, **backbone}})
    for field in ({"num_feature_levels": 2}, {"head_dim": 7}):
        with pytest.raises(UnsupportedError, match=next(iter(field))):
            RfDetrConfig.from_dict(field)
    assert RfDetrConfig.from_dict({}).network.outputs == (2, 5, 8, 11)
