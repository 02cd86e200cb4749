"""BEiT as a backbone, and with UPerNet (Xiao et al. 2018, https://arxiv.org/abs/1807.10221): a class a pixel.

Shapes: B batch, Y and X height and width in pixels, C channels, h and w the same in patches, D hidden_size, L labels.
"""

from __future__ import annotations

from collections.abc import Sequence

from ... import ops
from ...errors import ConfigError, InputError
from ...inputs import ImageInputs
from ...nn import BatchNorm, Conv2d, ConvTranspose2d, Module
from ...typing import Array
from ...weights import Weights
from ..vit.backbone import BackboneOutput, select_states
from .config import BeitConfig
from .model import BASE_NAME_MAP, BeitModel, BeitPretrained


def images(states: Sequence[Array], grid: tuple[int, int]) -> list[Array]:
    """The patches of hidden states (B, T, D) as images (B, h, w, D)."""
    return [x[:, 1:].reshape(x.shape[0], *grid, -1) for x in states]


class Pyramid(Module):
    """Four images of the same size made into four scales: 4, 2, 1 and 1/2 times that."""

    def __init__(self, w: Weights, cfg: BeitConfig):
        D = cfg.hidden_size
        self.up = ConvTranspose2d(w / "fpn1.0", D, D, 2, stride=2, act="gelu", norm=BatchNorm(w / "fpn1.1", D))
        self.up_again = ConvTranspose2d(w / "fpn1.3", D, D, 2, stride=2)
        self.up_once = ConvTranspose2d(w / "fpn2.0", D, D, 2, stride=2)

    def __call__(self, maps: Sequence[Array]) -> list[Array]:
        if any(n < 2 for n in maps[3].shape[1:3]):
            raise InputError(
                f"an image of {maps[3].shape[1]} x {maps[3].shape[2]} patches is too small to be halved: "
                "expected at least 2 x 2 patches"
            )
        return [self.up_again(self.up(maps[0])), self.up_once(maps[1]), maps[2], ops.max_pool2d(maps[3], 2, 2)]


def block(w: Weights, d_in: int, d_out: int, kernel: int) -> Conv2d:
    """relu(norm(convolution))."""
    norm = BatchNorm(w / "bn", d_out)
    return Conv2d(w / "conv", d_in, d_out, kernel, padding=kernel // 2, bias=False, act="relu", norm=norm)


class UperHead(Module):
    def __init__(self, w: Weights, cfg: BeitConfig):
        D, self.scales = cfg.hidden_size, tuple(cfg.pool_scales)
        self.pools = [block(w / "psp_modules" / i / 1, D, D, 1) for i in range(len(self.scales))]
        self.bottleneck = block(w / "bottleneck", D + len(self.scales) * D, D, 3)
        self.laterals = [block(w / "lateral_convs" / i, D, D, 1) for i in range(3)]
        self.smooths = [block(w / "fpn_convs" / i, D, D, 3) for i in range(3)]
        self.merge = block(w / "fpn_bottleneck", 4 * D, D, 3)
        self.classifier = Conv2d(w / "classifier", D, cfg.num_labels, 1)

    def __call__(self, maps: Sequence[Array]) -> Array:
        """Four maps (B, y, x, D), each half as large as the one before -> (B, y, x, L), as large as the first."""
        size, top = maps[0].shape[1:3], maps[3]
        pooled = [
            ops.interpolate(conv(ops.adaptive_avg_pool2d(top, scale)), top.shape[1:3])
            for scale, conv in zip(self.scales, self.pools, strict=True)
        ]
        x = self.bottleneck(ops.cat([top, *pooled], 3))
        outs = [ops.interpolate(x, size)]
        for i in (2, 1, 0):
            x = self.laterals[i](maps[i]) + ops.interpolate(x, maps[i].shape[1:3])
            smooth = self.smooths[i](x)
            outs.insert(0, ops.interpolate(smooth, size) if i else smooth)
        return self.classifier(self.merge(ops.cat(outs, 3)))


class AuxiliaryHead(Module):
    """A second head, used only in the loss of training."""

    def __init__(self, w: Weights, cfg: BeitConfig):
        D, E = cfg.hidden_size, cfg.auxiliary_channels
        self.convs = [block(w / "convs" / i, D if i == 0 else E, E, 3) for i in range(cfg.auxiliary_num_convs)]
        self.conv_cat = block(w / "conv_cat", D + E, E, 3) if cfg.auxiliary_concat_input else None
        self.classifier = Conv2d(w / "classifier", E, cfg.num_labels, 1)

    def __call__(self, maps: Sequence[Array]) -> Array:
        """Four maps, of which it reads the third (B, y, x, D) -> (B, y, x, L)."""
        x = maps[2]
        for conv in self.convs:
            x = conv(x)
        if self.conv_cat is not None:
            x = self.conv_cat(ops.cat([maps[2], x], 3))
        return self.classifier(x)


class BeitForSemanticSegmentation(BeitPretrained):
    only_saved = (*BeitPretrained.only_saved, r"\.num_batches_tracked$")  # a counter of training

    def __init__(self, w: Weights, cfg: BeitConfig):
        if len(cfg.outputs) != 4:
            raise ConfigError(f"out_indices = {list(cfg.outputs)}: a segmentation head reads four hidden states")
        self.config = cfg
        self.base_model = BeitModel(w / "beit", cfg, pooler=False)
        self.pyramid = Pyramid(w, cfg)
        self.decode_head = UperHead(w / "decode_head", cfg)
        self.auxiliary_head = None
        if cfg.use_auxiliary_head and "auxiliary_head" in w:
            self.auxiliary_head = AuxiliaryHead(w / "auxiliary_head", cfg)

    def maps(self, p: ImageInputs) -> list[Array]:
        """-> four maps (B, y, x, D) for the heads, each half as large as the one before."""
        # The checkpoints were trained so: here index i is the input of layer i, and the last layer is unused.
        count = self.config.num_hidden_layers + 1
        states = select_states(self.base_model.hidden_states(p), [(i - 1) % count for i in self.config.outputs])
        return self.pyramid(images(states, p.grid))

    def forward(self, p: ImageInputs) -> Array:
        """-> logits (B, 4 h, 4 w, L)."""
        return self.decode_head(self.maps(p))


class BeitBackbone(BeitPretrained):
    """The layers as other models use them: some of their hidden states, in order."""

    is_base_model = True
    name_map = BASE_NAME_MAP
    only_saved = (*BeitPretrained.only_saved, r"^fpn.*\.num_batches_tracked$")

    def __init__(self, w: Weights, cfg: BeitConfig):
        if cfg.add_fpn and not cfg.reshape_hidden_states:
            raise ConfigError("add_fpn = True needs reshape_hidden_states = True: a pyramid is made of images")
        self.config = cfg
        self.base_model = BeitModel(w, cfg, pooler=False)
        self.pyramid = Pyramid(w, cfg) if cfg.add_fpn else None

    def forward(self, p: ImageInputs) -> BackboneOutput:
        """-> the hidden states that the config names."""
        maps = select_states(self.base_model.hidden_states(p), self.config.outputs)
        if self.config.reshape_hidden_states:
            maps = images(maps, p.grid)
        return BackboneOutput(tuple(maps if self.pyramid is None else self.pyramid(maps)))
