"""The config of a D-FINE checkpoint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...config import read_backbone
from ...errors import ConfigError
from ..hgnet_v2.config import HGNetV2Config
from ..rt_detr_v2.config import Numbers, RTDetrV2Config


@dataclass(frozen=True, kw_only=True)
class DFineConfig(RTDetrV2Config):
    model_type: str = "d_fine"
    decoder_n_points: int | Numbers = 4  # type: ignore[assignment]
    eval_idx: int = -1
    max_num_bins: int = 32
    reg_scale: float = 4.0
    depth_mult: float = 1.0
    top_prob_values: int = 4
    lqe_hidden_dim: int = 64
    lqe_layers: int = 2
    up: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        self.positive("max_num_bins", "top_prob_values", "lqe_hidden_dim", "lqe_layers")
        self.above_zero("depth_mult", "reg_scale", "up")
        if self.max_num_bins % 2 or not 4 <= self.max_num_bins <= 1024:
            raise ConfigError(f"max_num_bins = {self.max_num_bins}, expected an even number from 4 to 1024")
        if self.top_prob_values > self.max_num_bins + 1:
            raise ConfigError(
                f"top_prob_values = {self.top_prob_values}, of max_num_bins + 1 = {self.max_num_bins + 1}"
            )
        if not 1 <= self.elan_blocks <= 100 or self.elan_width < 1:
            raise ConfigError(
                f"depth_mult = {self.depth_mult}, hidden_expansion = {self.hidden_expansion}: out of range"
            )
        if self.eval_idx != self.decoder_layers - 1:  # of the last layer; the others after it are for training
            self.require(eval_idx=-1)

    def check_points(self) -> None:
        points = self.points_of_levels
        if len(points) != self.num_feature_levels or not all(type(n) is int and 1 <= n <= 1024 for n in points):
            raise ConfigError(f"decoder_n_points = {self.decoder_n_points!r}, expected a number for each level")

    @property
    def points_of_levels(self) -> tuple[int, ...]:
        """The points of a head in each size of features."""
        given = self.decoder_n_points
        return (given,) * self.num_feature_levels if isinstance(given, int) else tuple(given)

    @property
    def elan_blocks(self) -> int:
        """The blocks of each of the two rows in a fusion."""
        return round(3 * self.depth_mult)

    @property
    def elan_width(self) -> int:
        """The channels of these blocks."""
        return round(self.hidden_expansion * self.encoder_hidden_dim // 2)

    @property
    def network(self) -> Any:
        return read_backbone({"out_indices": [2, 3, 4], **(self.backbone_config or {})}, HGNetV2Config)

    @property
    def feature_widths(self) -> tuple[int, ...]:
        network = self.network
        said, own = network.hidden_sizes, network.stage_out_channels
        # transformers makes what reads the features by the former, and could not run it.
        if any(tuple(said[i - 1 : i]) != tuple(own[i - 1 : i]) for i in network.outputs):
            raise ConfigError(
                f"backbone_config: hidden_sizes = {said!r} are not stage_out_channels = {own!r} where they are read"
            )
        return tuple(network.widths[i] for i in network.outputs)
