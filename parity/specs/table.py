"""Table Transformer: the first checkpoints have timm's names for the backbone, the later ones transformers'."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .common import Size, Spec


@dataclass(frozen=True)
class TableSpec(Spec):
    """processor: what preprocessor_config.json says; its edges are those of the full size.

    timm: whether the backbone has timm's names, and no config.
    """

    processor: Mapping[str, Any] = field(default_factory=dict)
    timm: bool = False


COMMON = {
    "activation_dropout": 0.0,
    "activation_function": "relu",
    "attention_dropout": 0.0,
    "auxiliary_loss": False,
    "d_model": 256,
    "decoder_attention_heads": 8,
    "decoder_ffn_dim": 2048,
    "decoder_layers": 6,
    "dropout": 0.1,
    "encoder_attention_heads": 8,
    "encoder_ffn_dim": 2048,
    "encoder_layers": 6,
    "eos_coefficient": 0.4,
    "init_std": 0.02,
    "is_encoder_decoder": True,
    "max_position_embeddings": 1024,
    "num_channels": 3,
    "num_hidden_layers": 6,
    "position_embedding_type": "sine",
    "scale_embedding": False,
    "transformers_version": "4.30.0",
}
TINY = {
    "d_model": 48,
    "decoder_attention_heads": 4,
    "decoder_ffn_dim": 72,
    "decoder_layers": 3,
    "encoder_attention_heads": 4,
    "encoder_ffn_dim": 80,
    "encoder_layers": 3,
    "num_hidden_layers": 3,
}
TINY_EDGE = 192  # of images, whose long side is 800 or 1000 at full size
TIMM = {"backbone": "resnet18", "dilation": False, "use_pretrained_backbone": True}
OWN = {"backbone": None, "dilation": None, "use_pretrained_backbone": None, "use_timm_backbone": False}
RESNET18: dict[str, Any] = {
    "model_type": "resnet",
    "num_channels": 3,
    "embedding_size": 64,
    "hidden_sizes": [64, 128, 256, 512],
    "depths": [2, 2, 2, 2],
    "layer_type": "basic",
    "hidden_act": "relu",
    "out_features": ["stage1", "stage2", "stage3", "stage4"],
}
RESNET50 = {**RESNET18, "layer_type": "bottleneck", "hidden_sizes": [256, 512, 1024, 2048], "depths": [3, 4, 6, 3]}
# Where timm names the tensors, the backbone is ResNet-18 at tiny size too: there is no name for a smaller one.
TINY_BACKBONES = {
    "basic": {"embedding_size": 12, "hidden_sizes": [12, 16, 20, 24]},
    "bottleneck": {"embedding_size": 12, "hidden_sizes": [16, 24, 32, 40], "depths": [1, 2, 2, 1]},
}

# What comes out of the backbone is large and attention is sharp, so that queries differ, and the classifier is sure of
# some of them: there must be objects to compare.
GAINS = {"input_projection": 4, "q_proj": 1.7, "k_proj": 1.7, "class_labels_classifier": 3}

_IMAGENET = {"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}
_IMAGENET |= {"do_resize": True, "do_normalize": True}
_LATER = {**_IMAGENET, "image_processor_type": "DetrImageProcessor", "do_pad": True, "do_rescale": True, "resample": 2}
_LATER |= {"format": "coco_detection", "rescale_factor": 0.00392156862745098, "size": {"longest_edge": 800}}
_FIRST = {**_IMAGENET, "feature_extractor_type": "DetrFeatureExtractor", "format": "coco_detection", "size": 800}


def _objects(*names: str) -> dict[str, Any]:
    return {"id2label": {str(i): n for i, n in enumerate(names)}, "label2id": {n: i for i, n in enumerate(names)}}


_TABLES = {**_objects("table", "table rotated"), "num_queries": 15}
_PARTS = _objects(
    "table",
    "table column",
    "table row",
    "table column header",
    "table projected row header",
    "table spanning cell",
)
_PARTS |= {"num_queries": 125}


def backbone_of(c: Mapping[str, Any]) -> Mapping[str, Any]:
    return c.get("backbone_config", RESNET18)


def timm_name(name: str) -> str:
    """What timm calls a tensor that transformers calls `name`."""
    if "conv_encoder.model." not in name:
        return name
    name = re.sub(r"embedder\.embedder\.convolution", "conv1", name)
    name = re.sub(r"embedder\.embedder\.normalization", "bn1", name)
    name = re.sub(r"encoder\.stages\.(\d)\.layers", lambda m: f"layer{int(m[1]) + 1}", name)
    name = re.sub(r"shortcut\.convolution", "downsample.0", name)
    name = re.sub(r"shortcut\.normalization", "downsample.1", name)
    name = re.sub(r"\.layer\.(\d)\.convolution", lambda m: f".conv{int(m[1]) + 1}", name)
    return re.sub(r"\.layer\.(\d)\.normalization", lambda m: f".bn{int(m[1]) + 1}", name)


def _table(
    like: str,
    config: Mapping[str, Any],
    timm: bool = False,
    cls: str = "TableTransformerForObjectDetection",
    **more: Any,
) -> TableSpec:
    config = {**(TIMM if timm else {**OWN, "backbone_config": RESNET18}), **config}
    options = {"processor": _LATER, "gains": GAINS, **more}
    return TableSpec(like, "table-transformer", cls, config=config, timm=timm, **options)


SPECS: dict[str, TableSpec] = {
    "table-transformer-detection": _table(
        "microsoft/table-transformer-detection", _TABLES, timm=True, processor={**_FIRST, "max_size": 800}
    ),
    "table-transformer-structure-recognition": _table(
        "microsoft/table-transformer-structure-recognition",
        _PARTS,
        timm=True,
        processor={**_FIRST, "max_size": 1000},
        format="bin",
    ),
    "table-transformer-structure-recognition-v1.1-all": _table(
        "microsoft/table-transformer-structure-recognition-v1.1-all", _PARTS
    ),
    "table-transformer-detection-no-timm": _table("microsoft/table-transformer-detection, revision no_timm", _TABLES),
    "table-transformer-learned-positions": _table(
        "save_pretrained",
        {**_PARTS, "num_queries": 40, "position_embedding_type": "learned", "backbone_config": RESNET50},
    ),
    "table-transformer-bare": _table("save_pretrained", {"num_queries": 15}, cls="TableTransformerModel"),
}
FULL = ("table-transformer-detection",)


def config_of(spec: TableSpec, size: Size) -> dict[str, Any]:
    head = {"architectures": [spec.architecture], "model_type": spec.model_type}
    config = {**head, **COMMON, **spec.config}
    if size == "tiny":
        config |= TINY
        if not spec.timm:
            backbone = backbone_of(config)
            config["backbone_config"] = {**backbone, **TINY_BACKBONES[backbone["layer_type"]]}
    return config


def processor_of(spec: TableSpec, config: Mapping[str, Any]) -> dict[str, Any]:
    """The content of preprocessor_config.json."""
    found = dict(spec.processor)
    if config["d_model"] == TINY["d_model"]:
        found["size"] = {"longest_edge": TINY_EDGE} if isinstance(found["size"], dict) else TINY_EDGE
        if "max_size" in found:
            found["max_size"] = TINY_EDGE * found["max_size"] // 800
    return found


def counters(spec: TableSpec) -> list[str]:
    """Of the batch norms the three counters of batches that the files with timm's names have."""
    name = "model.backbone.conv_encoder.model.layer{}.0.downsample.1.num_batches_tracked"
    return [name.format(i) for i in (2, 3, 4)] if spec.timm else []
