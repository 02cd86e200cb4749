"""ResNet (He et al. 2015, https://arxiv.org/abs/1512.03385): blocks of convolutions that are added to their input.

Images may have any size.  Channels come last.

Shapes: B batch, Y and X height and width in pixels, C channels, y and x those of a stage, D its width, L labels.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

from ... import ops
from ...inputs import ImageInputs, ImageModel
from ...nn import BatchNorm, Conv2d, Linear, Module
from ...typing import Array
from ...weights import NameMap, Weights
from ..vit.backbone import BackboneOutput, select_states
from .config import ResNetConfig

NAME_MAP = NameMap(
    prefix="resnet",
    base=("embedder", "encoder"),
    ignored=(r"\.num_batches_tracked$", r"^classifier\."),  # a counter of training, and the head
)

Shortcut = Callable[[Array], Array]


class ResNetModelOutput(NamedTuple):
    last_hidden_state: Array  # (B, y, x, D)
    pooler_output: Array  # (B, D)


def convolution(
    w: Weights,
    d_in: int,
    d_out: int,
    kernel: int,
    stride: int,
    act: str | None = None,
    post: str | None = None,
    is_frozen: bool = True,
) -> Conv2d:
    """post(act(norm(convolution)) + residual), the norm folded in; at stride 1 the image keeps its size."""
    norm = BatchNorm(w / "normalization", d_out, is_frozen=is_frozen)
    w = w / "convolution"
    return Conv2d(w, d_in, d_out, kernel, stride, kernel // 2, bias=False, act=act, norm=norm, post=post)


class Stem(Module):
    prefix_tokens: tuple[Array, ...] = ()

    def __init__(self, w: Weights, cfg: ResNetConfig, is_frozen: bool):
        D = cfg.embedding_size
        self.conv = convolution(w / "embedder", cfg.num_channels, D, 7, 2, cfg.hidden_act, is_frozen=is_frozen)

    def __call__(self, pixels: Array) -> Array:
        """pixels (B, Y, X, C) -> (B, Y / 4, X / 4, D), rounded up."""
        return ops.max_pool2d(self.conv(pixels), 3, stride=2, padding=1)


class Block(Module):
    """act(two or three convolutions + a shortcut)."""

    def __init__(self, w: Weights, cfg: ResNetConfig, d_in: int, d_out: int, stride: int, is_frozen: bool = True):
        if cfg.layer_type == "basic":
            sizes = [(d_in, d_out, 3, stride), (d_out, d_out, 3, 1)]
        else:
            D = d_out // 4
            first, second = (stride, 1) if cfg.downsample_in_bottleneck else (1, stride)
            sizes = [(d_in, D, 1, first), (D, D, 3, second), (D, d_out, 1, 1)]
        self.is_frozen, last = is_frozen, len(sizes) - 1
        # transformers has relu here, whatever hidden_act says.
        self.convs = [convolution(w / "layer" / i, *sizes[i], "relu", None, is_frozen) for i in range(last)]
        self.last = convolution(w / "layer" / last, *sizes[last], None, cfg.hidden_act, is_frozen)
        self.shortcut = self.make_shortcut(w / "shortcut", d_in, d_out, stride)

    def make_shortcut(self, w: Weights, d_in: int, d_out: int, stride: int) -> Shortcut | None:
        """The layers of the shortcut, on the input before it is added."""
        is_plain = stride == 1 and d_in == d_out
        return None if is_plain else convolution(w, d_in, d_out, 1, stride, is_frozen=self.is_frozen)

    def __call__(self, x: Array) -> Array:
        """x (B, Y, X, d_in) -> (B, Y / stride, X / stride, d_out)."""
        residual = x if self.shortcut is None else self.shortcut(x)
        for conv in self.convs:
            x = conv(x)
        return self.last(x, residual)


class Stage(Module):
    def __init__(self, w: Weights, cfg: ResNetConfig, i: int, is_frozen: bool):
        D, d = cfg.hidden_sizes[i], cfg.hidden_sizes[i - 1] if i else cfg.embedding_size
        stride = 2 if i or cfg.downsample_in_first_stage else 1
        first = Block(w / "layers" / 0, cfg, d, D, stride, is_frozen)
        self.blocks = [first, *(Block(w / "layers" / j, cfg, D, D, 1, is_frozen) for j in range(1, cfg.depths[i]))]

    def __call__(self, x: Array) -> Array:
        """x (B, Y, X, d) -> (B, y, x, D)."""
        for block in self.blocks:
            x = block(x)
        return x


class ResNet(Module):
    """The network, which detectors look through too; is_frozen: training leaves its norms as they are."""

    def __init__(self, w: Weights, cfg: ResNetConfig, is_frozen: bool = True):
        self.embeddings = Stem(w / "embedder", cfg, is_frozen)
        self.layers = [Stage(w / "encoder.stages" / i, cfg, i, is_frozen) for i in range(len(cfg.depths))]

    def hidden_states(self, pixels: Array) -> Iterator[Array]:
        """pixels (B, Y, X, C) -> yield the first stage's input, then (B, y, x, D) of each stage."""
        x = self.embeddings(pixels)
        yield x
        for stage in self.layers:
            x = stage(x)
            yield x

    def __call__(self, pixels: Array) -> list[Array]:
        """pixels (B, Y, X, C) -> (B, y, x, D) of each stage; in the last of four y is Y / 32 rounded up."""
        return list(self.hidden_states(pixels))[1:]


class ResNetPretrained(ImageModel):
    config_class = ResNetConfig
    name_map = NAME_MAP
    only_saved = (r"\.num_batches_tracked$",)  # a counter of training
    any_size = True

    def grid(self, pixel_values: Array) -> tuple[int, int]:
        """Rows and columns of the last stage, rounded up."""
        (Y, X), (y, x) = pixel_values.shape[1:3], self.patch
        return (Y + y - 1) // y, (X + x - 1) // x


class ResNetModel(ResNetPretrained):
    is_base_model = True

    def __init__(self, w: Weights, cfg: ResNetConfig):
        self.config, self.net = cfg, ResNet(w, cfg, is_frozen=False)

    @property
    def embeddings(self) -> Stem:
        return self.net.embeddings

    @property
    def layers(self) -> list[Stage]:
        return self.net.layers

    def forward(self, p: ImageInputs) -> ResNetModelOutput:
        (x,) = deque(self.net.hidden_states(p.pixel_values), maxlen=1)
        return ResNetModelOutput(x, ops.mean(x.reshape(x.shape[0], -1, x.shape[3]), 1))


class ResNetForImageClassification(ResNetPretrained):
    def __init__(self, w: Weights, cfg: ResNetConfig):
        self.config = cfg
        self.base_model = ResNetModel(w / "resnet", cfg)
        self.classifier = Linear(w / "classifier" / 1, cfg.hidden_size, cfg.num_labels)

    def forward(self, p: ImageInputs) -> Array:
        """-> logits (B, L)."""
        return self.classifier(self.base_model.forward(p).pooler_output)


class ResNetBackbone(ResNetPretrained):
    """The stages as other models use them: some of their hidden states, in order."""

    is_base_model = True

    def __init__(self, w: Weights, cfg: ResNetConfig):
        self.config, self.base_model = cfg, ResNetModel(w, cfg)

    def forward(self, p: ImageInputs) -> BackboneOutput:
        """-> the hidden states that the config names."""
        states = self.base_model.net.hidden_states(p.pixel_values)
        return BackboneOutput(tuple(select_states(states, self.config.outputs)))
