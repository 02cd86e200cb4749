"""MobileNetV2 and EfficientNet checkpoints."""

from __future__ import annotations

from functools import partial

from .common import Spec, labels

CONFIG = {"num_channels": 3, "image_size": 224, "depth_multiplier": 1.0, "depth_divisible_by": 8, "min_depth": 8}
CONFIG |= {"expand_ratio": 6, "output_stride": 32, "first_layer_is_expansion": True, "finegrained_output": True}
CONFIG |= {"hidden_act": "relu6", "tf_padding": True, "classifier_dropout_prob": 0.8, "layer_norm_eps": 0.001}
TINY = {"depth_multiplier": 0.35, "depth_divisible_by": 4, "min_depth": 4, "finegrained_output": False}
TINY |= {"image_size": 64}

_PROCESSOR = {"image_processor_type": "MobileNetV2ImageProcessor", "do_center_crop": True, "do_normalize": True}
_PROCESSOR |= {"crop_size": {"height": 224, "width": 224}, "do_rescale": True, "do_resize": True, "resample": 2}
_PROCESSOR |= {"image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5], "size": {"shortest_edge": 256}}
_PROCESSOR |= {"rescale_factor": 0.00392156862745098}

# So that some numbers are above 6, where relu6 cuts them.
_MOBILE_GAINS = {"first_conv.convolution": 6.0, "expand_1x1.convolution": 2.5}
_mobilenet = partial(
    Spec, model_type="mobilenet_v2", config=CONFIG, tiny=TINY, processor=_PROCESSOR, gains=_MOBILE_GAINS
)

EFFICIENT = {"num_channels": 3, "image_size": 224, "width_coefficient": 1.0, "depth_coefficient": 1.0}
EFFICIENT |= {"depth_divisor": 8, "kernel_sizes": [3, 3, 5, 3, 5, 5, 3], "strides": [1, 2, 2, 2, 1, 2, 1]}
EFFICIENT |= {"in_channels": [32, 16, 24, 40, 80, 112, 192], "out_channels": [16, 24, 40, 80, 112, 192, 320]}
EFFICIENT |= {"depthwise_padding": [], "num_block_repeats": [1, 2, 2, 3, 3, 4, 1], "hidden_dim": 1280}
EFFICIENT |= {"expand_ratios": [1, 6, 6, 6, 6, 6, 6], "squeeze_expansion_ratio": 0.25, "hidden_act": "swish"}
EFFICIENT |= {"pooling_type": "mean", "batch_norm_eps": 0.001, "batch_norm_momentum": 0.99, "dropout_rate": 0.2}
EFFICIENT |= {"drop_connect_rate": 0.2}
TINY_EFFICIENT = {"width_coefficient": 0.1, "depth_coefficient": 0.4, "depth_divisor": 4, "hidden_dim": 128}
TINY_EFFICIENT |= {"image_size": 64}

_TOP = {"image_processor_type": "EfficientNetImageProcessor", "do_center_crop": False, "do_normalize": True}
_TOP |= {"crop_size": {"height": 289, "width": 289}, "do_rescale": True, "do_resize": True, "include_top": True}
_TOP |= {"image_mean": [0.485, 0.456, 0.406], "image_std": [0.47853944, 0.4732864, 0.47434163], "resample": 0}
_TOP |= {"rescale_factor": 0.00392156862745098, "rescale_offset": False, "size": {"height": 224, "width": 224}}

# Each block's activations and gate make numbers, and gradients, smaller.
_GAINS = {"project_conv": 5.5}
_efficientnet = partial(Spec, model_type="efficientnet", config=EFFICIENT, tiny=TINY_EFFICIENT, processor=_TOP)
_efficientnet = partial(_efficientnet, gains=_GAINS)

SPECS: dict[str, Spec] = {
    "mobilenet-v2-1.0-224": _mobilenet(
        like="google/mobilenet_v2_1.0_224",
        architecture="MobileNetV2ForImageClassification",
        config={**CONFIG, **labels(count=1001)},
        tiny={**TINY, **labels(count=7)},
        full=True,
    ),
    "deeplabv3-mobilenet-v2": _mobilenet(
        like="google/deeplabv3_mobilenet_v2_1.0_513",
        architecture="MobileNetV2ForSemanticSegmentation",
        config={**CONFIG, **labels(count=21), "image_size": 513, "output_stride": 8, "semantic_loss_ignore_index": 255},
        tiny={**TINY, **labels(count=12), "output_stride": 8},
        processor={**_PROCESSOR, "crop_size": {"height": 513, "width": 513}, "size": {"shortest_edge": 513}},
        gains={
            **_MOBILE_GAINS,
            "conv_pool.convolution": 0.05,
            "layer.15.conv_3x3.convolution": 3.0,
            "conv_aspp.convolution": 4.0,
        },
        inert=(*Spec.inert, r"conv_1x1\."),  # after the last block, at whose output the head looks
        format="bin",
    ),
    "mobilenet-v2-bare": _mobilenet(
        like="save_pretrained",
        architecture="MobileNetV2Model",
        config={**CONFIG, "first_layer_is_expansion": False, "tf_padding": False},
        dtype="F16",
    ),
    "efficientnet-b0": _efficientnet(
        like="google/efficientnet-b0",
        architecture="EfficientNetForImageClassification",
        config={**EFFICIENT, **labels(count=1000)},
        tiny={**TINY_EFFICIENT, **labels(count=7)},
        full=True,
    ),
    "efficientnet-bare": _efficientnet(
        like="save_pretrained",
        architecture="EfficientNetModel",
        tiny={**TINY_EFFICIENT, "depthwise_padding": [2, 3], "depth_coefficient": 0.6},
        format="sharded",
    ),
}
