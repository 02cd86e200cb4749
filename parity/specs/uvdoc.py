"""UVDoc: a photo of a page to the points of the flat page."""

from __future__ import annotations

from functools import partial
from typing import Any

from .common import Spec
from .pp_ocr import PAGE

_BRIDGES = [[[128, 1]], [[128, 2]], [[128, 5]], [[128, 8], [128, 3], [128, 2]]]
_BRIDGES += [[[128, 12], [128, 7], [128, 4]], [[128, 18], [128, 12], [128, 6]]]
_NET: dict[str, Any] = {"model_type": "uvdoc_backbone", "stage_configs": _BRIDGES}
_NET |= {"out_features": [f"stage{i}" for i in range(1, 7)]}
CONFIG: dict[str, Any] = {"backbone_config": _NET, "bridge_connector": [128, 128], "kernel_size": 5}
CONFIG |= {"hidden_act": "prelu", "padding_mode": "reflect", "out_point_positions2D": [[128, 32], [32, 2]]}
_TINY_NET: dict[str, Any] = {**_NET, "resnet_head": [[3, 8], [8, 8]]}
_TINY_NET |= {"resnet_configs": [[[8, 8, 1, False]], [[8, 12, 1, True], [12, 12, 3, False]], [[12, 16, 1, True]]]}
_TINY_NET |= {"stage_configs": [[[16, 1]], [[16, 4], [16, 3]]], "out_features": ["stage1", "stage2"]}
TINY: dict[str, Any] = {"backbone_config": _TINY_NET, "bridge_connector": [16, 12]}
TINY |= {"out_point_positions2D": [[12, 8], [8, 2]]}

_uvdoc = partial(Spec, model_type="uvdoc", architecture="UVDocModel", config=CONFIG, tiny=TINY, processor=PAGE)

SPECS: dict[str, Spec] = {"uvdoc": _uvdoc(like="PaddlePaddle/UVDoc_safetensors", full=True)}
