"""Swin checkpoints, and v2's."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from .common import Spec, labels

CONFIG = {"image_size": 224, "patch_size": 4, "num_channels": 3, "embed_dim": 96, "depths": [2, 2, 6, 2]}
CONFIG |= {"num_heads": [3, 6, 12, 24], "window_size": 7, "mlp_ratio": 4.0, "qkv_bias": True, "path_norm": True}
CONFIG |= {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "drop_path_rate": 0.1, "hidden_act": "gelu"}
CONFIG |= {"use_absolute_embeddings": False, "layer_norm_eps": 1e-5, "hidden_size": 768, "num_layers": 4}
CONFIG |= {"initializer_range": 0.02, "encoder_stride": 32}
# Windows of 4 patches are shifted in both stages, of 12 x 12 patches and of 6 x 6.
TINY = {"image_size": 48, "embed_dim": 24, "depths": [2, 2], "num_heads": [2, 4], "window_size": 4, "mlp_ratio": 2.0}
TINY |= {"encoder_stride": 8, "hidden_size": 48, "num_layers": 2}

_PROCESSOR = {"feature_extractor_type": "ViTFeatureExtractor", "do_normalize": True, "do_resize": True, "size": 224}
_PROCESSOR |= {"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225], "resample": 3}


@dataclass(frozen=True, kw_only=True)
class SwinSpec(Spec):
    """index: whether the file has the indices of its relative positions, as those on the hub do."""

    index: bool = False

    def unread_tensors(self, config: Mapping[str, Any], names: Collection[str]) -> Iterator[tuple[str, np.ndarray]]:
        if self.index:
            yield from index_tensors(config["window_size"], names)


def index_tensors(s: int, names: Collection[str]) -> Iterator[tuple[str, np.ndarray]]:
    """The indices of the relative positions of a window of s x s patches, for each table among the names."""
    y, x = (axis.ravel() for axis in np.mgrid[:s, :s])
    index = (y[:, None] - y + s - 1) * (2 * s - 1) + x[:, None] - x + s - 1
    for name in names:
        if name.endswith("_bias_table"):
            yield name.replace("bias_table", "index"), index


_swin = partial(SwinSpec, model_type="swin", tiny=TINY, processor=_PROCESSOR)

V2 = {**CONFIG, "image_size": 256, "window_size": 8, "pretrained_window_sizes": [0, 0, 0, 0]}
_swinv2 = partial(Spec, model_type="swinv2", tiny=TINY, processor={**_PROCESSOR, "size": 256})

SPECS: dict[str, Spec] = {
    "swinv2-tiny-patch4-window8-256": _swinv2(
        like="microsoft/swinv2-tiny-patch4-window8-256",
        architecture="Swinv2ForImageClassification",
        config={**V2, **labels(count=1000)},
        tiny={**TINY, **labels(count=7)},
        full=True,
    ),
    # In the second stage, of 6 x 6 patches, there is one window.
    "swinv2-bare": _swinv2(
        like="save_pretrained",
        architecture="Swinv2Model",
        config={**V2, "window_size": 16, "pretrained_window_sizes": [12, 12, 12, 6], "qkv_bias": False},
        tiny={**TINY, "window_size": 8},
    ),
    "swin-tiny-patch4-window7-224": _swin(
        like="microsoft/swin-tiny-patch4-window7-224",
        architecture="SwinForImageClassification",
        config={**CONFIG, **labels(count=1000)},
        tiny={**TINY, **labels(count=7)},
        index=True,
        full=True,
    ),
    "swin-bare": _swin(like="save_pretrained", architecture="SwinModel", config={**CONFIG, "qkv_bias": False}),
    # In the second stage, of 6 x 6 patches, the first image of 5 x 5 of a smaller size has no whole window.
    "swin-backbone": _swin(
        like="save_pretrained",
        architecture="SwinBackbone",
        config={**CONFIG, "out_features": ["stem", "stage1", "stage2"]},
    ),
    "swin-base-simmim-window6-192": _swin(
        like="microsoft/swin-base-simmim-window6-192",
        architecture="SwinForMaskedImageModeling",
        config={**CONFIG, "image_size": 192, "embed_dim": 128, "depths": [2, 2, 18, 2], "num_heads": [4, 8, 16, 32]}
        | {"window_size": 6, "hidden_size": 1024},
        processor={**_PROCESSOR, "size": 192},
        index=True,
    ),
}
