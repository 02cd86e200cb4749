"""Table Transformer and DETR checkpoints that transformers wrote, in each of the layouts that the hub has."""

from __future__ import annotations

import numpy as np
import pytest
from vision_checkpoints import edit_config, rename

from parity.specs.table import timm_name

torch = pytest.importorskip("torch", reason="needs torch, the reference")
transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")

DEVICES = ["cpu", "torch:cpu"]
SMALL = {
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 40,
    "num_queries": 11,
    "num_labels": 6,
}
BASIC = {"layer_type": "basic", "embedding_size": 8, "hidden_sizes": [8, 12, 16, 24], "depths": [2, 1, 2, 1]}
BOTTLENECK = {**BASIC, "layer_type": "bottleneck", "hidden_sizes": [16, 16, 24, 32]}
RESNET18 = {"layer_type": "basic", "hidden_sizes": [64, 128, 256, 512], "depths": [2, 2, 2, 2]}


def reference(folder, name="TableTransformerForObjectDetection", backbone=BASIC, stages=("stage2", "stage4"), **config):
    """A random model of transformers, saved in `folder`; biases, norms and statistics away from 0 and 1."""
    torch.manual_seed(0)
    backbone = transformers.ResNetConfig(**backbone, out_features=list(stages))
    kinds = {"Detr": transformers.DetrConfig, "Cond": transformers.ConditionalDetrConfig}
    kinds["Defo"] = transformers.DeformableDetrConfig
    kind = kinds.get(name[:4], transformers.TableTransformerConfig)
    config = kind(**{**SMALL, **config}, backbone_config=backbone, use_timm_backbone=False, attn_implementation="eager")
    model = getattr(transformers, name)(config).eval()
    with torch.no_grad():
        for p in model.parameters():
            p.add_(torch.randn_like(p) * 0.1)
        for key, buffer in model.named_buffers():
            if key.endswith("running_var"):
                buffer.mul_(torch.rand_like(buffer) + 0.5)
            elif buffer.is_floating_point():
                buffer.add_(torch.randn_like(buffer) * 0.1)
    model.save_pretrained(folder)
    edit_config(folder, backbone=None, dilation=None)  # as the hub's files of this layout are
    return model


def as_timm(folder, name="resnet18"):
    """Write the checkpoint in `folder` again as the first ones were: timm's names, three stray counters, no config."""
    from safetensors.numpy import load_file, save_file

    rename(folder, timm_name)
    path = folder / "model.safetensors"
    strays = {
        f"model.backbone.conv_encoder.model.layer{i}.0.downsample.1.num_batches_tracked": np.array(0) for i in (2, 3, 4)
    }
    save_file({**load_file(path), **strays}, path, {"format": "pt"})
    edit_config(folder, remove=("use_timm_backbone", "backbone_config"), backbone=name, dilation=False)
    return set(strays)


def padded(rng, *sizes, channels=3):
    """Images of several sizes in one batch, and the mask that says which pixels are theirs."""
    height, width = (max(size[i] for size in sizes) for i in (0, 1))
    x = np.zeros((len(sizes), height, width, channels), np.float32)
    mask = np.zeros((len(sizes), height, width), bool)
    for i, (h, w) in enumerate(sizes):
        x[i, :h, :w] = rng.standard_normal((h, w, channels))
        mask[i, :h, :w] = True
    return x, mask


def run(model, x, mask=None):
    """The outputs of transformers, by name."""
    with torch.no_grad():
        found = model(torch.from_numpy(x).permute(0, 3, 1, 2), None if mask is None else torch.from_numpy(mask * 1))
    return {k: v for k, v in found.items() if v is not None}


def assert_close(found, wanted, tolerance=2e-5):
    found = {k: v for k, v in found._asdict().items() if v is not None}
    assert found.keys() == wanted.keys()
    for key, a in found.items():
        a, b = np.asarray(a, np.float64), np.asarray(wanted[key], np.float64)
        assert a.shape == b.shape, key
        np.testing.assert_allclose(a, b, rtol=0, atol=tolerance * np.abs(b).max(), err_msg=key)
