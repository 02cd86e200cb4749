"""RF-DETR: the Hub's checkpoints have Roboflow's names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from ..pictures import page
from .common import Spec, labels

if TYPE_CHECKING:
    from PIL import Image

    from zoo.images import ImageProcessor


@dataclass(frozen=True, kw_only=True)
class RfDetrSpec(Spec):
    not_compared: ClassVar[tuple[str, ...]] = (
        *("intermediate_hidden_states", "intermediate_reference_points", "backbone_features"),
        *("enc_outputs_class", "enc_outputs_coord_logits", "enc_outputs_mask_logits", "init_reference_points"),
    )
    square: ClassVar[bool] = True

    def file_name(self, name: str) -> str:
        return name.removeprefix("model.")

    def processor_of(self, config: Mapping[str, Any]) -> dict[str, Any]:
        edge = 96 if config["d_model"] == TINY["d_model"] else 560
        return {**self.processor, "size": {"height": edge, "width": edge}}

    @staticmethod
    def pictures(config: Any, processor: ImageProcessor, seed: int) -> Sequence[Image.Image]:
        return [page()]


_BACKBONE: dict[str, Any] = {"model_type": "rf_detr_dinov2", "hidden_size": 384, "num_attention_heads": 6}
_BACKBONE |= {"num_hidden_layers": 12, "mlp_ratio": 4, "image_size": 518, "patch_size": 14, "num_windows": 4}
_BACKBONE |= {"out_features": ["stage2", "stage5", "stage8", "stage11"], "out_indices": [2, 5, 8, 11]}
_BACKBONE |= {"layer_norm_eps": 1e-6, "hidden_act": "gelu", "num_channels": 3, "qkv_bias": True}
CONFIG: dict[str, Any] = {"activation_dropout": 0.0, "activation_function": "silu", "attention_bias": True}
CONFIG |= {"attention_dropout": 0.0, "auxiliary_loss": True, "c2f_num_blocks": 3, "d_model": 256, "dropout": 0.1}
CONFIG |= {"decoder_activation_function": "relu", "decoder_cross_attention_heads": 16, "decoder_ffn_dim": 2048}
CONFIG |= {"decoder_layers": 3, "decoder_n_points": 2, "decoder_self_attention_heads": 8, "group_detr": 13}
CONFIG |= {"hidden_expansion": 0.5, "layer_norm_eps": 1e-5, "num_feature_levels": 1, "num_queries": 300}
CONFIG |= {"mask_downsample_ratio": 4, "segmentation_head_activation_function": "gelu", "intermediate_size": 1024}
CONFIG |= {"backbone_config": _BACKBONE, **labels(*("N/A" if i % 8 == 0 else f"thing {i}" for i in range(91)))}
# Images of 96 pixels are 12 x 12 patches, 3 x 3 of them in each of 16 windows.
TINY: dict[str, Any] = {"d_model": 32, "decoder_ffn_dim": 40, "decoder_layers": 2, "decoder_n_points": 3}
TINY |= {"decoder_self_attention_heads": 2, "decoder_cross_attention_heads": 4, "num_queries": 20, "group_detr": 3}
TINY |= {"c2f_num_blocks": 2, "intermediate_size": 48, "hidden_expansion": 0.75, **labels(count=6)}
_SMALL = {"hidden_size": 32, "num_attention_heads": 2, "num_hidden_layers": 5, "mlp_ratio": 2, "image_size": 64}
_SMALL |= {"patch_size": 8, "out_features": ["stage1", "stage3", "stage4"], "out_indices": [1, 3, 4]}
TINY |= {"backbone_config": {**_BACKBONE, **_SMALL}}

_PROCESSOR = {"image_processor_type": "RfDetrImageProcessor", "format": "coco_detection", "do_rescale": True}
_PROCESSOR |= {"do_resize": True, "do_normalize": True, "do_pad": True, "resample": 2, "do_convert_annotations": True}
_PROCESSOR |= {"rescale_factor": 0.00392156862745098}
_PROCESSOR |= {"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}
# Queries differ, the points of attention are some way apart, and there are objects to compare.
GAINS = {"sampling_offsets": 2, "sampling_offsets.bias": 40, "attention_weights": 2, "class_embed": 4}
GAINS |= {
    "query_feat.weight": 3,
    "refpoint_embed.weight": 0.2,
    "bbox_embed.layers.2": 0.3,
    "bbox_embed.0.layers.2": 0.3,
}


def _rf_detr(like: str, config: Mapping[str, Any], head: str = "ForObjectDetection", **more: Any) -> RfDetrSpec:
    return RfDetrSpec(
        like=like,
        model_type="rf_detr",
        architecture=f"RfDetr{head}",
        config={**CONFIG, **config},
        tiny=TINY,
        processor=_PROCESSOR,
        gains=GAINS,
        # Biases of keys, the other groups of queries, which are for training, and the layer after the last stage.
        inert=(r"\.key\.bias$", r"\.(enc_out\w*)\.[^0]\d*\.", r"mask_token$", r"encoder\.layer\.4\."),
        **more,
    )


SPECS: dict[str, RfDetrSpec] = {
    "rf-detr-base": _rf_detr("Roboflow/rf-detr-base", {}),
    "rf-detr-seg": _rf_detr("Roboflow/rf-detr-seg-preview", {}, "ForInstanceSegmentation"),
    "rf-detr-bare": _rf_detr("save_pretrained", {}, "Model"),
}
