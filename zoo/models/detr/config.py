"""The config of a DETR checkpoint, and of the ResNet that it looks through."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ...config import Config, errors_of, read_backbone
from ...errors import ConfigError, UnsupportedError, nearest
from ..resnet.config import ResNetConfig

# timm's names: kind of block, number of blocks in each stage
TIMM_RESNETS = {
    "resnet18": ("basic", (2, 2, 2, 2)),
    "resnet34": ("basic", (3, 4, 6, 3)),
    "resnet50": ("bottleneck", (3, 4, 6, 3)),
    "resnet101": ("bottleneck", (3, 4, 23, 3)),
    "resnet152": ("bottleneck", (3, 8, 36, 3)),
}
# timm's names to those of transformers, below the name of a backbone
TIMM_NAMES = {
    r"(conv_encoder\.model\.)conv1\.": r"\1embedder.embedder.convolution.",
    r"(conv_encoder\.model\.)bn1\.": r"\1embedder.embedder.normalization.",
    **{rf"(conv_encoder\.model\.)layer{i + 1}\.(\d+)\.": rf"\1encoder.stages.{i}.layers.\2." for i in range(4)},
    **{rf"(stages\.\d+\.layers\.\d+\.)conv{i + 1}\.": rf"\1layer.{i}.convolution." for i in range(3)},
    **{rf"(stages\.\d+\.layers\.\d+\.)bn{i + 1}\.": rf"\1layer.{i}.normalization." for i in range(3)},
    r"(stages\.\d+\.layers\.\d+\.)downsample\.0\.": r"\1shortcut.convolution.",
    r"(stages\.\d+\.layers\.\d+\.)downsample\.1\.": r"\1shortcut.normalization.",
}


@dataclass(frozen=True, kw_only=True)
class DetrConfig(Config):
    aliases: ClassVar[Mapping[str, str]] = {
        "hidden_size": "d_model",
        "num_attention_heads": "encoder_attention_heads",
        "num_hidden_layers": "encoder_layers",
    }
    model_type: str = "detr"
    use_timm_backbone: bool | None = True
    backbone_config: dict[str, Any] | None = None
    backbone: str | None = None
    backbone_kwargs: dict[str, Any] | None = None
    num_channels: int = 3
    num_queries: int = 100
    encoder_layers: int = 6
    encoder_ffn_dim: int = 2048
    encoder_attention_heads: int = 8
    decoder_layers: int = 6
    decoder_ffn_dim: int = 2048
    decoder_attention_heads: int = 8
    activation_function: str = "relu"
    d_model: int = 256
    position_embedding_type: str = "sine"
    dilation: bool | None = False
    auxiliary_loss: bool = False
    dropout: float = 0.1
    attention_dropout: float = 0.0
    activation_dropout: float = 0.0
    class_cost: int | float = 1
    bbox_cost: int | float = 5
    giou_cost: int | float = 2
    bbox_loss_coefficient: int | float = 5
    giou_loss_coefficient: int | float = 2
    eos_coefficient: float = 0.1

    def __post_init__(self) -> None:
        self.positive("num_channels", "num_queries", "encoder_layers", "decoder_layers", "d_model")
        self.positive("encoder_ffn_dim", "decoder_ffn_dim", "encoder_attention_heads", "decoder_attention_heads")
        self.fractions("dropout", "attention_dropout", "activation_dropout")
        self.divides("encoder_attention_heads", "d_model")
        self.divides("decoder_attention_heads", "d_model")
        kinds = ("sine", "learned")
        if self.position_embedding_type not in kinds:
            guess = nearest(self.position_embedding_type, kinds)
            raise UnsupportedError(
                f"position_embedding_type = {self.position_embedding_type!r}, zoo has {kinds}{guess}"
            )
        if self.d_model % 4:
            raise ConfigError(
                f"d_model = {self.d_model} is not a multiple of 4, which the sines and cosines of two coordinates need"
            )
        if self.dilation:
            raise UnsupportedError("dilation = True, a backbone that is dilated in its last stage, is not implemented")
        # Other names for the same fields: transformers takes whichever comes last.
        self.require(
            hidden_size=self.d_model,
            num_attention_heads=self.encoder_attention_heads,
            num_hidden_layers=self.encoder_layers,
            scale_embedding=False,
        )
        self.resnet  # noqa: B018  # refuses what it cannot read

    @property
    def resnet(self) -> ResNetConfig:
        """The backbone's config: `backbone_config`, or that of timm's model `backbone`."""
        raw = self.backbone_config
        if raw is None and not self.use_timm_backbone:
            if self.backbone is not None:
                raise UnsupportedError(
                    f"backbone = {self.backbone!r} is in another repository, expected a backbone_config here"
                )
            raw = {}
        if raw is None:
            return self._timm_resnet({"backbone": self.backbone, **self._timm_options()})
        if raw.get("model_type") == "timm_backbone":
            return self._timm_resnet(raw)
        found = read_backbone(raw, ResNetConfig)
        with errors_of("backbone_config"):
            return full_backbone(found)

    def _timm_resnet(self, raw: dict[str, Any]) -> ResNetConfig:
        found = raw.get("backbone") or "resnet50"
        name = str(found).partition(".")[0]  # what follows says how it was trained
        if name not in TIMM_RESNETS:
            guess = nearest(name, TIMM_RESNETS)
            raise UnsupportedError(f"backbone = {found!r} is not implemented, only {', '.join(TIMM_RESNETS)}{guess}")
        if raw.get("output_stride") not in (None, 32):
            raise UnsupportedError(f"output_stride = {raw['output_stride']!r} is not implemented, only 32 is")
        kind, depths = TIMM_RESNETS[name]
        known = {
            "num_channels": raw.get("num_channels", self.num_channels),
            "hidden_sizes": [width * (4 if kind == "bottleneck" else 1) for width in (64, 128, 256, 512)],
            "depths": depths,
            "layer_type": kind,
            "out_indices": raw.get("out_indices"),
        }
        return full_backbone(ResNetConfig.from_dict(known))

    def _timm_options(self) -> dict[str, Any]:
        """The options of timm's model: version 4 of transformers writes its names, with what it takes by default."""
        given, known = dict(self.backbone_kwargs or {}), ("num_channels", "out_indices", "output_stride")
        if "in_chans" in given:
            given["num_channels"] = given.pop("in_chans")
        for name in given:
            if name not in known:
                raise UnsupportedError(
                    f"backbone_kwargs has {name!r}, zoo knows {', '.join(known)}{nearest(name, known)}"
                )
        return given


def full_backbone(cfg: ResNetConfig) -> ResNetConfig:
    """A backbone's config; UnsupportedError if it leaves out the last stage, which is the one that DETR reads."""
    stages = len(cfg.depths)
    chosen = cfg.out_features or cfg.out_indices
    if chosen and cfg.outputs[-1] != stages:
        raise UnsupportedError(
            f"out_features = {cfg.out_features!r}, out_indices = {cfg.out_indices!r}: only a backbone that ends with "
            f"its last stage, {stages}, is implemented"
        )
    return cfg
