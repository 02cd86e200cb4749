"""DINOv2 checkpoints, without and with registers."""

from __future__ import annotations

from functools import partial

from .common import Spec, labels

CONFIG = {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "mlp_ratio": 4, "hidden_act": "gelu"}
CONFIG |= {"layer_norm_eps": 1e-6, "image_size": 518, "patch_size": 14, "num_channels": 3, "qkv_bias": True}
CONFIG |= {"layerscale_value": 1.0, "drop_path_rate": 0.0, "use_swiglu_ffn": False}
TINY = {"hidden_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4, "image_size": 126}
IMAGES = {"image_processor_type": "BitImageProcessor", "do_resize": True, "size": {"shortest_edge": 256}, "resample": 3}
IMAGES |= {"do_center_crop": True, "crop_size": {"height": 224, "width": 224}, "do_convert_rgb": True}
IMAGES |= {"do_rescale": True, "rescale_factor": 0.00392156862745098, "do_normalize": True}
IMAGES |= {"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}

GIANT = {"hidden_size": 1536, "num_hidden_layers": 40, "num_attention_heads": 24, "use_swiglu_ffn": True}

REGISTERS = {**CONFIG, "num_register_tokens": 4}

_dinov2 = partial(Spec, model_type="dinov2", config=CONFIG, tiny=TINY, processor=IMAGES, unused=("mask_token",))
_registers = partial(_dinov2, model_type="dinov2_with_registers", config=REGISTERS)

SPECS: dict[str, Spec] = {
    "dinov2-base": _dinov2(like="facebook/dinov2-base", architecture="Dinov2Model", full=True),
    "dinov2-giant": _dinov2(like="facebook/dinov2-giant", architecture="Dinov2Model", config={**CONFIG, **GIANT}),
    "dinov2-imagenet1k": _dinov2(
        like="facebook/dinov2-base-imagenet1k-1-layer",
        architecture="Dinov2ForImageClassification",
        config={**CONFIG, **labels(count=1000)},
        tiny={**TINY, **labels(count=7)},
    ),
    "dinov2-backbone": _dinov2(
        like="save_pretrained",
        architecture="Dinov2Backbone",
        inert=(*Spec.inert, r"mask_token$"),
        tiny={**TINY, "out_indices": [0, 2, 3]},
    ),
    "dinov2-with-registers-base": _registers(
        like="facebook/dinov2-with-registers-base", architecture="Dinov2WithRegistersModel", full=True
    ),
    "dinov2-registers-imagenet1k": _registers(
        like="facebook/dinov2-with-registers-base-imagenet1k-1-layer",
        architecture="Dinov2WithRegistersForImageClassification",
        config={**REGISTERS, **labels(count=1000)},
        tiny={**TINY, **labels(count=7)},
    ),
    "dinov2-registers-backbone": _registers(
        like="save_pretrained",
        architecture="Dinov2WithRegistersBackbone",
        inert=(*Spec.inert, r"mask_token$"),
        tiny={**TINY, "out_indices": [0, 2, 3]},
    ),
}
