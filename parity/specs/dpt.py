"""DPT checkpoints."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from .common import Spec, labels

CONFIG = {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096}
CONFIG |= {"hidden_act": "gelu", "layer_norm_eps": 1e-12, "image_size": 384, "patch_size": 16, "num_channels": 3}
CONFIG |= {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "qkv_bias": True, "initializer_range": 0.02}
CONFIG |= {"backbone_out_indices": [5, 11, 17, 23], "readout_type": "project", "reassemble_factors": [4, 2, 1, 0.5]}
CONFIG |= {"neck_hidden_sizes": [256, 512, 1024, 1024], "fusion_hidden_size": 256, "head_in_index": -1}
CONFIG |= {"use_batch_norm_in_fusion_residual": False, "use_auxiliary_head": True, "auxiliary_loss_weight": 0.4}
CONFIG |= {"semantic_loss_ignore_index": 255, "semantic_classifier_dropout": 0.1, "expand_channels": False}
TINY_CONFIG = {"hidden_size": 48, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 72}
TINY_CONFIG |= {"image_size": 48, "patch_size": 8, "backbone_out_indices": [0, 1, 2, 3]}
TINY_CONFIG |= {"neck_hidden_sizes": [8, 12, 16, 24], "fusion_hidden_size": 16}

IMAGES = {"feature_extractor_type": "DPTFeatureExtractor", "do_normalize": True, "do_resize": True, "size": 384}
IMAGES |= {"image_mean": [0.5] * 3, "image_std": [0.5] * 3, "resample": 2, "keep_aspect_ratio": False}
IMAGES |= {"ensure_multiple_of": 1}


@dataclass(frozen=True, kw_only=True)
class DPTSpec(Spec):
    square = True  # its heads put patches together as if they had been a square


_dpt = partial(
    DPTSpec,
    model_type="dpt",
    config=CONFIG,
    tiny=TINY_CONFIG,
    processor=IMAGES,
    gains={"head.head.4.bias": -40.0, "head.head.4": 0.2},  # depths are above 0
    # The heads read states before the norm, the first fusion has no larger map, and one head is of training alone.
    inert=(*Spec.inert, r"^dpt\.layernorm\.", r"fusion_stage\.layers\.0\.residual_layer1\.", r"^auxiliary_head\."),
)

SPECS: dict[str, DPTSpec] = {
    "dpt-large": _dpt(like="Intel/dpt-large", architecture="DPTForDepthEstimation", full=True),
    "dpt-large-ade": _dpt(
        like="Intel/dpt-large-ade",
        architecture="DPTForSemanticSegmentation",
        config={**CONFIG, **labels(count=150), "use_batch_norm_in_fusion_residual": True},
        tiny={**TINY_CONFIG, **labels(count=6)},
        gains={},
        format="bin",
    ),
    "dpt-projected": _dpt(
        like="save_pretrained",
        architecture="DPTForDepthEstimation",
        config={**CONFIG, "readout_type": "add", "add_projection": True, "use_bias_in_fusion_residual": False},
        tiny={**TINY_CONFIG, "fusion_hidden_size": 256, "image_size": 40},
        format="sharded",
    ),
    "dpt-bare": _dpt(like="save_pretrained", architecture="DPTModel", pooler=True),
}
