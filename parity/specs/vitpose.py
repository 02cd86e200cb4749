"""ViTPose checkpoints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from .common import Spec, labels

if TYPE_CHECKING:
    from PIL import Image

NAMES = ("Nose", "L_Eye", "R_Eye", "L_Ear", "R_Ear", "L_Shoulder", "R_Shoulder", "L_Elbow", "R_Elbow", "L_Wrist")
NAMES += ("R_Wrist", "L_Hip", "R_Hip", "L_Knee", "R_Knee", "L_Ankle", "R_Ankle")
EDGES = [[15, 13], [13, 11], [16, 14], [14, 12], [11, 12], [5, 11], [6, 12], [5, 6], [5, 7], [6, 8], [7, 9], [8, 10]]
EDGES += [[1, 2], [0, 1], [0, 2], [1, 3], [2, 4], [3, 5], [4, 6]]


@dataclass(frozen=True, kw_only=True)
class PoseSpec(Spec):
    def processor_of(self, config: Mapping[str, Any]) -> dict[str, Any]:
        height, width = config["backbone_config"]["image_size"]
        return {**self.processor, "size": {"height": height, "width": width}}

    @staticmethod
    def processor_arguments(images: Sequence[Image.Image]) -> dict[str, Any]:
        """One box, the whole image."""
        return {"boxes": [[[0, 0, image.width, image.height]] for image in images]}


_BACKBONE = {"model_type": "vitpose_backbone", "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12}
_BACKBONE |= {"image_size": [256, 192], "patch_size": [16, 16], "mlp_ratio": 4, "layer_norm_eps": 1e-12}
_BACKBONE |= {"out_features": ["stage12"], "out_indices": [12], "num_experts": 1, "part_features": 256}
_SMALL = {**_BACKBONE, "hidden_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4, "image_size": [48, 40]}
_SMALL |= {"patch_size": [8, 8], "out_features": ["stage3"], "out_indices": [3]}
CONFIG = {"backbone_config": _BACKBONE, "scale_factor": 4, "use_simple_decoder": True, **labels(*NAMES)}
CONFIG |= {"edges": EDGES, "initializer_range": 0.02}
_EXPERTS = {**CONFIG, "backbone_config": {**_BACKBONE, "num_experts": 6, "part_features": 192}}
_TINY_EXPERTS = {"backbone_config": {**_SMALL, "num_experts": 6, "part_features": 12}}

IMAGES = {"image_processor_type": "VitPoseImageProcessor", "do_affine_transform": True, "normalize_factor": 200.0}
IMAGES |= {"size": {"height": 256, "width": 192}, "do_rescale": True, "rescale_factor": 0.00392156862745098}
IMAGES |= {"do_normalize": True, "image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}

_vitpose = partial(
    PoseSpec,
    model_type="vitpose",
    architecture="VitPoseForPoseEstimation",
    config=CONFIG,
    tiny={"backbone_config": _SMALL},
    processor=IMAGES,
)

SPECS: dict[str, Spec] = {
    "vitpose-base-simple": _vitpose(like="usyd-community/vitpose-base-simple", full=True),
    "vitpose-base": _vitpose(like="usyd-community/vitpose-base", config={**CONFIG, "use_simple_decoder": False}),
    "vitpose-plus-base": _vitpose(
        like="usyd-community/vitpose-plus-base",
        config={**_EXPERTS, "use_simple_decoder": False},
        tiny=_TINY_EXPERTS,
        format="sharded",
    ),
}
