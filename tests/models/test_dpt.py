"""DPT: what its config refuses, images that are not square, and the ways to read the class token."""

from __future__ import annotations

import numpy as np
import pytest

import zoo
from zoo.errors import ConfigError, UnsupportedError
from zoo.models.dpt import DPTConfig

SMALL = {"hidden_size": 32, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 48}
SMALL |= {"image_size": 24, "patch_size": 4, "backbone_out_indices": [0, 1, 2, 3], "fusion_hidden_size": 16}
SMALL |= {"neck_hidden_sizes": [8, 12, 16, 24]}


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        ({"is_hybrid": True, "backbone_config": {"model_type": "bit"}}, UnsupportedError, "is_hybrid = True"),
        ({"backbone_config": {"model_type": "dinov2"}}, UnsupportedError, "backbone_config = {'model_type': 'dinov2'}"),
        ({"backbone": "resnet50"}, UnsupportedError, "backbone = 'resnet50'"),
        ({"image_size": [384, 512]}, UnsupportedError, r"image_size = \[384, 512\]"),
        ({"patch_size": [16, 8]}, UnsupportedError, r"patch_size = \[16, 8\]"),
        ({"readout_type": "projekt"}, ConfigError, "did you mean 'project'"),
        ({"backbone_out_indices": [2, 5, 8, 12]}, ConfigError, "backbone_out_indices"),
        ({"backbone_out_indices": [5, 2, 8, 11]}, ConfigError, "backbone_out_indices"),
        ({"neck_hidden_sizes": [96, 192, 384]}, ConfigError, "neck_hidden_sizes"),
        ({"reassemble_factors": [4, 2, 1, 0.25]}, UnsupportedError, "reassemble_factors"),
        ({"head_in_index": 4}, ConfigError, "head_in_index = 4"),
        ({"fusion_hidden_size": 1}, ConfigError, "fusion_hidden_size = 1"),
        ({"add_projection": True, "fusion_hidden_size": 64}, ConfigError, "fusion_hidden_size = 256"),
        ({"pooler_output_size": -1}, ConfigError, "pooler_output_size = -1"),
        ({"semantic_classifier_dropout": 1.5}, ConfigError, "semantic_classifier_dropout"),
    ],
)
def test_what_is_refused(fields, error, message):
    DPTConfig.from_dict({})
    with pytest.raises(error, match=message):
        DPTConfig.from_dict(fields)


@pytest.mark.parametrize("readout", ["ignore", "add", "project"])
@pytest.mark.parametrize("size", [(24, 24), (20, 36), (28, 8), (36, 16)])
def test_images_of_any_shape(readout, size, tmp_path, rng):
    """transformers' forward takes every map for a square, 9 x 4 patches for 6 x 6; its neck can be told the grid."""
    torch = pytest.importorskip("torch", reason="needs torch, the reference")
    checkpoints = pytest.importorskip("vision_checkpoints", reason="needs transformers, the reference")
    theirs = checkpoints.reference("DPTForDepthEstimation", tmp_path, SMALL, readout_type=readout)
    with torch.no_grad():
        theirs.head.head[4].bias.add_(1)  # depths are above 0
    theirs.save_pretrained(tmp_path)
    x = checkpoints.pixels(rng, *size)
    with torch.no_grad():
        states = theirs.dpt(torch.from_numpy(x).permute(0, 3, 1, 2), output_hidden_states=True).hidden_states[1:]
        wanted = theirs.head(theirs.neck(list(states), size[0] // 4, size[1] // 4)).numpy()
    for device in checkpoints.DEVICES:
        found = zoo.load_model(tmp_path, device=device)(x).predicted_depth
        np.testing.assert_allclose(np.asarray(found), wanted, rtol=0, atol=2e-5 * np.abs(wanted).max())


@pytest.mark.parametrize("norm", [True, False])
@pytest.mark.parametrize("bias", [True, False, None])
@pytest.mark.parametrize("index", [-1, 1])
def test_segmentation(norm, bias, index, tmp_path, rng):
    checkpoints = pytest.importorskip("vision_checkpoints", reason="needs transformers, the reference")
    fields = {"use_batch_norm_in_fusion_residual": norm, "use_bias_in_fusion_residual": bias, "head_in_index": index}
    theirs = checkpoints.reference("DPTForSemanticSegmentation", tmp_path, SMALL, num_labels=5, **fields)
    x = checkpoints.pixels(rng, 28, 28)
    found = zoo.load_model(tmp_path, device="cpu")(x)
    checkpoints.assert_close(found, checkpoints.run(theirs, x))
