"""DETR: the names of its files, the names that labels share, and the heads and backbones that zoo does not have."""

from __future__ import annotations

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


def test_the_panoptic_head_is_refused(tmp_path):
    build("detr-resnet-50", tmp_path)
    edit_config(tmp_path, architectures=["DetrForSegmentation"])
    with pytest.raises(UnsupportedError, match=r"DetrForSegmentation.*it has DetrModel, DetrForObjectDetection"):
        load_model(tmp_path)


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
