"""The config of a BEiT checkpoint."""

from __future__ import annotations

from dataclasses import dataclass

from ...errors import ConfigError
from ..vit.config import VisionConfig


@dataclass(frozen=True, kw_only=True)
class BeitConfig(VisionConfig):
    model_type: str = "beit"
    vocab_size: int = 8192
    use_mask_token: bool = False
    use_absolute_position_embeddings: bool = False
    use_relative_position_bias: bool = False
    use_shared_relative_position_bias: bool = False
    layer_scale_init_value: float = 0.1
    use_mean_pooling: bool = True
    pool_scales: list[int] | tuple[int, ...] = (1, 2, 3, 6)
    use_auxiliary_head: bool = True
    auxiliary_channels: int = 256
    auxiliary_num_convs: int = 1
    auxiliary_concat_input: bool = False
    out_features: list[str] | None = None
    out_indices: list[int] | None = None
    add_fpn: bool = False
    reshape_hidden_states: bool = True
    drop_path_rate: float = 0.1
    auxiliary_loss_weight: float = 0.4
    semantic_loss_ignore_index: int = 255

    def __post_init__(self) -> None:
        super().__post_init__()
        self.fractions("drop_path_rate")
        self.positive("vocab_size", "auxiliary_channels")
        if not 0 <= self.auxiliary_num_convs <= 100:
            raise ConfigError(f"auxiliary_num_convs = {self.auxiliary_num_convs} is out of range, expected 0 ... 100")
        if not all(type(s) is int and s >= 1 for s in self.pool_scales):
            raise ConfigError(f"pool_scales = {self.pool_scales!r} are not all sizes of 1 or more")
        if len(self.outputs) != 4 and self.add_fpn:
            raise ConfigError(f"add_fpn needs four out_indices, found {list(self.outputs)}")

    @property
    def outputs(self) -> tuple[int, ...]:
        """The hidden states that a backbone returns and a segmentation head reads: 0 is the first layer's input, i the
        output of layer i.
        """
        count = self.num_hidden_layers + 1
        indices = self.out_indices
        if indices is None:
            indices = self.extra.get("segmentation_indices")  # its first name
        if indices is not None:
            if not isinstance(indices, (list, tuple)) or not all(
                type(i) is int and -count <= i < count for i in indices
            ):
                raise ConfigError(f"out_indices = {indices!r} are not all in {-count} ... {count - 1}")
            indices = [i % count for i in indices]
            if indices != sorted(set(indices)):
                raise ConfigError(f"out_indices = {self.out_indices} must rise from the first layer to the last")
        stages = ["stem", *(f"stage{i}" for i in range(1, count))]
        if self.out_features is None:
            return (count - 1,) if indices is None else tuple(indices)
        unknown = [name for name in self.out_features if name not in stages]
        if unknown:
            raise ConfigError(f"out_features has {unknown[0]!r}, which is not one of stem, stage1 ... {stages[-1]}")
        named = [stages.index(name) for name in self.out_features]
        if named != sorted(set(named)):
            raise ConfigError(f"out_features = {self.out_features} must rise from the first layer to the last")
        if indices is not None and indices != named:
            raise ConfigError(f"out_indices = {self.out_indices} and out_features = {self.out_features} do not agree")
        return tuple(named)
