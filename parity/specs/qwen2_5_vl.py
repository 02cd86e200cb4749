"""Qwen2.5-VL checkpoints: in the layout of the Hub, and as transformers saves them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from .common import Spec
from .qwen2_vl import IMAGES, MROPE, TINY_TEXT, TINY_TOKENS, TOKENS, QwenVLSpec


@dataclass(frozen=True, kw_only=True)
class WindowedVLSpec(QwenVLSpec):
    @staticmethod
    def token_order(h: int, w: int, vision: Mapping[str, Any]) -> np.ndarray:
        """Where transformers has each token of an image, window by window, which zoo has row by row."""
        m = vision["spatial_merge_size"]
        side = vision["window_size"] // m // vision["patch_size"]
        rows, columns = np.divmod(np.arange(h * w // m**2), w // m)
        order = np.lexsort((columns, rows, columns // side, rows // side))
        return np.argsort(order)


_VISION = {"depth": 32, "hidden_size": 1280, "out_hidden_size": 2048, "num_heads": 16, "intermediate_size": 3420}
_VISION |= {"patch_size": 14, "spatial_merge_size": 2, "spatial_patch_size": 14, "temporal_patch_size": 2}
_VISION |= {"in_chans": 3, "window_size": 112, "fullatt_block_indexes": [7, 15, 23, 31], "tokens_per_second": 2}
_TEXT = {"hidden_size": 2048, "intermediate_size": 11008, "num_hidden_layers": 36, "num_attention_heads": 16}
_TEXT |= {"num_key_value_heads": 2, "vocab_size": 151936, "rms_norm_eps": 1e-6, "rope_theta": 1000000.0}
_TEXT |= {"rope_scaling": MROPE, "tie_word_embeddings": True, "max_position_embeddings": 128000}
_TEXT |= {"max_window_layers": 70, "sliding_window": 32768, "use_sliding_window": False, "hidden_act": "silu"}
_CONFIG: dict[str, Any] = {**_TEXT, **TOKENS, "vision_config": _VISION}
# Windows of 8 patches, which the edges of images cut.
_TINY_VISION = {**_VISION, "depth": 3, "hidden_size": 48, "out_hidden_size": 64, "num_heads": 4, "patch_size": 4}
_TINY_VISION |= {"intermediate_size": 70, "window_size": 32, "fullatt_block_indexes": [1]}
_TINY = {**TINY_TEXT, **TINY_TOKENS, "vision_config": _TINY_VISION}

_qwen2_5_vl = partial(WindowedVLSpec, model_type="qwen2_5_vl", config=_CONFIG, tiny=_TINY, processor=IMAGES)

SPECS: dict[str, Spec] = {
    "Qwen2.5-VL-3B-Instruct": _qwen2_5_vl(
        like="Qwen/Qwen2.5-VL-3B-Instruct", architecture="Qwen2_5_VLForConditionalGeneration", dtype="BF16"
    ),
    "Qwen2.5-VL-bare": _qwen2_5_vl(
        like="save_pretrained",
        architecture="Qwen2_5_VLModel",
        config={"vision_config": _VISION, "text_config": _TEXT, "image_token_id": 151655},
        tiny={"vision_config": _TINY_VISION, "text_config": TINY_TEXT, "image_token_id": 490},
    ),
}
