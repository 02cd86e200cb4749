"""The config of a DPT checkpoint."""

from __future__ import annotations

from dataclasses import dataclass

from ...errors import ConfigError, UnsupportedError, nearest
from ..vit.config import VisionConfig

FACTORS = (4, 2, 1, 0.5)
READOUTS = ("ignore", "add", "project")


@dataclass(frozen=True, kw_only=True)
class DPTConfig(VisionConfig):
    model_type: str = "dpt"
    image_size: int | list[int] | tuple[int, ...] = 384
    qkv_bias: bool = True
    is_hybrid: bool = False
    backbone_out_indices: list[int] | tuple[int, ...] = (2, 5, 8, 11)
    readout_type: str = "project"
    reassemble_factors: list[int | float] | tuple[int | float, ...] = FACTORS
    neck_hidden_sizes: list[int] | tuple[int, ...] = (96, 192, 384, 768)
    fusion_hidden_size: int = 256
    head_in_index: int = -1
    use_batch_norm_in_fusion_residual: bool | None = False
    use_bias_in_fusion_residual: bool | None = None
    add_projection: bool = False
    use_auxiliary_head: bool | None = True
    auxiliary_loss_weight: float = 0.4
    semantic_loss_ignore_index: int = 255
    semantic_classifier_dropout: float = 0.1
    pooler_output_size: int | None = None
    pooler_act: str = "tanh"

    def __post_init__(self) -> None:
        # The hybrid of a ResNet and a ViT, and DPT over another encoder (BEiT, DINOv2, Swin).
        self.require(is_hybrid=False, backbone_config=None, backbone=None)
        super().__post_init__()
        self.fractions("semantic_classifier_dropout")
        for name in ("image_size", "patch_size"):
            if len(set(self._pair(name))) > 1:
                raise UnsupportedError(f"dpt: {name} = {getattr(self, name)!r} is not implemented, only squares are")
        if self.readout_type not in READOUTS:
            guess = nearest(self.readout_type, READOUTS)
            raise ConfigError(f"readout_type = {self.readout_type!r}, expected {', '.join(READOUTS)}{guess}")
        indices, widths, factors = self.backbone_out_indices, self.neck_hidden_sizes, self.reassemble_factors
        count, maps = self.num_hidden_layers, len(indices)
        if list(indices) != sorted(set(indices)) or not all(type(i) is int and 0 <= i < count for i in indices):
            raise ConfigError(f"backbone_out_indices = {indices!r} do not rise within 0 ... {count - 1}")
        if len(widths) != maps or not all(type(n) is int and 0 < n <= 100_000 for n in widths):
            raise ConfigError(f"neck_hidden_sizes = {widths!r}, expected a number above 0 for each of {maps} layers")
        if len(factors) != maps or not all(f in FACTORS for f in factors):
            raise UnsupportedError(f"reassemble_factors = {factors!r}, expected one of {FACTORS} for each of {maps}")
        if not -maps <= self.head_in_index < maps:
            raise ConfigError(f"head_in_index = {self.head_in_index} is out of range, expected {-maps} ... {maps - 1}")
        if self.fusion_hidden_size < 2:
            raise ConfigError(f"fusion_hidden_size = {self.fusion_hidden_size} is out of range, expected at least 2")
        if self.add_projection and self.fusion_hidden_size != 256:
            raise ConfigError(f"add_projection needs fusion_hidden_size = 256, found {self.fusion_hidden_size}")
        if self.pooler_output_size is not None and self.pooler_output_size < 0:
            raise ConfigError(f"pooler_output_size = {self.pooler_output_size} is out of range, expected at least 1")

    @property
    def pooler_size(self) -> int:
        """The width of the pooler's output: hidden_size unless the config has another."""
        return self.pooler_output_size or self.hidden_size

    @property
    def residual_bias(self) -> bool:
        """True if the convolutions of the fusion's residuals have biases."""
        given = self.use_bias_in_fusion_residual
        return not self.use_batch_norm_in_fusion_residual if given is None else given
