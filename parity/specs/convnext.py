"""ConvNeXt and ConvNeXt V2 checkpoints."""

from __future__ import annotations

from functools import partial

from .common import Spec, labels

CONFIG = {"num_channels": 3, "patch_size": 4, "num_stages": 4, "depths": [3, 3, 9, 3], "image_size": 224}
CONFIG |= {"hidden_sizes": [96, 192, 384, 768], "hidden_act": "gelu", "drop_path_rate": 0.0}
CONFIG |= {"layer_norm_eps": 1e-12, "layer_scale_init_value": 1e-6, "initializer_range": 0.02}
TINY = {"depths": [1, 2, 3, 1], "hidden_sizes": [8, 16, 24, 40], "image_size": 64}

_PROCESSOR = {"feature_extractor_type": "ConvNextFeatureExtractor", "do_normalize": True, "do_resize": True}
_PROCESSOR |= {"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225], "resample": 3, "size": 224}
_PROCESSOR |= {"crop_pct": 0.875}

_convnext = partial(Spec, model_type="convnext", config=CONFIG, tiny=TINY, processor=_PROCESSOR)

_CONFIG_V2 = {name: value for name, value in CONFIG.items() if name != "layer_scale_init_value"}
_convnextv2 = partial(_convnext, model_type="convnextv2", config=_CONFIG_V2)

SPECS: dict[str, Spec] = {
    "convnext-tiny-224": _convnext(
        like="facebook/convnext-tiny-224",
        architecture="ConvNextForImageClassification",
        config={**CONFIG, **labels(count=1000)},
        tiny={**TINY, **labels(count=7)},
        full=True,
        format="bin",
    ),
    "convnext-bare": _convnext(like="save_pretrained", architecture="ConvNextModel", format="sharded"),
    "convnext-no-scale": _convnext(
        like="save_pretrained",
        architecture="ConvNextForImageClassification",
        config={**CONFIG, **labels(count=3), "layer_scale_init_value": 0.0},
        dtype="F16",
    ),
    "convnext-backbone": _convnext(
        like="save_pretrained", architecture="ConvNextBackbone", tiny={**TINY, "out_indices": [0, 1, -1]}
    ),
    "convnextv2-tiny-1k-224": _convnextv2(
        like="facebook/convnextv2-tiny-1k-224",
        architecture="ConvNextV2ForImageClassification",
        config={**_CONFIG_V2, **labels(count=1000)},
        tiny={**TINY, **labels(count=7)},
        full=True,
    ),
    "convnextv2-bare": _convnextv2(like="save_pretrained", architecture="ConvNextV2Model", dtype="F16"),
    "convnextv2-backbone": _convnextv2(
        like="save_pretrained", architecture="ConvNextV2Backbone", tiny={**TINY, "out_indices": [0, 1, -1]}
    ),
}
