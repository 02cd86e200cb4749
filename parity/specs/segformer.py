"""SegFormer checkpoints."""

from __future__ import annotations

from functools import partial

from .common import Spec, labels

CONFIG = {"num_channels": 3, "num_encoder_blocks": 4, "depths": [2, 2, 2, 2], "sr_ratios": [8, 4, 2, 1]}
CONFIG |= {"hidden_sizes": [32, 64, 160, 256], "patch_sizes": [7, 3, 3, 3], "strides": [4, 2, 2, 2]}
CONFIG |= {"num_attention_heads": [1, 2, 5, 8], "mlp_ratios": [4, 4, 4, 4], "hidden_act": "gelu", "image_size": 224}
CONFIG |= {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "classifier_dropout_prob": 0.1}
CONFIG |= {"drop_path_rate": 0.1, "layer_norm_eps": 1e-6, "decoder_hidden_size": 256, "reshape_last_stage": True}
CONFIG |= {"downsampling_rates": [1, 4, 8, 16], "initializer_range": 0.02, "semantic_loss_ignore_index": 255}
TINY = {"depths": [1, 2, 1, 2], "hidden_sizes": [8, 16, 24, 40], "num_attention_heads": [1, 2, 3, 4], "image_size": 28}
TINY |= {"decoder_hidden_size": 32}

_PROCESSOR = {"feature_extractor_type": "SegformerFeatureExtractor", "do_normalize": True, "do_resize": True}
_PROCESSOR |= {"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225], "resample": 2, "size": 512}
_PROCESSOR |= {"reduce_labels": True}

_segformer = partial(Spec, model_type="segformer", config=CONFIG, tiny=TINY, processor=_PROCESSOR)

SPECS: dict[str, Spec] = {
    "segformer-b0-finetuned-ade-512-512": _segformer(
        like="nvidia/segformer-b0-finetuned-ade-512-512",
        architecture="SegformerForSemanticSegmentation",
        config={**CONFIG, **labels(count=150)},
        tiny={**TINY, **labels(count=6)},
        full=True,
    ),
    "segformer-bare": _segformer(like="save_pretrained", architecture="SegformerModel", format="sharded"),
    "mit-b0": _segformer(
        like="nvidia/mit-b0",
        architecture="SegformerForImageClassification",
        config={**CONFIG, **labels(count=1000)},
        tiny={**TINY, **labels(count=7)},
        format="bin",
    ),
}
