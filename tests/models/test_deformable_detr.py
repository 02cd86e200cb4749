"""Deformable DETR: files that transformers writes, its kinds of heads, levels and padding, and what it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import zoo
from parity.checkpoints import build
from parity.pictures import page
from zoo.errors import ConfigError, InputError, UnsupportedError
from zoo.loading import load_model
from zoo.models.deformable_detr import DeformableDetrConfig

KINDS = [{}, {"with_box_refine": True}, {"with_box_refine": True, "two_stage": True, "two_stage_num_proposals": 30}]
NAME = "DeformableDetrForObjectDetection"


def compare(folder, model, rng, padded=True):
    """Compare with transformers' outputs those that zoo has; of padding the encoder's states are noise."""
    import table_checkpoints as tables

    x, mask = tables.padded(rng, (70, 130), (100, 64), (33, 39))
    mask = mask if padded else None
    wanted = tables.run(model, x, mask)
    for device in ("cpu", "torch:cpu"):
        ours: Any = load_model(folder, device=device, strict=True)
        found = ours(x, mask)
        found = found._replace(encoder_last_hidden_state=None) if padded else found
        names = [name for name, value in found._asdict().items() if value is not None]
        tables.assert_close(found, {name: wanted[name] for name in names}, 2e-4)  # transformers errs by that


@pytest.mark.parametrize("kind", KINDS, ids=["plain", "refined", "two stages"])
@pytest.mark.parametrize("in_memory", [False, True])
def test_files_that_transformers_writes_and_its_names_in_memory(kind, in_memory, tmp_path, rng):
    tables = pytest.importorskip("table_checkpoints", reason="needs torch and transformers, the reference")
    from safetensors.torch import save_file

    model = tables.reference(tmp_path, NAME, stages=("stage2", "stage3", "stage4"), decoder_layers=3, **kind)
    if in_memory:  # each of the tied heads too
        save_file(
            {k: v.clone() for k, v in model.state_dict().items()}, tmp_path / "model.safetensors", {"format": "pt"}
        )
    compare(tmp_path, model, rng)
    compare(tmp_path, model, rng, padded=False)


@pytest.mark.parametrize(
    ("levels", "stages"), [(1, ("stage4",)), (3, ("stage4",)), (6, ("stage3", "stage4")), (2, ("stage1", "stage4"))]
)
def test_levels_beyond_those_of_the_backbone_are_each_half_of_the_one_before(levels, stages, tmp_path, rng):
    tables = pytest.importorskip("table_checkpoints", reason="needs torch and transformers, the reference")
    kind = {"num_feature_levels": levels, "encoder_n_points": 1, "decoder_n_points": 3, **KINDS[2]}
    model = tables.reference(tmp_path, NAME, stages=stages, **{**kind, "two_stage_num_proposals": 4})
    compare(tmp_path, model, rng)


@pytest.mark.parametrize("kind", KINDS, ids=["plain", "refined", "two stages"])
def test_heads_that_differ_from_layer_to_layer(kind, tmp_path, rng):
    tables = pytest.importorskip("table_checkpoints", reason="needs torch and transformers, the reference")
    model = tables.reference(
        tmp_path, NAME, stages=("stage2", "stage4"), tie_word_embeddings=False, auxiliary_loss=True, **kind
    )
    compare(tmp_path, model, rng)


def test_the_bare_model_leaves_places_where_they_were(tmp_path, rng):
    tables = pytest.importorskip("table_checkpoints", reason="needs torch and transformers, the reference")
    model = tables.reference(tmp_path, "DeformableDetrModel", with_box_refine=True, position_embedding_type="learned")
    compare(tmp_path, model, rng)


def test_an_image_with_fewer_places_than_proposals_is_refused(tmp_path):
    model: Any = load_model(build("deformable-detr-with-box-refine-two-stage", tmp_path))
    with pytest.raises(InputError, match="two_stage_num_proposals = 25"):
        model(np.zeros((1, 16, 16, 3), np.float32))


def test_an_image_has_up_to_a_hundred_objects(tmp_path):
    found = zoo.load(build("deformable-detr", tmp_path))(page(), threshold=0.0)
    assert len(found) == 100


def test_what_is_refused():
    with pytest.raises(UnsupportedError, match="dilation"):
        DeformableDetrConfig.from_dict({"dilation": True})
    with pytest.raises(ConfigError, match="with_box_refine"):
        DeformableDetrConfig.from_dict({"two_stage": True})
    with pytest.raises(ConfigError, match="multiple of 32"):
        DeformableDetrConfig.from_dict({"d_model": 48})
    for levels in (2, 65):
        with pytest.raises(ConfigError, match=f"num_feature_levels = {levels}"):
            DeformableDetrConfig.from_dict({"num_feature_levels": levels})
    assert DeformableDetrConfig.from_dict({}).resnet.outputs == (2, 3, 4)
    assert DeformableDetrConfig.from_dict({"num_feature_levels": 1}).resnet.outputs == (4,)
