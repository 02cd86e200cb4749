"""SAM 2 checkpoints: in the layout of the Hub, which is that of videos, and the model of pictures with other sizes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from .common import Loaded, Spec
from .sam import MaskSpec


@dataclass(frozen=True, kw_only=True)
class Sam2Spec(MaskSpec):
    not_compared = ("image_embeddings",)  # the maps, which zoo's output does not repeat

    def processor_of(self, config: Mapping[str, Any]) -> dict[str, Any]:
        side = config["prompt_encoder_config"]["image_size"]
        return {**self.processor, "size": {"height": side, "width": side}}

    def unread_tensors(self, config: Mapping[str, Any], names: Collection[str]) -> Iterator[tuple[str, np.ndarray]]:
        """Some of what remembers the frames of videos."""
        if self.model_type == "sam2_video":
            for name in ("memory_attention.layers.0.linear1.weight", "memory_encoder.projection.bias"):
                yield name, np.zeros(4, np.float32)
            for name in ("mask_downsample.weight", "object_pointer_proj.proj_in.weight", "no_object_pointer"):
                yield name, np.zeros(4, np.float32)
            yield "temporal_positional_encoding_projection_layer.weight", np.zeros(4, np.float32)
            for name in ("memory_temporal_positional_encoding", "no_memory_positional_encoding"):
                yield name, np.zeros(4, np.float32)
            yield "occlusion_spatial_embedding_parameter", np.zeros(4, np.float32)

    @staticmethod
    def from_stages(
        found: dict[str, np.ndarray], arrays: Mapping[str, np.ndarray], config: Mapping[str, Any]
    ) -> dict[str, np.ndarray]:
        """The encoder's layers give (N, Y, X, D), of which the second axis is taken for channels."""
        return {
            name: np.moveaxis(x, -1, 1) if name.startswith(("layer.", "embeddings")) else x for name, x in found.items()
        }

    @staticmethod
    def load_reference(model_class: Any, folder: Path, config: Mapping[str, Any], dtype: Any) -> Loaded:
        """transformers' model of pictures, of a checkpoint for videos too, as its own pipeline takes it."""
        import transformers

        return Spec.load_reference(transformers.Sam2Model, folder, config, dtype)


_HIERA = {"model_type": "sam2_hiera_det_model", "hidden_size": 96, "num_attention_heads": 1, "image_size": [1024, 1024]}
_HIERA |= {"patch_kernel_size": [7, 7], "patch_stride": [4, 4], "patch_padding": [3, 3], "query_stride": [2, 2]}
_HIERA |= {"window_positional_embedding_background_size": [7, 7], "num_query_pool_stages": 3, "mlp_ratio": 4.0}
_HIERA |= {"blocks_per_stage": [1, 2, 7, 2], "embed_dim_per_stage": [96, 192, 384, 768], "hidden_act": "gelu"}
_HIERA |= {"num_attention_heads_per_stage": [1, 2, 4, 8], "window_size_per_stage": [8, 4, 14, 7]}
_HIERA |= {"global_attention_blocks": [5, 7, 9], "layer_norm_eps": 1e-6}
_VISION = {"model_type": "sam2_vision_model", "backbone_config": _HIERA, "backbone_channel_list": [768, 384, 192, 96]}
_VISION |= {"backbone_feature_sizes": [[256, 256], [128, 128], [64, 64]], "fpn_hidden_size": 256, "fpn_padding": 0}
_VISION |= {"fpn_kernel_size": 1, "fpn_stride": 1, "fpn_top_down_levels": [2, 3], "num_feature_levels": 3}
_PROMPT = {"model_type": "sam2_prompt_encoder", "hidden_size": 256, "image_size": 1024, "patch_size": 16}
_PROMPT |= {"mask_input_channels": 16, "num_point_embeddings": 4, "hidden_act": "gelu", "layer_norm_eps": 1e-6}
_DECODER = {"model_type": "sam2_mask_decoder", "hidden_size": 256, "hidden_act": "gelu", "mlp_dim": 2048}
_DECODER |= {"num_hidden_layers": 2, "num_attention_heads": 8, "attention_downsample_rate": 2, "scale": 1}
_DECODER |= {"num_multimask_outputs": 3, "iou_head_depth": 3, "iou_head_hidden_dim": 256}
_DECODER |= {"dynamic_multimask_via_stability": True, "dynamic_multimask_stability_delta": 0.05}
_DECODER |= {"dynamic_multimask_stability_thresh": 0.98}
_CONFIG: dict[str, Any] = {"vision_config": _VISION, "prompt_encoder_config": _PROMPT, "mask_decoder_config": _DECODER}
_TINY_HIERA = {**_HIERA, "hidden_size": 16, "image_size": [64, 64], "embed_dim_per_stage": [16, 24, 32, 40]}
_TINY_HIERA |= {"blocks_per_stage": [1, 2, 3, 1], "num_attention_heads_per_stage": [1, 2, 2, 4]}
_TINY_HIERA |= {"window_size_per_stage": [4, 5, 3, 2], "global_attention_blocks": [4]}
_TINY_HIERA |= {"window_positional_embedding_background_size": [5, 7]}
_TINY_VISION = {**_VISION, "backbone_config": _TINY_HIERA, "backbone_channel_list": [40, 32, 24, 16]}
_TINY_VISION |= {"backbone_feature_sizes": [[16, 16], [8, 8], [4, 4]], "fpn_hidden_size": 32}
_TINY_PROMPT = {**_PROMPT, "hidden_size": 32, "image_size": 64, "mask_input_channels": 8}
_TINY_DECODER = {**_DECODER, "hidden_size": 32, "mlp_dim": 56, "num_attention_heads": 4, "iou_head_hidden_dim": 24}
_TINY: dict[str, Any] = {
    "vision_config": _TINY_VISION,
    "prompt_encoder_config": _TINY_PROMPT,
    "mask_decoder_config": _TINY_DECODER,
}
_VIDEO = {"prompt_encoder_config": {"model_type": "sam2_video_prompt_encoder"}}
_VIDEO |= {"mask_decoder_config": {"model_type": "sam2_video_mask_decoder"}}
_IMAGES = {"image_processor_type": "Sam2ImageProcessorFast", "do_resize": True, "resample": 2, "do_rescale": True}
_IMAGES |= {"size": {"height": 1024, "width": 1024}, "rescale_factor": 1 / 255, "do_normalize": True}
_IMAGES |= {"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225], "do_convert_rgb": True}
_IMAGES |= {"mask_size": {"height": 256, "width": 256}, "processor_class": "Sam2VideoProcessor"}


def name_parts(config: Mapping[str, Any]) -> dict[str, Any]:
    """The config with the names that the parts of a checkpoint for videos have."""
    return {**config, **{name: {**config[name], **part} for name, part in _VIDEO.items()}}


# The score of an object is one number: near 0 it is the rounding of larger ones.
_sam2 = partial(Sam2Spec, processor=_IMAGES, gains={"pred_obj_score_head.proj_out.bias": 400.0})

SPECS: dict[str, Spec] = {
    "sam2.1-hiera-tiny": _sam2(
        like="facebook/sam2.1-hiera-tiny",
        model_type="sam2_video",
        architecture="Sam2VideoModel",
        config=name_parts(_CONFIG),
        tiny=name_parts(_TINY),
        full=True,
    ),
    "sam2-pictures": _sam2(
        like="save_pretrained", model_type="sam2", architecture="Sam2Model", config=_CONFIG, tiny=_TINY
    ),
    "sam2-odd": _sam2(
        like="save_pretrained",
        model_type="sam2",
        architecture="Sam2Model",
        format="sharded",
        config=_CONFIG,
        tiny={
            "vision_config": {
                **_TINY_VISION,
                "fpn_top_down_levels": [1, 3],
                "backbone_config": {**_TINY_HIERA, "window_size_per_stage": [8, 6, 3, 5], "mlp_ratio": 2.5},
            },
            "prompt_encoder_config": {**_TINY_PROMPT, "hidden_act": "relu"},
            "mask_decoder_config": {
                **_TINY_DECODER,
                "iou_head_depth": 2,
                "num_multimask_outputs": 2,
                "dynamic_multimask_via_stability": False,
            },
        },
    ),
}
