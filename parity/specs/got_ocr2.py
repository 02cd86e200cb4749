"""GOT-OCR 2.0 checkpoints: in the layout of the Hub, and the bare model with other windows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from .common import Spec
from .internvl import InternVLSpec


@dataclass(frozen=True, kw_only=True)
class GotOcr2Spec(InternVLSpec):
    @staticmethod
    def from_stages(
        found: dict[str, np.ndarray], arrays: Mapping[str, np.ndarray], config: Mapping[str, Any]
    ) -> dict[str, np.ndarray]:
        """The encoder's layers give (N, h, w, E), of which the last axis is taken for rows."""
        flat = {
            name: np.moveaxis(x, -1, 1).reshape(len(x), -1, x.shape[2])
            for name, x in found.items()
            if name.startswith("vision_model.")
        }
        return {**found, **flat}


_VISION = {"model_type": "got_ocr2_vision", "hidden_size": 768, "image_size": 1024, "mlp_dim": 3072}
_VISION |= {"num_hidden_layers": 12, "num_attention_heads": 12, "patch_size": 16, "output_channels": 256}
_VISION |= {"window_size": 14, "global_attn_indexes": [2, 5, 8, 11], "use_abs_pos": True, "use_rel_pos": True}
_TEXT = {"model_type": "qwen2", "vocab_size": 151860, "hidden_size": 1024, "intermediate_size": 2816}
_TEXT |= {"num_hidden_layers": 24, "num_attention_heads": 16, "num_key_value_heads": 16, "rope_theta": 1000000.0}
_TEXT |= {"max_position_embeddings": 32768, "tie_word_embeddings": True}
_CONFIG: dict[str, Any] = {"text_config": _TEXT, "vision_config": _VISION, "image_token_index": 151859}
_CONFIG |= {"image_seq_length": 256, "eos_token_id": 151645}
_TINY_VISION = {**_VISION, "hidden_size": 32, "image_size": 64, "mlp_dim": 72, "num_hidden_layers": 3, "patch_size": 4}
_TINY_VISION |= {"num_attention_heads": 4, "output_channels": 24, "window_size": 6, "global_attn_indexes": [1]}
_TINY_TEXT = {**_TEXT, "vocab_size": 500, "hidden_size": 48, "intermediate_size": 72, "num_hidden_layers": 3}
_TINY_TEXT |= {"num_attention_heads": 6, "num_key_value_heads": 2, "max_position_embeddings": 512}
_TINY_TEXT |= {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 2}
_TINY = {"text_config": _TINY_TEXT, "vision_config": _TINY_VISION, "image_token_index": 490}
_IMAGES = {"image_processor_type": "GotOcr2ImageProcessor", "size": {"height": 1024, "width": 1024}, "resample": 3}
_IMAGES |= {"crop_to_patches": False, "min_patches": 1, "max_patches": 12, "do_convert_rgb": True}
_IMAGES |= {"image_mean": [0.48145466, 0.4578275, 0.40821073], "image_std": [0.26862954, 0.26130258, 0.27577711]}

_got_ocr2 = partial(GotOcr2Spec, model_type="got_ocr2", config=_CONFIG, tiny=_TINY, processor=_IMAGES)

SPECS: dict[str, Spec] = {
    "GOT-OCR-2.0-hf": _got_ocr2(
        like="stepfun-ai/GOT-OCR-2.0-hf", architecture="GotOcr2ForConditionalGeneration", dtype="BF16", full=True
    ),
    "GOT-OCR-2.0-bare": _got_ocr2(
        like="save_pretrained",
        architecture="GotOcr2Model",
        tiny={**_TINY, "vision_config": {**_TINY_VISION, "patch_size": 8, "window_size": 4, "qkv_bias": False}},
    ),
}
