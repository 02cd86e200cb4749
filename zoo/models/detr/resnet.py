"""ResNet (He et al. 2015, https://arxiv.org/abs/1512.03385) as a backbone: an image to the features of its stages.

Shapes: B batch, Y and X height and width in pixels, C channels, D width of a stage.
"""

from __future__ import annotations

from collections.abc import Callable

from ... import ops
from ...nn import BatchNorm, Conv2d, Module
from ...typing import Array
from ...weights import Weights
from .config import ResNetConfig

Shortcut = Callable[[Array], Array]

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


def convolution(
    w: Weights, d_in: int, d_out: int, kernel: int, stride: int, act: str | None = None, post: str | None = None
) -> Conv2d:
    """post(act(norm(convolution)) + residual), the norm folded in; at stride 1 the image keeps its size."""
    norm = BatchNorm(w / "normalization", d_out, is_frozen=True)
    w = w / "convolution"
    return Conv2d(w, d_in, d_out, kernel, stride, kernel // 2, bias=False, act=act, norm=norm, post=post)


class Block(Module):
    """act(two or three convolutions + a shortcut)."""

    def __init__(self, w: Weights, cfg: ResNetConfig, d_in: int, d_out: int, stride: int):
        if cfg.layer_type == "basic":
            sizes = [(d_in, d_out, 3, stride), (d_out, d_out, 3, 1)]
        else:
            D = d_out // 4
            first, second = (stride, 1) if cfg.downsample_in_bottleneck else (1, stride)
            sizes = [(d_in, D, 1, first), (D, D, 3, second), (D, d_out, 1, 1)]
        last = len(sizes) - 1
        # transformers has relu here, whatever hidden_act says.
        self.convs = [convolution(w / "layer" / i, *sizes[i], act="relu") for i in range(last)]
        self.last = convolution(w / "layer" / last, *sizes[last], post=cfg.hidden_act)
        self.shortcut = self.make_shortcut(w / "shortcut", d_in, d_out, stride)

    def make_shortcut(self, w: Weights, d_in: int, d_out: int, stride: int) -> Shortcut | None:
        """The layers of the shortcut, on the input before it is added."""
        return None if stride == 1 and d_in == d_out else convolution(w, d_in, d_out, 1, stride)

    def __call__(self, x: Array) -> Array:
        """x (B, Y, X, d_in) -> (B, Y / stride, X / stride, d_out)."""
        residual = x if self.shortcut is None else self.shortcut(x)
        for conv in self.convs:
            x = conv(x)
        return self.last(x, residual)


class ResNet(Module):
    def __init__(self, w: Weights, cfg: ResNetConfig):
        D = cfg.embedding_size
        self.stem = convolution(w / "embedder.embedder", cfg.num_channels, D, 7, stride=2, act=cfg.hidden_act)
        self.stages = []
        for i, (width, depth) in enumerate(zip(cfg.hidden_sizes, cfg.depths, strict=True)):
            blocks = []
            for j in range(depth):
                stride = 2 if j == 0 and (i > 0 or cfg.downsample_in_first_stage) else 1
                blocks.append(Block(w / "encoder.stages" / i / "layers" / j, cfg, D, width, stride))
                D = width
            self.stages.append(blocks)

    def __call__(self, pixel_values: Array) -> list[Array]:
        """pixel_values (B, Y, X, C) -> (B, y, x, D) of each stage; in the last y is Y / 32 rounded up."""
        x, found = ops.max_pool2d(self.stem(pixel_values), 3, stride=2, padding=1), []
        for blocks in self.stages:
            for block in blocks:
                x = block(x)
            found.append(x)
        return found
