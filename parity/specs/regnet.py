"""RegNet checkpoints."""

from __future__ import annotations

from functools import partial

from .common import Spec, labels

CONFIG = {"num_channels": 3, "embedding_size": 32, "hidden_sizes": [128, 192, 512, 1088], "depths": [2, 6, 12, 2]}
CONFIG |= {"groups_width": 64, "layer_type": "y", "hidden_act": "relu", "downsample_in_first_stage": True}
TINY = {"embedding_size": 12, "hidden_sizes": [16, 24, 32, 40], "depths": [1, 2, 2, 1], "groups_width": 8}

_PROCESSOR = {"feature_extractor_type": "ConvNextFeatureExtractor", "do_normalize": True, "do_resize": True}
_PROCESSOR |= {"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225], "resample": 3, "size": 224}
_PROCESSOR |= {"crop_pct": 0.875}

_regnet = partial(Spec, model_type="regnet", config=CONFIG, tiny=TINY, processor=_PROCESSOR)

SPECS: dict[str, Spec] = {
    "regnet-y-040": _regnet(
        like="facebook/regnet-y-040",
        architecture="RegNetForImageClassification",
        config={**CONFIG, **labels(count=1000)},
        tiny={**TINY, **labels(count=7)},
        full=True,
    ),
    "regnet-x-040": _regnet(
        like="facebook/regnet-x-040",
        architecture="RegNetForImageClassification",
        config={**CONFIG, **labels(count=1000), "layer_type": "x", "hidden_sizes": [80, 240, 560, 1360]}
        | {"groups_width": 40},
        tiny={**TINY, **labels(count=7), "layer_type": "x"},
        format="bin",
    ),
    "regnet-bare": _regnet(
        like="save_pretrained",
        architecture="RegNetModel",
        config={**CONFIG, "downsample_in_first_stage": False},
        dtype="F16",
    ),
}
