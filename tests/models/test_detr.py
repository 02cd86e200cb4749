"""DETR: the names of its files, the names that labels share, and the heads and backbones that zoo does not have."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from table_checkpoints import assert_close, padded, reference, run
from vision_checkpoints import as_in_memory, edit_config

import zoo
from parity.checkpoints import build
from parity.specs.detr import SPECS
from zoo.errors import UnsupportedError
from zoo.loading import load_model
from zoo.models.detr import DetrConfig, DetrForObjectDetection
from zoo.models.table_transformer import TableTransformerForObjectDetection

CASES = {
    "detection": {"name": "DetrForObjectDetection"},
    "learned positions": {"name": "DetrForObjectDetection", "position_embedding_type": "learned"},
    "body for training": {"name": "DetrModel", "auxiliary_loss": True},
}


@pytest.mark.parametrize("in_memory", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_files_that_transformers_writes_and_its_names_in_memory(case, in_memory, tmp_path, rng):
    model = reference(tmp_path, **CASES[case])
    if in_memory:
        as_in_memory(model, tmp_path)
    x, mask = padded(rng, (70, 130), (100, 64), (33, 33))
    for device in ("cpu", "torch:cpu"):
        ours: Any = load_model(tmp_path, device=device, strict=True)
        assert_close(ours(x, mask), run(model, x, mask), 5e-5)


def test_labels_may_share_a_name(tmp_path):
    """COCO has 91 numbers and 80 names."""
    task = zoo.load(build("detr-resnet-50", tmp_path))
    names = task.config.id2label
    assert list(names.values()).count("N/A") > 1
    found = task(np.random.default_rng(0).integers(0, 256, (90, 120, 3), np.uint8), threshold=0.0)
    assert {one.label for one in found} <= set(names.values())
    assert len(found) == task.config.num_queries


def test_a_table_transformer_is_no_detr(tmp_path):
    """The two differ in one norm's name and in the order of all norms: neither loads as the other."""
    build("detr-resnet-50", tmp_path)
    edit_config(tmp_path, model_type="table-transformer", architectures=["TableTransformerForObjectDetection"])
    with pytest.raises(zoo.ZooError, match=r"no tensor 'model\.encoder\.layernorm\.weight'"):
        load_model(tmp_path)
    assert not issubclass(DetrForObjectDetection, TableTransformerForObjectDetection)


def test_segmentation_of_files_with_timms_names_and_of_transformers_own(tmp_path, rng):
    """The head's tensors have facebook's names in both, and others in the memory of transformers 5."""
    small = {"d_model": 64, "encoder_attention_heads": 8, "stages": [f"stage{i}" for i in (1, 2, 3, 4)]}
    model = reference(tmp_path, "DetrForSegmentation", **small)
    x, mask = padded(rng, (70, 130), (100, 64), (33, 33))
    wanted = run(model, x, mask)
    ours: Any = load_model(tmp_path, strict=True)
    assert_close(ours(x, mask), wanted, 5e-5)
    as_in_memory(model, tmp_path)
    ours = load_model(tmp_path, strict=True, device="torch:cpu")
    assert_close(ours(x, mask), wanted, 5e-5)
    edit_config(tmp_path, encoder_attention_heads=4)
    with pytest.raises(zoo.ZooError, match=r"mask_head\.conv1.*expected \(68, 68, 3, 3\)"):
        load_model(tmp_path)


@pytest.mark.parametrize("fused", [(), (0,)])
def test_objects_of_pixels_are_those_of_transformers(fused, rng):
    import torch
    from transformers import DetrImageProcessor

    from zoo.images.segments import post_process_panoptic_segmentation

    B, Q, L, y, x, sizes = 3, 7, 3, 12, 9, [(31, 40), (12, 9), (50, 17)]
    at = np.stack(np.meshgrid(np.arange(y), np.arange(x), indexing="ij"), -1)
    centres = rng.uniform(0, 12, (B, Q, 1, 1, 2))
    masks = (4 - ((at - centres) ** 2).sum(-1)).astype(np.float32)
    logits = rng.standard_normal((B, Q, L + 1)).astype(np.float32) * 4
    logits[:, :, L] -= 3
    logits[2, :, L] = 20  # nothing in the third
    logits[1, 4:, 0] -= 40  # so that no other label comes between two that are one: transformers confuses these
    names = {i: f"kind {i}" for i in range(L)}
    given = SimpleNamespace(logits=torch.from_numpy(logits), pred_masks=torch.from_numpy(masks))
    theirs = DetrImageProcessor().post_process_panoptic_segmentation(
        given, label_ids_to_fuse=set(fused), target_sizes=sizes
    )
    ours = post_process_panoptic_segmentation(logits, masks, sizes, names, label_ids_to_fuse=fused)
    assert sum(len(objects) for _, objects in ours) > 5
    for (mask, objects), wanted in zip(ours, theirs, strict=True):
        if not fused:
            assert np.array_equal(mask, wanted["segmentation"].numpy())
            found = [(one.id, one.label_id, one.was_fused, round(one.score, 5)) for one in objects]
            keys = "id", "label_id", "was_fused", "score"
            assert found == [
                (*(one[key] for key in keys[:3]), round(one["score"], 5)) for one in wanted["segments_info"]
            ]
        assert {one.label_id for one in objects} == {one["label_id"] for one in wanted["segments_info"]}
        assert len({one.id for one in objects}) == len(objects)
        for one in objects:
            assert one.share == pytest.approx((mask == one.id).mean())
    if fused:
        assert all([one.label_id for one in objects].count(0) <= 1 for _, objects in ours)


def test_a_picture_to_instances_and_to_labels(tmp_path):
    torch = pytest.importorskip("torch", reason="needs torch, the reference")
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    task: Any = zoo.load(build("detr-segmentation", tmp_path))
    picture = np.random.default_rng(0).integers(0, 256, (50, 40, 3), np.uint8)
    batch = task.processor(picture)
    out = task.model(batch.pixel_values)
    given = SimpleNamespace(logits=torch.tensor(out.logits), pred_masks=torch.tensor(out.pred_masks))
    processor, sizes = transformers.DetrImageProcessorPil(), [(50, 40)]
    options: dict[str, Any] = {"threshold": 0.1, "mask_threshold": 0.0, "overlap_mask_area_threshold": 0.1}
    (wanted,) = processor.post_process_instance_segmentation(given, **options, target_sizes=sizes)
    found = task(picture, subtask="instance", **options)
    assert (found.mask == wanted["segmentation"].numpy()).mean() > 0.99
    assert {(o.id, o.label_id) for o in found.labels} == {(s["id"], s["label_id"]) for s in wanted["segments_info"]}
    (wanted,) = processor.post_process_semantic_segmentation(given, sizes)
    assert (task(picture, subtask="semantic").mask == wanted.numpy()).mean() > 0.99
    with pytest.raises(zoo.ZooError, match=r"label_ids_to_fuse is \[1\], but an instance"):
        task(picture, subtask="instance", label_ids_to_fuse=[1])


def test_a_picture_to_its_objects(tmp_path):
    task: Any = zoo.load(build("detr-segmentation", tmp_path))
    assert (task.name, type(task).__name__) == ("segment", "SegmentObjects")
    pictures = np.random.default_rng(0).integers(0, 256, (2, 50, 40, 3), np.uint8)
    found = task(pictures, threshold=0.1, mask_threshold=0.0, overlap_mask_area_threshold=0.0)
    for one, picture in zip(found, pictures, strict=True):
        assert one.mask.shape == (50, 40)
        assert {area.id for area in one.labels} == {*np.unique(one.mask).tolist()} - {0}
        assert [area.share for area in one.labels] == sorted((area.share for area in one.labels), reverse=True)
        assert np.asarray(one.overlay(alpha=0.0)).tolist() == picture.tolist()
    assert any(one.labels for one in found)
    assert task(pictures[0], threshold=1.0).labels == []
    with pytest.raises(zoo.ZooError, match="mask_threshold is 2, expected a number in 0"):
        task(pictures[0], mask_threshold=2)


def test_a_dilated_backbone_is_refused():
    with pytest.raises(UnsupportedError, match="dilation = True"):
        DetrConfig.from_dict({"model_type": "detr", "backbone": "resnet50", "dilation": True})


def test_the_layout_of_the_hub_has_timms_names(tmp_path):
    from zoo.weights.files import open_weights

    names = set(open_weights(build("detr-resnet-50-timm", tmp_path)).names())
    prefix = "model.backbone.conv_encoder.model."
    assert {f"{prefix}conv1.weight", f"{prefix}layer4.2.bn3.running_var"} <= names
    assert {"model.encoder.layers.0.self_attn.out_proj.bias", "model.decoder.layers.2.fc1.weight"} <= names
    assert SPECS["detr-resnet-50-timm"].full


def test_options_of_timms_model_as_version_4_of_transformers_writes_them():
    options = {"in_chans": 4, "out_indices": [1, 2, 3, 4]}
    resnet = DetrConfig.from_dict({"backbone": "resnet50", "backbone_kwargs": options}).resnet
    assert (resnet.num_channels, resnet.outputs) == (4, (1, 2, 3, 4))
