"""DINOv3 checkpoints whose models are ViTs."""

from __future__ import annotations

from functools import partial

from .common import Spec

CONFIG = {"hidden_size": 384, "num_hidden_layers": 12, "num_attention_heads": 6, "intermediate_size": 1536}
CONFIG |= {"hidden_act": "gelu", "layer_norm_eps": 1e-5, "image_size": 224, "patch_size": 16, "num_channels": 3}
CONFIG |= {"rope_theta": 100.0, "num_register_tokens": 4, "key_bias": False, "use_gated_mlp": False}
CONFIG |= {"pos_embed_rescale": 2.0, "drop_path_rate": 0.0, "layerscale_value": 1.0}
TINY = {"hidden_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 72, "image_size": 48}

_dinov3 = partial(
    Spec, model_type="dinov3_vit", architecture="DINOv3ViTModel", config=CONFIG, tiny=TINY, unused=("mask_token",)
)

SPECS: dict[str, Spec] = {
    "dinov3-vits16-pretrain-lvd1689m": _dinov3(like="facebook/dinov3-vits16-pretrain-lvd1689m", full=True),
    "dinov3-vits16plus-pretrain-lvd1689m": _dinov3(
        like="facebook/dinov3-vits16plus-pretrain-lvd1689m",
        config={**CONFIG, "use_gated_mlp": True, "hidden_act": "silu", "key_bias": True},
    ),
    "dinov3-backbone": _dinov3(
        like="save_pretrained",
        architecture="DINOv3ViTBackbone",
        inert=(*Spec.inert, r"mask_token$"),
        config={**CONFIG, "apply_layernorm": False, "return_class_token": True},
        tiny={**TINY, "out_features": ["stem", "stage2", "stage3"]},
    ),
}
