"""The config of a DETR checkpoint, and of the ResNet that it looks through."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...config import Config
from ...errors import ConfigError, UnsupportedError, nearest

# timm's names: kind of block, number of blocks in each stage
TIMM_RESNETS = {
    "resnet18": ("basic", (2, 2, 2, 2)),
    "resnet34": ("basic", (3, 4, 6, 3)),
    "resnet50": ("bottleneck", (3, 4, 6, 3)),
    "resnet101": ("bottleneck", (3, 4, 23, 3)),
    "resnet152": ("bottleneck", (3, 8, 36, 3)),
}
LAYER_TYPES = ("basic", "bottleneck")


@dataclass(frozen=True, kw_only=True)
class ResNetConfig(Config):
    model_type: str = "resnet"
    num_channels: int = 3
    embedding_size: int = 64
    hidden_sizes: list[int] | tuple[int, ...] = (256, 512, 1024, 2048)
    depths: list[int] | tuple[int, ...] = (3, 4, 6, 3)
    layer_type: str = "bottleneck"
    hidden_act: str = "relu"
    downsample_in_first_stage: bool = False
    downsample_in_bottleneck: bool = False
    out_features: list[str] | None = None
    out_indices: list[int] | tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        self.positive("num_channels", "embedding_size")
        for name in ("hidden_sizes", "depths"):
            value = getattr(self, name)
            if not value or not all(type(n) is int and 1 <= n <= 100_000 for n in value):
                raise ConfigError(f"{name} = {value!r} is not a list of numbers from 1 to 100000")
        stages = len(self.depths)
        if len(self.hidden_sizes) != stages or sum(self.depths) > 10_000:
            raise ConfigError(f"hidden_sizes = {self.hidden_sizes!r} and depths = {self.depths!r} do not fit together")
        if self.layer_type not in LAYER_TYPES:
            guess = nearest(self.layer_type, LAYER_TYPES)
            raise UnsupportedError(f"layer_type = {self.layer_type!r} is not one of {LAYER_TYPES}{guess}")
        features, indices = self.out_features, self.out_indices
        if (features and features[-1] != f"stage{stages}") or (indices and indices[-1] not in (-1, stages)):
            raise UnsupportedError(
                f"out_features = {features!r}, out_indices = {indices!r}: only a backbone that ends with its last "
                f"stage, {stages}, is implemented"
            )


@dataclass(frozen=True, kw_only=True)
class DetrConfig(Config):
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
                f"d_model = {self.d_model} is no multiple of 4, which the sines and cosines of two coordinates need"
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
        kind = raw.get("model_type", "resnet")
        if kind != "resnet":
            raise UnsupportedError(f"backbone_config: model_type = {kind!r} is not implemented, only 'resnet' is")
        try:
            return ResNetConfig.from_dict(raw)
        except (ConfigError, UnsupportedError) as e:
            raise type(e)(f"backbone_config: {e}") from None

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
        return ResNetConfig.from_dict(known)

    def _timm_options(self) -> dict[str, Any]:
        given, known = self.backbone_kwargs or {}, ("num_channels", "out_indices", "output_stride")
        for name in given:
            if name not in known:
                raise UnsupportedError(
                    f"backbone_kwargs has {name!r}, zoo knows {', '.join(known)}{nearest(name, known)}"
                )
        return given
