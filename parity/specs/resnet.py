"""ResNet checkpoints."""

from __future__ import annotations

from functools import partial

from .common import Spec, labels

CONFIG = {"num_channels": 3, "embedding_size": 64, "hidden_sizes": [256, 512, 1024, 2048], "depths": [3, 4, 6, 3]}
CONFIG |= {"layer_type": "bottleneck", "hidden_act": "relu", "downsample_in_first_stage": False}
TINY = {"embedding_size": 12, "hidden_sizes": [16, 24, 32, 40], "depths": [1, 2, 2, 1]}

_PROCESSOR = {"feature_extractor_type": "ConvNextFeatureExtractor", "do_normalize": True, "do_resize": True}
_PROCESSOR |= {"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225], "resample": 3, "size": 224}
_PROCESSOR |= {"crop_pct": 0.875}
_BASIC = {**CONFIG, "layer_type": "basic", "hidden_sizes": [64, 128, 256, 512], "depths": [2, 2, 2, 2]}

_resnet = partial(Spec, model_type="resnet", config=CONFIG, tiny=TINY, processor=_PROCESSOR)

SPECS: dict[str, Spec] = {
    "resnet-50": _resnet(
        like="microsoft/resnet-50",
        architecture="ResNetForImageClassification",
        config={**CONFIG, **labels(count=1000)},
        tiny={**TINY, **labels(count=7)},
        full=True,
    ),
    "resnet-18": _resnet(
        like="microsoft/resnet-18",
        architecture="ResNetForImageClassification",
        config={**_BASIC, **labels(count=1000)},
        tiny={**TINY, **labels(count=7)},
        format="bin",
    ),
    "resnet-early": _resnet(
        like="save_pretrained",
        architecture="ResNetForImageClassification",
        config={**CONFIG, **labels(count=3), "downsample_in_first_stage": True, "downsample_in_bottleneck": True},
        dtype="F16",
    ),
    "resnet-bare": _resnet(like="save_pretrained", architecture="ResNetModel", format="sharded"),
    "resnet-backbone": _resnet(
        like="save_pretrained",
        architecture="ResNetBackbone",
        tiny={**TINY, "out_features": ["stem", "stage2", "stage4"]},
    ),
}
