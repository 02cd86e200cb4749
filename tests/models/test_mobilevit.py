"""MobileViT: maps that cannot be cut into patches, the order of channels, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

from parity.checkpoints import build
from zoo.errors import ConfigError
from zoo.loading import load_model
from zoo.models.mobilevit import MobileViTConfig


@pytest.mark.parametrize(("name", "size"), [("mobilevit-small", (70, 101)), ("deeplabv3-mobilevit-small", (97, 64))])
def test_maps_of_any_size(tmp_path, name, size):
    """The stages' maps have odd sides, and are resized to be cut."""
    torch = pytest.importorskip("torch", reason="needs torch, the reference")
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    model = load_model(build(name, tmp_path))
    pixels = np.random.default_rng(0).standard_normal((2, *size, 3)).astype(np.float32)
    theirs = getattr(transformers, model.architecture).from_pretrained(tmp_path).eval()
    with torch.no_grad():
        wanted = theirs(torch.from_numpy(pixels.transpose(0, 3, 1, 2).copy())).logits.numpy()
    found = model(pixels)
    found = found if wanted.ndim == 2 else found.transpose(0, 3, 1, 2)
    assert np.abs(found - wanted).max() <= 2e-5 * np.abs(wanted).max()


def test_configs_that_cannot_be():
    with pytest.raises(ConfigError, match="hidden_sizes"):
        MobileViTConfig.from_dict({"num_attention_heads": 7})
    with pytest.raises(ConfigError, match="expected 3 numbers"):
        MobileViTConfig.from_dict({"atrous_rates": [6, 12]})
    with pytest.raises(ConfigError, match="odd number"):
        MobileViTConfig.from_dict({"conv_kernel_size": 4})
