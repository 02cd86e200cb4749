"""SLANeXt checkpoints: SAM's encoder, whose layers are not all windows, and SLANet's head."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from .common import Spec
from .pp_ocr import PAGE


@dataclass(frozen=True, kw_only=True)
class SLANeXtSpec(Spec):
    @staticmethod
    def from_stages(
        found: dict[str, np.ndarray], arrays: Mapping[str, np.ndarray], config: Mapping[str, Any]
    ) -> dict[str, np.ndarray]:
        """The encoder's layers give (B, h, w, E), of which the last axis is taken for rows."""
        flat = {
            name: np.moveaxis(x, -1, 1).reshape(len(x), -1, x.shape[2])
            for name, x in found.items()
            if name.startswith(("embeddings", "layer."))
        }
        return {**found, **flat}


_VISION = {"model_type": "slanext_vision", "hidden_size": 768, "image_size": 512, "mlp_dim": 3072}
_VISION |= {"num_hidden_layers": 12, "num_attention_heads": 12, "patch_size": 16, "output_channels": 256}
_VISION |= {"window_size": 14, "global_attn_indexes": [2, 5, 8, 11], "use_abs_pos": True, "use_rel_pos": True}
_CONFIG: dict[str, Any] = {"vision_config": _VISION, "post_conv_out_channels": 512, "out_channels": 50}
_CONFIG |= {"hidden_size": 512, "max_text_length": 500}
_TINY_VISION = {**_VISION, "hidden_size": 32, "image_size": 64, "mlp_dim": 72, "num_hidden_layers": 3, "patch_size": 4}
_TINY_VISION |= {"num_attention_heads": 4, "output_channels": 24, "window_size": 6, "global_attn_indexes": [1]}
_TINY: dict[str, Any] = {"vision_config": _TINY_VISION, "post_conv_in_channels": 24, "post_conv_out_channels": 16}
_TINY |= {"hidden_size": 24, "max_text_length": 5}
_SQUARE = {**PAGE, "size": {"height": 512, "width": 512}}

_slanext = partial(SLANeXtSpec, model_type="slanext", architecture="SLANeXtForTableRecognition", config=_CONFIG)

SPECS: dict[str, Spec] = {
    "slanext": _slanext(
        like="PaddlePaddle/SLANeXt_wired_safetensors", tiny=_TINY, processor=_SQUARE, gains={"post_conv": 0.1}
    ),
}
