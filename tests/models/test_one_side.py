"""An encoder out of a checkpoint of two, against the same class of transformers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import zoo
from parity.checkpoints import build
from zoo.errors import UnsupportedError


@pytest.mark.parametrize("spec", ["clip-vit-base-patch32", "siglip-base-patch16-224"])
def test_one_side_of_both(spec, tmp_path):
    """Each encoder reads its part of a checkpoint of both, and is saved as one of its own."""
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    torch = pytest.importorskip("torch", reason="needs torch, the reference")
    folder = build(spec, tmp_path / spec)
    ids, pixels = np.arange(1, 9).reshape(1, 8), np.random.default_rng(0).normal(size=(1, 24, 24, 3))
    pixels = pixels.astype(np.float32)
    prefix = "CLIP" if spec.startswith("clip") else "Siglip"
    width = {"projection_dim": 32} if prefix == "CLIP" else {}  # which transformers looks for in the side's config
    given = {"Text": torch.tensor(ids), "Vision": torch.tensor(pixels).permute(0, 3, 1, 2)}
    heads = [f"{side}Model" for side in given]
    for head in [*heads, *(f"{head}WithProjection" for head in heads if prefix == "CLIP")]:
        side = head.partition("Model")[0]
        theirs = getattr(transformers, prefix + head).from_pretrained(folder, **width).eval()
        with torch.no_grad():
            wanted = theirs(given[side])
        ours: Any = zoo.load_model(folder, head=head, strict=True)
        assert ours.architecture == prefix + head
        same: Any = type(ours).from_pretrained(folder)
        zoo.save(ours, tmp_path / head)
        for model in (ours, same, zoo.load_model(tmp_path / head)):
            found: Any = model
            found = found(ids if side == "Text" else pixels)
            np.testing.assert_allclose(found.last_hidden_state, wanted.last_hidden_state, atol=1e-4)
            name = ours.embeds if side == "Text" else next(iter(found._fields))
            np.testing.assert_allclose(getattr(found, name), getattr(wanted, name), atol=1e-4)
    with pytest.raises(UnsupportedError, match="has no"):
        zoo.load_model(folder, head="TextForMaskedLM")
