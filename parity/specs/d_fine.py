"""D-FINE checkpoints."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..drawing import Role, draw
from .common import labels
from .rt_detr import _PROCESSOR, CONFIG, GAINS, TINY, RTDetrSpec


@dataclass(frozen=True, kw_only=True)
class DFineSpec(RTDetrSpec):
    not_compared: ClassVar[tuple[str, ...]] = (
        *RTDetrSpec.not_compared,
        *("intermediate_predicted_corners", "initial_reference_points"),
    )

    def unread_tensors(self, config: Mapping[str, Any], names: Collection[str]) -> Iterator[tuple[str, np.ndarray]]:
        yield from super().unread_tensors(config, names)
        points = config["decoder_n_points"]
        points = points if isinstance(points, list) else [points] * config["num_feature_levels"]
        scale = np.concatenate([np.full(count, 1 / count, np.float32) for count in points])
        for name in names:  # of which random ones would be read
            if name.endswith("num_points_scale"):
                yield name, scale
            elif name.endswith("lab.scale"):
                yield name, draw(Role((1,), 0.15, 1.0), name, 0)  # around 1, as those of norms
            elif name.endswith(("decoder.up", "decoder.reg_scale")):
                yield name, np.array([0.46 if name.endswith("up") else 4.3], np.float32)  # near real files' 0.5 and 4


_NET: dict[str, Any] = {"model_type": "hgnet_v2", "num_channels": 3, "hidden_act": "relu", "depths": [3, 4, 6, 3]}
_NET |= {"stem_channels": [3, 32, 48], "stage_in_channels": [48, 128, 512, 1024], "stage_kernel_size": [3, 3, 5, 5]}
_NET |= {"stage_mid_channels": [48, 96, 192, 384], "stage_out_channels": [128, 512, 1024, 2048]}
_NET |= {"stage_num_blocks": [1, 1, 3, 1], "stage_numb_of_layers": [6, 6, 6, 6], "hidden_sizes": [128, 512, 1024, 2048]}
_NET |= {"stage_downsample": [False, True, True, True], "stage_light_block": [False, False, True, True]}
_NET |= {"use_learnable_affine_block": False, "out_features": ["stage2", "stage3", "stage4"], "out_indices": [2, 3, 4]}
_TINY_NET = {"stem_channels": [3, 8, 12], "stage_in_channels": [12, 16, 24, 32], "stage_num_blocks": [1, 1, 2, 1]}
_TINY_NET |= {"stage_mid_channels": [8, 8, 12, 16], "stage_out_channels": [16, 24, 32, 40]}
_TINY_NET |= {"stage_numb_of_layers": [2, 2, 2, 2], "hidden_sizes": [16, 24, 32, 40]}
LARGE_CONFIG: dict[str, Any] = {**CONFIG, "backbone_config": _NET, "decoder_n_points": [3, 6, 3], "eval_idx": -1}
LARGE_CONFIG |= {"max_num_bins": 32, "reg_scale": 4.0, "depth_mult": 1.0, "top_prob_values": 4, "lqe_hidden_dim": 64}
LARGE_CONFIG |= {"lqe_layers": 2, "up": 0.5, "layer_scale": 1, "decoder_method": "default", "decoder_offset_scale": 0.5}
_SMALL_CONFIG = {**TINY, "backbone_config": {**_NET, **_TINY_NET}, "decoder_n_points": [2, 3, 1], "max_num_bins": 8}
# Of training alone.
_INERT_NAMES = (
    r"\.(key|k|k_proj|k_lin)\.bias$",
    r"denoising_class_embed",
    r"class_embed\.[01]\.",
    r"lqe_layers\.[01]\.",
)
_HEAD_NAMES = (r"pre_bbox_head\.", r"^decoder\.(up|reg_scale)$", r"lqe_layers\.")  # in the decoder, but not its states


def _d_fine(like: str, tiny: Mapping[str, Any], head: str = "ForObjectDetection", **more: Any) -> DFineSpec:
    return DFineSpec(
        like=like,
        model_type="d_fine",
        architecture=f"DFine{head}",
        config=LARGE_CONFIG,
        tiny={**_SMALL_CONFIG, **tiny},
        processor=_PROCESSOR,
        gains={**GAINS, "stem1.convolution": 2, "aggregation.1.convolution": 3},
        inert=(*_INERT_NAMES, *(_HEAD_NAMES if head == "Model" else ())),
        **more,
    )


SPECS: dict[str, DFineSpec] = {
    "dfine-large-coco": _d_fine("ustc-community/dfine-large-coco", {}, full=True),
    "dfine-affine": _d_fine(
        "ustc-community/dfine-small-coco",
        {
            "backbone_config": {**_NET, **_TINY_NET, "use_learnable_affine_block": True},
            "hidden_expansion": 0.5,
            "depth_mult": 0.34,
            "encoder_hidden_dim": 24,
            "decoder_in_channels": [24] * 3,
            "decoder_n_points": 2,
            **labels(count=4),
        },
    ),
    # With a third of the blocks: the random numbers of checks.random_configs grow from block to block, up to 1e7, and
    # their rounding with them.
    "dfine-bare": _d_fine("save_pretrained", {"depth_mult": 0.34}, "Model"),
}
