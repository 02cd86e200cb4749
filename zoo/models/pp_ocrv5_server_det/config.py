"""The config of a large PP-OCR detector of text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...config import Config, read_backbone
from ...errors import ConfigError, UnsupportedError
from ..hgnet_v2.config import HGNetV2Config

MODES = ("nearest", "bilinear")
# What transformers takes where config.json has no backbone_config.
BACKBONE = {"out_features": ["stage1", "stage2", "stage3", "stage4"]}
# The convolutions of an intraclass block that see a square, a column and a row, each at three ranges.
SHAPES = ("symmetric_conv_long", "vertical_long_to_small_conv", "horizontal_small_to_long_conv")
RANGES = ("longratio", "midratio", "shortratio")


def check_kernels(kernel_list: Any) -> tuple[int, int, int]:
    """`kernel_list`: the sizes of a head's three convolutions."""
    found: tuple[Any, ...] = tuple(kernel_list or ())
    if len(found) != 3 or not all(type(n) is int and 1 <= n <= 100 for n in found):
        raise ConfigError(f"kernel_list = {kernel_list!r}, expected three sizes, such as [3, 2, 2]")
    return found[0], found[1], found[2]


def pyramid_widths(net: Any) -> list[int]:
    """The channels of the four stages that a backbone's config chooses, each half as large as the one before."""
    first, *others = net.outputs
    strides = [net.stage_strides[i - 1] for i in others]
    if first < 1 or others != [first + i for i in (1, 2, 3)] or strides != [(2, 2)] * 3:
        raise ConfigError(
            f"backbone_config: its outputs, {net.outputs}, are of stages with the strides {net.stage_strides}, "
            "expected four stages in a row, of which each but the first has the stride 2"
        )
    return [net.widths[i] for i in net.outputs]


@dataclass(frozen=True, kw_only=True)
class PPOCRV5ServerDetConfig(Config):
    model_type: str = "pp_ocrv5_server_det"
    backbone_config: dict[str, Any] | None = None
    interpolate_mode: str = "nearest"
    neck_out_channels: int = 256
    reduce_factor: int = 2
    intraclass_block_number: int = 4
    intraclass_block_config: dict[str, Any] | None = None
    scale_factor: int = 2
    scale_factor_list: list[int] | None = None
    hidden_act: str = "relu"
    kernel_list: list[int] | None = None

    def __post_init__(self) -> None:
        self.positive("neck_out_channels", "reduce_factor")
        self.require(intraclass_block_number=4, scale_factor=2)
        if self.interpolate_mode not in MODES:
            raise UnsupportedError(f"interpolate_mode = {self.interpolate_mode!r} is not one of {MODES}")
        if self.neck_out_channels % (4 * self.reduce_factor):
            raise ConfigError(f"neck_out_channels = {self.neck_out_channels} is not a multiple of 4 x reduce_factor")
        if self.scale_factor_list is not None:
            self.require(scale_factor_list=[1, 2, 4, 8])
        if self.kernel_list is not None:
            check_kernels(self.kernel_list)
        if self.intraclass_block_config is not None:
            for name in self.block_convs:
                self.block_kernel(name)
        self.network  # noqa: B018  # refuses what it cannot read

    def check_fields(self) -> None:
        """Refuse a config without the fields that transformers has no value for: its model cannot be built then."""
        for name in ("intraclass_block_config", "scale_factor_list", "kernel_list"):
            if getattr(self, name) is None:
                raise ConfigError(f"{self.model_type}: {name} is missing, and has no default")

    @property
    def block_convs(self) -> tuple[str, ...]:
        """The fields of intraclass_block_config."""
        return ("reduce_channel", "return_channel", *(f"{shape}_{one}" for one in RANGES for shape in SHAPES))

    def block_kernel(self, name: str) -> tuple[int, int]:
        """Height and width of a convolution of an intraclass block, which leaves an image's size as it is."""
        raw = (self.intraclass_block_config or {}).get(name)
        parts: list[Any] = raw if isinstance(raw, list) and len(raw) == 3 else [0, 0, 0]
        kernel, stride, padding = parts
        sides: list[Any] = kernel if isinstance(kernel, list) and len(kernel) == 2 else [kernel, kernel]
        y, x = sides
        if not all(type(n) is int and 1 <= n <= 100 and n % 2 for n in (y, x)):
            raise ConfigError(f"intraclass_block_config: {name} = {raw!r}, expected [odd kernel, stride, padding]")
        if stride not in (1, [1, 1]) or (padding if isinstance(padding, list) else [padding] * 2) != [y // 2, x // 2]:
            raise UnsupportedError(
                f"intraclass_block_config: {name} = {raw!r}, only stride 1 and padding {[y // 2, x // 2]} are "
                "implemented, which leave an image's size"
            )
        return y, x

    @property
    def network(self) -> Any:
        """The backbone's config."""
        return read_backbone(BACKBONE if self.backbone_config is None else self.backbone_config, HGNetV2Config)

    @property
    def num_channels(self) -> int:
        return self.network.num_channels

    @property
    def patch(self) -> tuple[int, int]:
        """The pixels of a place of the last stage."""
        return self.network.patch
