"""The split network: from the picture of a table to the separators of its rows and columns, and to what parts cells.

Split and merge, after SPLERGE (Tensmeyer et al. 2019, https://doi.org/10.1109/ICDAR.2019.00027).  Two branches see the
same features: that of rows keeps the picture's height and narrows its width, that of columns the other way round.
Means over whole lines of pixels are mixed in again, and at the end a line of features for every second row, or column,
of pixels goes through convolutions and attention along the table.  It is not shipped yet.

Shapes: B batch, Y, X the picture's size, T = Y / 2 or X / 2 lines, C channels, D features of a line, O outputs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from zoo import ops
from zoo.config import Config
from zoo.inputs import ImageInputs, ImageModel
from zoo.nn import BatchNorm, Conv2d, LayerNorm, Linear, Module
from zoo.typing import Array
from zoo.weights import NameMap, Weights

ROWS = ("separator", "inside", "header", "heading")  # what is said of a line of pixels
COLUMNS = ("separator", "inside")
EPS = 1e-5
STEP = 16  # pixels: the sides of a picture are multiples of it


@dataclass(frozen=True, kw_only=True)
class SplitConfig(Config):
    """Channels of the stem and of a branch, features of a line; blocks of a branch, layers of its lines, heads."""

    model_type: str = "zoo-table-split"
    num_channels: int = 1
    stem: int = 16
    wide: int = 32
    lines: int = 96
    blocks: int = 3
    layers: int = 2
    heads: int = 4

    def __post_init__(self) -> None:
        self.positive("num_channels", "stem", "wide", "lines", "blocks", "layers", "heads")
        self.divides("heads", "lines")

    @property
    def patch(self) -> tuple[int, int]:
        return STEP, STEP


class SplitOutput(NamedTuple):
    """Logits: of each second row of pixels, of each second column, and that two cells meet at a place, not one."""

    rows: Array  # (B, Y / 2, 4)
    columns: Array  # (B, X / 2, 2)
    row_gaps: Array  # (B, Y / 2, X / 8)
    column_gaps: Array  # (B, Y / 8, X / 2)


def conv(
    w: Weights,
    d_in: int,
    d_out: int,
    kernel: tuple[int, int],
    act: str | None = "relu",
    post: str | None = None,
    **more: tuple[int, int],
) -> Conv2d:
    """A convolution with the batch norm after it; at stride 1 the picture keeps its size."""
    dilation = more.get("dilation", (1, 1))
    padding = dilation[0] * (kernel[0] // 2), dilation[1] * (kernel[1] // 2)
    norm = BatchNorm(w / 1, d_out)
    return Conv2d(w / 0, d_in, d_out, kernel, more.get("stride", (1, 1)), padding, dilation, False, act, norm, post)


class Axis:
    """The axis of pixels that a branch keeps, 1 for rows and 2 for columns; pairs are given along and across it."""

    def __init__(self, along: int):
        self.along, self.across = along, 3 - along

    def pair(self, along: int, across: int) -> tuple[int, int]:
        return (along, across) if self.along == 1 else (across, along)

    def line(self, x: Array) -> Array:
        """(B, T, C) -> an image one pixel wide."""
        return x.reshape(x.shape[0], *((x.shape[1], 1) if self.along == 1 else (1, x.shape[1])), x.shape[2])


class Block(Module):
    """relu(x + two convolutions + what the means of its lines say)."""

    def __init__(self, w: Weights, cfg: SplitConfig, axis: Axis, dilation: int):
        C, self.axis = cfg.wide, axis
        self.first = conv(w / "first", C, C, (3, 3), dilation=axis.pair(dilation, 1))
        self.second = conv(w / "second", C, C, (3, 3), None, "relu")
        self.along = conv(w / "along", C, C, axis.pair(9, 1))
        self.across = conv(w / "across", C, C, axis.pair(1, 5))
        self.mix_along = Conv2d(w / "mix_along", C, C, 1)
        self.mix_across = Conv2d(w / "mix_across", C, C, 1)

    def __call__(self, x: Array) -> Array:
        """(B, y, x, C) -> (B, y, x, C)."""
        lines = self.axis.line(ops.mean(x, self.axis.across))
        others = Axis(self.axis.across).line(ops.mean(x, self.axis.along))
        strips = self.mix_along(self.along(lines)) + self.mix_across(self.across(others))
        return self.second(self.first(x), x + strips)


class Layer(Module):
    """A convolution over neighbouring lines, and attention over all of them."""

    def __init__(self, w: Weights, cfg: SplitConfig, dilation: int):
        D, self.heads = cfg.lines, cfg.heads
        self.near_norm = LayerNorm(w / "near_norm", D, EPS)
        self.near = Conv2d(w / "near", D, D, (5, 1), (1, 1), (2 * dilation, 0), (dilation, 1), act="relu")
        self.norm, self.final_norm = LayerNorm(w / "norm", D, EPS), LayerNorm(w / "final_norm", D, EPS)
        self.qkv, self.out = Linear(w / "qkv", D, 3 * D), Linear(w / "out", D, D)
        self.up, self.down = Linear(w / "up", D, 2 * D, act="relu"), Linear(w / "down", 2 * D, D)

    def __call__(self, x: Array) -> Array:
        """(B, T, D) -> (B, T, D)."""
        B, T, D = x.shape
        near = self.near(self.near_norm(x).reshape(B, T, 1, D))
        x = x + near.reshape(B, T, D)
        seen = ops.attention(*ops.split_heads(self.qkv(self.norm(x)), self.heads))
        x = self.out(seen.reshape(B, T, D), x)
        return self.down(self.up(self.final_norm(x)), x)


class Branch(Module):
    def __init__(self, w: Weights, cfg: SplitConfig, along: int, outputs: int):
        self.axis, C, D = Axis(along), cfg.wide, cfg.lines
        self.down = conv(w / "down", cfg.stem, C, self.axis.pair(3, 5), stride=self.axis.pair(1, 4))
        self.blocks = [Block(w / "blocks" / i, cfg, self.axis, (1, 2, 4)[i % 3]) for i in range(cfg.blocks)]
        self.gather = Linear(w / "gather", 2 * C, D)
        self.layers = [Layer(w / "layers" / i, cfg, (1, 3)[i % 2]) for i in range(cfg.layers)]
        self.norm = LayerNorm(w / "norm", D, EPS)
        self.says, self.back = Linear(w / "says", D, outputs), Linear(w / "back", D, C)
        self.gaps = Conv2d(w / "gaps" / 0, C, C, 1, act="relu")
        self.gap = Conv2d(w / "gaps" / 2, C, 1, 1)

    def __call__(self, x: Array) -> tuple[Array, Array]:
        """(B, Y / 2, X / 2, stem) -> (B, T, O), and for rows (B, Y / 2, X / 8), for columns (B, Y / 8, X / 2)."""
        x = self.down(x)
        for block in self.blocks:
            x = block(x)
        B, Y, X, C = x.shape
        most = ops.max_pool2d(x, self.axis.pair(1, x.shape[self.axis.across]), 1)
        lines = self.gather(ops.cat([ops.mean(x, self.axis.across), most.reshape(B, -1, C)], -1))
        for layer in self.layers:
            lines = layer(lines)
        lines = self.norm(lines)
        gaps = self.gap(self.gaps(ops.activate(x + self.axis.line(self.back(lines)), ops.activation("relu"))))
        return self.says(lines), gaps.reshape(B, Y, X)


class SplitModel(ImageModel):
    config_class = SplitConfig
    name_map = NameMap(prefix="split", base=("stem", "rows", "columns"))
    is_base_model = True
    any_size = True

    def __init__(self, w: Weights, cfg: SplitConfig):
        self.config = cfg
        self.stem = conv(w / "stem", cfg.num_channels, cfg.stem, (5, 5), stride=(2, 2))
        self.rows = Branch(w / "rows", cfg, 1, len(ROWS))
        self.columns = Branch(w / "columns", cfg, 2, len(COLUMNS))

    def forward(self, p: ImageInputs) -> SplitOutput:
        """pixel_values (B, Y, X, 1), paper near 1 and ink near -1."""
        x = self.stem(p.pixel_values)
        rows, row_gaps = self.rows(x)
        columns, column_gaps = self.columns(x)
        return SplitOutput(rows, columns, row_gaps, column_gaps)
