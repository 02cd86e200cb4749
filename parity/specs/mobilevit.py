"""MobileViT checkpoints."""

from __future__ import annotations

from functools import partial

from .common import Spec, labels

CONFIG = {"num_channels": 3, "image_size": 256, "patch_size": 2, "hidden_sizes": [144, 192, 240], "mlp_ratio": 2.0}
CONFIG |= {"neck_hidden_sizes": [16, 32, 64, 96, 128, 160, 640], "num_attention_heads": 4, "expand_ratio": 4.0}
CONFIG |= {"hidden_act": "silu", "conv_kernel_size": 3, "output_stride": 32, "hidden_dropout_prob": 0.1}
CONFIG |= {"attention_probs_dropout_prob": 0.0, "classifier_dropout_prob": 0.1, "layer_norm_eps": 1e-05}
CONFIG |= {"qkv_bias": True, "aspp_out_channels": 256, "atrous_rates": [6, 12, 18], "aspp_dropout_prob": 0.1}
CONFIG |= {"semantic_loss_ignore_index": 255}
TINY = {"hidden_sizes": [24, 32, 40], "neck_hidden_sizes": [8, 16, 16, 24, 24, 32, 48], "expand_ratio": 2.0}
TINY |= {"image_size": 64, "aspp_out_channels": 24}

_PROCESSOR = {"feature_extractor_type": "MobileViTFeatureExtractor", "do_center_crop": True, "do_resize": True}
_PROCESSOR |= {"do_flip_channel_order": True, "crop_size": 256, "size": 288, "resample": 2}
# Each block and its activations make numbers, and what is left of the image, smaller.
_GAINS = {"reduce_1x1.convolution": 3.0, "fusion.convolution": 3.0}
_mobilevit = partial(Spec, model_type="mobilevit", config=CONFIG, tiny=TINY, processor=_PROCESSOR, gains=_GAINS)

SPECS: dict[str, Spec] = {
    "mobilevit-small": _mobilevit(
        like="apple/mobilevit-small",
        architecture="MobileViTForImageClassification",
        config={**CONFIG, **labels(count=1000)},
        tiny={**TINY, **labels(count=7)},
        format="bin",
        full=True,
    ),
    "deeplabv3-mobilevit-small": _mobilevit(
        like="apple/deeplabv3-mobilevit-small",
        architecture="MobileViTForSemanticSegmentation",
        config={**CONFIG, **labels(count=21), "image_size": 512, "output_stride": 16},
        tiny={**TINY, **labels(count=12), "output_stride": 16, "atrous_rates": [1, 2, 3]},
        processor={**_PROCESSOR, "crop_size": 512, "size": 544},
    ),
    "mobilevit-bare": _mobilevit(
        like="save_pretrained",
        architecture="MobileViTModel",
        tiny={**TINY, "output_stride": 8, "qkv_bias": False, "patch_size": 3},
        dtype="F16",
    ),
}
