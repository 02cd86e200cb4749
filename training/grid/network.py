"""The split network: from the picture of a table to the separators of its rows and columns, and to their gaps.

Split and merge, after SPLERGE (Tensmeyer et al. 2019, https://doi.org/10.1109/ICDAR.2019.00027).  Two branches see the
same features: the one of rows keeps the picture's height and narrows its width, the one of columns the other way round.
In each, means over whole lines and columns of pixels are mixed in again ("strips"), and at the end a line of features
for each second row of pixels goes through convolutions and attention along the table.

Shapes: B batch, H, W the picture's size, a multiple of 16.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from training.grid.split import COLUMNS, ROWS


class Size(NamedTuple):
    """Channels of the stem, of a branch, of its lines; blocks of a branch, layers of its lines, heads."""

    stem: int = 16
    wide: int = 32
    lines: int = 96
    blocks: int = 3
    layers: int = 2
    heads: int = 4


class Conv(nn.Sequential):
    """A convolution, a batch norm and, but for act=False, a ReLU."""

    def __init__(self, i: int, o: int, kernel: tuple[int, int], stride: Any = 1, dilation: Any = 1, act: bool = True):
        dilation = (dilation, dilation) if isinstance(dilation, int) else dilation
        pad = tuple(d * (k // 2) for k, d in zip(kernel, dilation, strict=True))
        layers: list[nn.Module] = [nn.Conv2d(i, o, kernel, stride, pad, dilation, bias=False)]
        layers += [nn.BatchNorm2d(o, momentum=0.05)]
        super().__init__(*layers, *([nn.ReLU()] if act else []))


class Block(nn.Module):
    """Two convolutions beside the features, the first of them dilated along the branch, and strips mixed in."""

    def __init__(self, channels: int, dilation: int):
        super().__init__()
        self.first = Conv(channels, channels, (3, 3), dilation=(dilation, 1))
        self.second = Conv(channels, channels, (3, 3), act=False)
        self.along = Conv(channels, channels, (9, 1))  # of the means of lines
        self.across = Conv(channels, channels, (1, 5))  # of the means of columns
        self.mix_along = nn.Conv2d(channels, channels, 1)
        self.mix_across = nn.Conv2d(channels, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        strips = self.mix_along(self.along(x.mean(3, keepdim=True)))
        strips = strips + self.mix_across(self.across(x.mean(2, keepdim=True)))
        return F.relu(x + self.second(self.first(x)) + strips)


class Layer(nn.Module):
    """A convolution over neighbouring lines, and attention over all of them."""

    def __init__(self, size: int, heads: int, dilation: int):
        super().__init__()
        self.heads = heads
        self.near = nn.Conv1d(size, size, 5, padding=2 * dilation, dilation=dilation)
        self.norm, self.final_norm = nn.LayerNorm(size), nn.LayerNorm(size)
        self.near_norm = nn.LayerNorm(size)
        self.qkv, self.out = nn.Linear(size, 3 * size), nn.Linear(size, size)
        self.up, self.down = nn.Linear(size, 2 * size), nn.Linear(2 * size, size)

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, D)."""
        x = x + F.relu(self.near(self.near_norm(x).transpose(1, 2))).transpose(1, 2)
        q, k, v = self.qkv(self.norm(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        return x + self.down(F.relu(self.up(self.final_norm(x))))


class Branch(nn.Module):
    """Of lines of pixels; the picture's height is kept at a half, its width goes down to an eighth."""

    def __init__(self, size: Size, outputs: int):
        super().__init__()
        s = size
        self.down = Conv(s.stem, s.wide, (3, 5), (1, 4))
        self.blocks = nn.ModuleList(Block(s.wide, (1, 2, 4)[i % 3]) for i in range(s.blocks))
        self.gather = nn.Linear(2 * s.wide, s.lines)
        self.layers = nn.ModuleList(Layer(s.lines, s.heads, (1, 3)[i % 2]) for i in range(s.layers))
        self.norm = nn.LayerNorm(s.lines)
        self.says = nn.Linear(s.lines, outputs)
        self.back = nn.Linear(s.lines, s.wide)
        self.gaps = nn.Sequential(nn.Conv2d(s.wide, s.wide, 1), nn.ReLU(), nn.Conv2d(s.wide, 1, 1))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """(B, stem, H / 2, W / 2) -> (B, H / 2, outputs), (B, H / 2, W / 8)."""
        x = self.down(x)
        for block in self.blocks:
            x = block(x)
        lines = self.gather(torch.cat([x.mean(3), x.amax(3)], 1).transpose(1, 2))
        for layer in self.layers:
            lines = layer(lines)
        lines = self.norm(lines)
        back = self.back(lines).transpose(1, 2)[..., None]
        return self.says(lines), self.gaps(F.relu(x + back))[:, 0]


class Split(nn.Module):
    """The whole network."""

    def __init__(self, size: Size):
        super().__init__()
        self.stem = Conv(1, size.stem, (5, 5), 2)
        self.rows, self.columns = Branch(size, len(ROWS)), Branch(size, len(COLUMNS))

    def forward(self, pixels: Tensor) -> dict[str, Tensor]:
        """pixels (B, 1, H, W), paper near 1, ink near -1 ->

        rows (B, H / 2, 4), columns (B, W / 2, 2), logits for each second line of pixels;
        row_gaps (B, H / 2, W / 8), column_gaps (B, H / 8, W / 2): logits that two cells meet here, and not one.
        """
        x = self.stem(pixels)
        rows, row_gaps = self.rows(x)
        columns, column_gaps = self.columns(x.transpose(2, 3))
        return {
            "rows": rows,
            "columns": columns,
            "row_gaps": row_gaps,
            "column_gaps": column_gaps.transpose(1, 2),
        }
