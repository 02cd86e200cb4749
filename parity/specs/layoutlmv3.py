"""LayoutLMv3 checkpoints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from .common import Spec, labels

CONFIG = {"vocab_size": 50265, "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12}
CONFIG |= {"intermediate_size": 3072, "hidden_act": "gelu", "max_position_embeddings": 514, "type_vocab_size": 1}
CONFIG |= {"layer_norm_eps": 1e-5, "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "coordinate_size": 128}
CONFIG |= {"shape_size": 128, "max_2d_position_embeddings": 1024, "has_relative_attention_bias": True}
CONFIG |= {"has_spatial_attention_bias": True, "rel_pos_bins": 32, "max_rel_pos": 128, "rel_2d_pos_bins": 64}
CONFIG |= {"max_rel_2d_pos": 256, "text_embed": True, "visual_embed": True, "input_size": 224, "patch_size": 16}
TINY = {"vocab_size": 500, "hidden_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4, "input_size": 48}
TINY |= {"intermediate_size": 72, "max_position_embeddings": 162, "coordinate_size": 8, "shape_size": 8}

IMAGES = {"image_processor_type": "LayoutLMv3ImageProcessor", "apply_ocr": False, "do_resize": True, "size": 224}
IMAGES |= {"resample": 2, "do_normalize": True, "image_mean": [0.5] * 3, "image_std": [0.5] * 3}


@dataclass(frozen=True, kw_only=True)
class PageSpec(Spec):
    def processor_of(self, config: Mapping[str, Any]) -> dict[str, Any]:
        return {**self.processor, "size": config["input_size"]}


_layoutlmv3 = partial(PageSpec, model_type="layoutlmv3", config=CONFIG, tiny=TINY, processor=IMAGES, reserved=2)

SPECS: dict[str, Spec] = {
    "layoutlmv3-base": _layoutlmv3(like="microsoft/layoutlmv3-base", architecture="LayoutLMv3Model", full=True),
    "layoutlmv3-funsd": _layoutlmv3(
        like="save_pretrained",
        architecture="LayoutLMv3ForTokenClassification",
        config={**CONFIG, **labels(count=7), "type_vocab_size": 2},
    ),
    "layoutlmv3-cord": _layoutlmv3(
        like="save_pretrained",
        architecture="LayoutLMv3ForTokenClassification",
        config={**CONFIG, **labels(count=12)},
        format="sharded",
    ),
    "layoutlmv3-classifier": _layoutlmv3(
        like="save_pretrained",
        architecture="LayoutLMv3ForSequenceClassification",
        config={**CONFIG, **labels(count=3)},
    ),
    "layoutlmv3-docvqa": _layoutlmv3(
        like="save_pretrained", architecture="LayoutLMv3ForQuestionAnswering", config={**CONFIG, **labels(count=2)}
    ),
}
