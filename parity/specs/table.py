"""Table Transformer: the first checkpoints have timm's names for the backbone, the later ones transformers'."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..pictures import page
from .common import Loaded, Spec, labels

if TYPE_CHECKING:
    from PIL import Image

    from zoo.images import ImageProcessor

TABLE = (60, 230, 760, 550)  # on the page that comes with zoo: left, top, right and bottom of the table with a margin


@dataclass(frozen=True, kw_only=True)
class TableSpec(Spec):
    """timm: whether the backbone has timm's names, and no config."""

    timm: bool = False

    def file_name(self, name: str) -> str:
        return timm_name(name) if self.timm else name

    def unread_tensors(self, config: Mapping[str, Any], names: Collection[str]) -> Iterator[tuple[str, np.ndarray]]:
        """Three of the counters that batch norms have in training, where timm has written the file."""
        if self.timm:
            name = "model.backbone.conv_encoder.model.layer{}.0.downsample.1.num_batches_tracked"
            yield from ((name.format(i), np.array(0)) for i in (2, 3, 4))

    def processor_of(self, config: Mapping[str, Any]) -> dict[str, Any]:
        found = dict(self.processor)
        if config["d_model"] < self.config["d_model"]:
            found["size"] = {"longest_edge": TINY_EDGE} if isinstance(found["size"], dict) else TINY_EDGE
            if "max_size" in found:
                found["max_size"] = TINY_EDGE * found["max_size"] // 800
        return found

    @staticmethod
    def pictures(config: Any, processor: ImageProcessor, seed: int) -> Sequence[Image.Image]:
        return [page().crop(TABLE) if "table row" in config.id2label.values() else page()]

    @staticmethod
    def load_reference(model_class: Any, folder: Path, config: Mapping[str, Any], dtype: Any) -> Loaded:
        import transformers

        return load_reference(model_class, transformers.TableTransformerConfig, folder, config, dtype)


def load_reference(
    model_class: Any,
    config_class: Any,
    folder: Path,
    config: Mapping[str, Any],
    dtype: Any,
    file_name: Callable[[str], str] = str,
    several: bool = False,
) -> Loaded:
    """The model, with a backbone in transformers' own names.  file_name: what a file calls a tensor of the model.
    several: the model reads the stages of the backbone that the config names, or else all but the first.

    transformers reads the first checkpoints through timm alone, and takes no `dilation: null`, which the later ones
    have.  So a backbone with timm's names is described by its tensors, and read under the names of transformers.
    """
    import torch
    import transformers
    from safetensors.torch import load_file

    path = folder / "model.safetensors"
    state = load_file(path) if path.exists() else torch.load(folder / "pytorch_model.bin", weights_only=True)
    is_timm = any(name.endswith("conv_encoder.model.conv1.weight") for name in state)
    backbone = _timm_config(state) if is_timm else dict(config.get("backbone_config") or {})
    backbone.pop("out_indices", None)
    named = backbone.get("out_features")
    stages = [f"stage{i + 1}" for i in range(len(backbone.get("hidden_sizes", range(4))))]
    if not model_class.__name__.endswith("ForSegmentation"):  # masks see all, whose positions may be too many to learn
        stages = (named or stages[1:]) if several else stages[-1:]
    dropped = {"backbone", "backbone_kwargs", "use_pretrained_backbone", "torch_dtype", "dtype"}
    dropped |= {"transformers_version", "model_type", "architectures"}
    fields = {name: value for name, value in config.items() if name not in dropped}
    fields |= {"use_timm_backbone": False, "dilation": bool(config.get("dilation")), "attn_implementation": "eager"}
    fields["backbone_config"] = transformers.ResNetConfig(**{**backbone, "out_features": stages})
    model = model_class(config_class(**fields)).to(dtype)
    own = {timm_name(file_name(name)) if is_timm else file_name(name): name for name in model.state_dict()}
    renamed = {own.get(name, name): tensor.to(dtype) for name, tensor in state.items()}
    found = model.load_state_dict(renamed, strict=False)
    parameters = dict(model.named_parameters(remove_duplicate=False))
    read = {parameters[name].data_ptr() for name in renamed if name in parameters}
    missing = [n for n in found.missing_keys if n not in parameters or parameters[n].data_ptr() not in read]  # not tied
    lists = {"missing_keys": missing, "unexpected_keys": found.unexpected_keys}
    return model, {**lists, "mismatched_keys": []}


def timm_name(name: str) -> str:
    """timm's name for a tensor that transformers calls `name`."""
    if "conv_encoder.model." not in name:
        return name
    name = re.sub(r"embedder\.embedder\.convolution", "conv1", name)
    name = re.sub(r"embedder\.embedder\.normalization", "bn1", name)
    name = re.sub(r"encoder\.stages\.(\d)\.layers", lambda m: f"layer{int(m[1]) + 1}", name)
    name = re.sub(r"shortcut\.convolution", "downsample.0", name)
    name = re.sub(r"shortcut\.normalization", "downsample.1", name)
    name = re.sub(r"\.layer\.(\d)\.convolution", lambda m: f".conv{int(m[1]) + 1}", name)
    return re.sub(r"\.layer\.(\d)\.normalization", lambda m: f".bn{int(m[1]) + 1}", name)


def _timm_config(state: Mapping[str, Any]) -> dict[str, Any]:
    """The config of a ResNet with timm's names."""
    first = next(name for name in state if name.endswith("conv_encoder.model.conv1.weight"))
    prefix = first.removesuffix("conv1.weight")
    is_deep = f"{prefix}layer1.0.conv3.weight" in state
    stages, last = (1, 2, 3, 4), "conv3" if is_deep else "conv2"
    return {
        "layer_type": "bottleneck" if is_deep else "basic",
        "embedding_size": state[f"{prefix}conv1.weight"].shape[0],
        "hidden_sizes": [state[f"{prefix}layer{i}.0.{last}.weight"].shape[0] for i in stages],
        "depths": [sum(f"{prefix}layer{i}.{j}.conv1.weight" in state for j in range(99)) for i in stages],
    }


_COMMON = {"d_model": 256, "is_encoder_decoder": True, "num_hidden_layers": 6, "activation_function": "relu"}
_COMMON |= {"encoder_layers": 6, "encoder_attention_heads": 8, "encoder_ffn_dim": 2048, "scale_embedding": False}
_COMMON |= {"decoder_layers": 6, "decoder_attention_heads": 8, "decoder_ffn_dim": 2048, "auxiliary_loss": False}
_COMMON |= {"dropout": 0.1, "attention_dropout": 0.0, "activation_dropout": 0.0, "init_std": 0.02, "num_channels": 3}
_COMMON |= {"max_position_embeddings": 1024, "position_embedding_type": "sine", "eos_coefficient": 0.4}
_COMMON |= {"transformers_version": "4.30.0"}
_TINY = {"d_model": 48, "num_hidden_layers": 3}
_TINY |= {"encoder_layers": 3, "encoder_attention_heads": 4, "encoder_ffn_dim": 80}
_TINY |= {"decoder_layers": 3, "decoder_attention_heads": 4, "decoder_ffn_dim": 72}
TINY_EDGE = 192  # pixels of images whose long side is 800 or 1000 at full size
_TIMM = {"backbone": "resnet18", "dilation": False, "use_pretrained_backbone": True}
_OWN_NET = {"backbone": None, "dilation": None, "use_pretrained_backbone": None, "use_timm_backbone": False}
_RESNET18: dict[str, Any] = {"model_type": "resnet", "num_channels": 3, "embedding_size": 64, "hidden_act": "relu"}
_RESNET18 |= {"hidden_sizes": [64, 128, 256, 512], "depths": [2, 2, 2, 2], "layer_type": "basic"}
_RESNET18 |= {"out_features": ["stage1", "stage2", "stage3", "stage4"]}
_RESNET50 = {"layer_type": "bottleneck", "hidden_sizes": [256, 512, 1024, 2048], "depths": [3, 4, 6, 3]}
# Where timm names the tensors, the backbone is ResNet-18 at tiny size too: there is no name for a smaller one.
_TINY18 = {"embedding_size": 12, "hidden_sizes": [12, 16, 20, 24]}
_TINY50 = {"embedding_size": 12, "hidden_sizes": [16, 24, 32, 40], "depths": [1, 2, 2, 1]}

# What comes out of the backbone is large and attention is sharp, so that queries differ, and the classifier is sure of
# some of them: there must be objects to compare.
_GAINS = {"input_projection": 4, "q_proj": 1.7, "k_proj": 1.7, "class_labels_classifier": 3}

_IMAGENET = {"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225], "format": "coco_detection"}
_IMAGENET |= {"do_resize": True, "do_normalize": True}
_FIRST = {**_IMAGENET, "feature_extractor_type": "DetrFeatureExtractor", "size": 800}
_DETR_IMAGES = {**_IMAGENET, "image_processor_type": "DetrImageProcessor", "size": {"longest_edge": 800}, "resample": 2}
_DETR_IMAGES |= {"do_pad": True, "do_rescale": True, "rescale_factor": 0.00392156862745098}

_TABLES = {**labels("table", "table rotated"), "num_queries": 15}
_PARTS = {"num_queries": 125} | labels(
    "table", "table column", "table row", "table column header", "table projected row header", "table spanning cell"
)


def _table(like: str, config: Mapping[str, Any], head: str = "ForObjectDetection", **more: Any) -> TableSpec:
    deep, timm = more.pop("deep", False), more.get("timm", False)
    backbone = {**_RESNET18, **(_RESNET50 if deep else {})}
    tiny = _TINY if timm else {**_TINY, "backbone_config": {**backbone, **(_TINY50 if deep else _TINY18)}}
    own = _TIMM if timm else {**_OWN_NET, "backbone_config": backbone}
    return TableSpec(
        like=like,
        model_type="table-transformer",
        architecture=f"TableTransformer{head}",
        config={**_COMMON, **own, **config},
        tiny=tiny,
        **{"processor": _DETR_IMAGES, "gains": _GAINS, **more},
    )


SPECS: dict[str, TableSpec] = {
    "table-transformer-structure-recognition-v1.1-all": _table(
        "microsoft/table-transformer-structure-recognition-v1.1-all", _PARTS
    ),
    "table-transformer-detection": _table(
        "microsoft/table-transformer-detection", _TABLES, timm=True, processor={**_FIRST, "max_size": 800}, full=True
    ),
    "table-transformer-structure-recognition": _table(
        "microsoft/table-transformer-structure-recognition",
        _PARTS,
        timm=True,
        processor={**_FIRST, "max_size": 1000},
        format="bin",
    ),
    "table-transformer-detection-no-timm": _table("microsoft/table-transformer-detection, revision no_timm", _TABLES),
    "table-transformer-learned-positions": _table(
        "save_pretrained", {**_PARTS, "num_queries": 40, "position_embedding_type": "learned"}, deep=True
    ),
    "table-transformer-bare": _table("save_pretrained", {"num_queries": 15}, "Model"),
}
