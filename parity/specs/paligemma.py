"""PaliGemma checkpoints in the layout of the Hub."""

from __future__ import annotations

from functools import partial
from typing import Any

from .common import Spec
from .gemma3_vision import Gemma3VisionSpec

_VISION = {"model_type": "siglip_vision_model", "hidden_size": 1152, "intermediate_size": 4304, "image_size": 224}
_VISION |= {"num_hidden_layers": 27, "num_attention_heads": 16, "patch_size": 14, "vision_use_head": False}
_TEXT = {"model_type": "gemma", "hidden_size": 2048, "intermediate_size": 16384, "num_hidden_layers": 18}
_TEXT |= {"num_attention_heads": 8, "num_key_value_heads": 1, "vocab_size": 257216, "num_image_tokens": 256}
_CONFIG: dict[str, Any] = {"text_config": _TEXT, "vision_config": _VISION, "image_token_index": 257152}
_CONFIG |= {"projection_dim": 2048, "hidden_size": 2048, "bos_token_id": 2, "eos_token_id": 1, "pad_token_id": 0}
_TINY_VISION = {**_VISION, "hidden_size": 40, "intermediate_size": 72, "num_hidden_layers": 3, "image_size": 32}
_TINY_VISION |= {"num_attention_heads": 4, "patch_size": 8}
_TINY_TEXT = {**_TEXT, "vocab_size": 500, "hidden_size": 64, "intermediate_size": 112, "num_hidden_layers": 3}
_TINY_TEXT |= {"head_dim": 16, "num_attention_heads": 4, "num_key_value_heads": 1, "max_position_embeddings": 512}
_TINY = {"text_config": _TINY_TEXT, "vision_config": _TINY_VISION, "image_token_index": 490}
_TINY |= {"projection_dim": 64, "hidden_size": 64}
_IMAGES = {"image_processor_type": "SiglipImageProcessor", "size": {"height": 224, "width": 224}, "resample": 3}
_IMAGES |= {"do_convert_rgb": None, "image_seq_length": 256}

_paligemma = partial(Gemma3VisionSpec, model_type="paligemma", config=_CONFIG, tiny=_TINY, processor=_IMAGES)

SPECS: dict[str, Spec] = {
    "paligemma-3b-mix-224": _paligemma(
        like="google/paligemma-3b-mix-224", architecture="PaliGemmaForConditionalGeneration", dtype="BF16"
    ),
    "paligemma-bare": _paligemma(like="save_pretrained", architecture="PaliGemmaModel"),
}
