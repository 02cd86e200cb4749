"""SAM checkpoints: in the layout of the Hub, and with other windows, depths and widths."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from .common import Spec


@dataclass(frozen=True, kw_only=True)
class MaskSpec(Spec):
    def processor_of(self, config: Mapping[str, Any]) -> dict[str, Any]:
        side = config["vision_config"]["image_size"]
        return {**self.processor, "size": {"longest_edge": side}, "pad_size": {"height": side, "width": side}}

    @staticmethod
    def arguments(given: dict[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
        """A coarse mask is an image of one channel for transformers."""
        masks = {"input_masks": given["input_masks"][:, None]} if "input_masks" in given else {}
        return {**Spec.arguments(given, config), **masks}

    @staticmethod
    def from_stages(
        found: dict[str, np.ndarray], arrays: Mapping[str, np.ndarray], config: Mapping[str, Any]
    ) -> dict[str, np.ndarray]:
        """The encoder's layers give (N, h, w, E), of which the last axis is taken for rows."""
        return {
            name: np.moveaxis(x, -1, 1).reshape(len(x), -1, x.shape[2])
            if name.startswith(("layer.", "embeddings"))
            else x
            for name, x in found.items()
        }


_VISION = {"hidden_size": 768, "output_channels": 256, "num_hidden_layers": 12, "num_attention_heads": 12}
_VISION |= {"num_channels": 3, "image_size": 1024, "patch_size": 16, "hidden_act": "gelu", "layer_norm_eps": 1e-6}
_VISION |= {"qkv_bias": True, "mlp_ratio": 4.0, "use_abs_pos": True, "use_rel_pos": True, "window_size": 14}
_VISION |= {"global_attn_indexes": [2, 5, 8, 11], "num_pos_feats": 128, "mlp_dim": 3072, "model_type": ""}
_PROMPT = {"hidden_size": 256, "image_size": 1024, "patch_size": 16, "mask_input_channels": 16, "model_type": ""}
_PROMPT |= {"num_point_embeddings": 4, "hidden_act": "gelu", "layer_norm_eps": 1e-6, "image_embedding_size": 64}
_DECODER = {"hidden_size": 256, "hidden_act": "relu", "mlp_dim": 2048, "num_hidden_layers": 2, "model_type": ""}
_DECODER |= {"num_attention_heads": 8, "attention_downsample_rate": 2, "num_multimask_outputs": 3}
_DECODER |= {"iou_head_depth": 3, "iou_head_hidden_dim": 256, "layer_norm_eps": 1e-6}
_CONFIG: dict[str, Any] = {"vision_config": _VISION, "prompt_encoder_config": _PROMPT, "mask_decoder_config": _DECODER}
_TINY_VISION = {**_VISION, "hidden_size": 32, "output_channels": 32, "num_hidden_layers": 3, "num_attention_heads": 4}
_TINY_VISION |= {"image_size": 64, "patch_size": 4, "window_size": 6, "mlp_dim": 72, "global_attn_indexes": [1]}
_TINY_VISION |= {"num_pos_feats": 16}
_TINY_PROMPT = {**_PROMPT, "hidden_size": 32, "image_size": 64, "patch_size": 4, "mask_input_channels": 8}
_TINY_PROMPT |= {"image_embedding_size": 16}
_TINY_DECODER = {**_DECODER, "hidden_size": 32, "mlp_dim": 56, "num_attention_heads": 4, "iou_head_hidden_dim": 24}
_TINY: dict[str, Any] = {
    "vision_config": _TINY_VISION,
    "prompt_encoder_config": _TINY_PROMPT,
    "mask_decoder_config": _TINY_DECODER,
}
_IMAGES = {"image_processor_type": "SamImageProcessor", "do_resize": True, "size": {"longest_edge": 1024}}
_IMAGES |= {"resample": 2, "do_rescale": True, "rescale_factor": 1 / 255, "do_normalize": True, "do_pad": True}
_IMAGES |= {"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225], "do_convert_rgb": True}
_IMAGES |= {"pad_size": {"height": 1024, "width": 1024}, "processor_class": "SamProcessor"}

_sam = partial(MaskSpec, model_type="sam", architecture="SamModel", config=_CONFIG, tiny=_TINY, processor=_IMAGES)

SPECS: dict[str, Spec] = {
    "sam-vit-base": _sam(like="facebook/sam-vit-base", full=True),
    "sam-odd": _sam(
        like="save_pretrained",
        format="sharded",
        tiny={
            "vision_config": {**_TINY_VISION, "mlp_dim": None, "window_size": 5, "qkv_bias": False, "mlp_ratio": 2.5},
            "prompt_encoder_config": {**_TINY_PROMPT, "hidden_act": "relu", "mask_input_channels": 4},
            "mask_decoder_config": {
                **_TINY_DECODER,
                "hidden_act": "gelu",
                "num_hidden_layers": 3,
                "iou_head_depth": 2,
                "num_multimask_outputs": 2,
            },
        },
    ),
}
