"""Depth Anything checkpoints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from ..pictures import draw
from .common import Spec
from .dinov2 import CONFIG as DINOV2
from .dinov2 import TINY as TINY_DINOV2

if TYPE_CHECKING:
    from PIL import Image

    from zoo.images import ImageProcessor

_BACKBONE = {"model_type": "dinov2", "architectures": ["Dinov2Model"], "hidden_size": 384, "num_attention_heads": 6}
_BACKBONE |= {"image_size": 518, "patch_size": 14, "reshape_hidden_states": False, "out_indices": [3, 6, 9, 12]}
_BACKBONE |= {"out_features": ["stage3", "stage6", "stage9", "stage12"]}
_SMALL = {**DINOV2, **TINY_DINOV2, "model_type": "dinov2", "num_hidden_layers": 4, "image_size": 56}
_SMALL |= {"reshape_hidden_states": False, "out_indices": [1, 2, 3, 4]}

CONFIG = {"backbone": None, "backbone_config": _BACKBONE, "patch_size": 14, "reassemble_hidden_size": 384}
CONFIG |= {"reassemble_factors": [4, 2, 1, 0.5], "neck_hidden_sizes": [48, 96, 192, 384], "fusion_hidden_size": 64}
CONFIG |= {"head_in_index": -1, "head_hidden_size": 32, "initializer_range": 0.02, "use_pretrained_backbone": False}
TINY = {"backbone_config": _SMALL, "reassemble_hidden_size": 48, "neck_hidden_sizes": [8, 12, 16, 24]}
TINY |= {"fusion_hidden_size": 16, "head_hidden_size": 8}

IMAGES = {"image_processor_type": "DPTImageProcessor", "do_resize": True, "size": {"height": 518, "width": 518}}
IMAGES |= {"resample": 3, "keep_aspect_ratio": True, "ensure_multiple_of": 14, "do_pad": False, "size_divisor": None}
IMAGES |= {"do_rescale": True, "rescale_factor": 0.00392156862745098, "do_normalize": True}
IMAGES |= {"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}


@dataclass(frozen=True, kw_only=True)
class DepthSpec(Spec):
    def processor_of(self, config: Mapping[str, Any]) -> dict[str, Any]:
        edge = config["backbone_config"]["image_size"]
        return {**self.processor, "size": {"height": edge, "width": edge}}

    @staticmethod
    def pictures(config: Any, processor: ImageProcessor, seed: int) -> Sequence[Image.Image]:
        return [draw(300, 420, seed), draw(300, 420, seed + 1)]  # of one shape, that of no square


_depth_anything = partial(
    DepthSpec,
    model_type="depth_anything",
    architecture="DepthAnythingForDepthEstimation",
    config=CONFIG,
    tiny=TINY,
    processor=IMAGES,
    gains={"head.conv3.bias": 40.0, "head.conv3": 0.2},  # depths are above 0
    # The first fusion has no larger map, and no patch is hidden.
    inert=(*Spec.inert, r"fusion_stage\.layers\.0\.residual_layer1\.", r"mask_token$"),
)

SPECS: dict[str, Spec] = {
    "Depth-Anything-V2-Small": _depth_anything(like="depth-anything/Depth-Anything-V2-Small-hf", full=True),
    "depth-anything-metric": _depth_anything(
        like="save_pretrained",
        config={**CONFIG, "depth_estimation_type": "metric", "max_depth": 20},
        processor={**IMAGES, "keep_aspect_ratio": False},
        format="sharded",
    ),
}
