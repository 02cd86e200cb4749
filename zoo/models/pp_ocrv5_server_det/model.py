"""PP-OCRv5's large detector of text: HGNetV2, a pyramid of its four stages down and up again with large kernels, as in
LK-PAN (Li et al. 2022, https://arxiv.org/abs/2206.03001), and each pixel's probability of being within a line, as in
DB (Liao et al. 2019, https://arxiv.org/abs/1911.08947), which is then corrected on the full size.

Height and width of images are multiples of 32.  Channels come last.

Shapes: B batch, Y and X height and width in pixels, y and x a quarter of them, N neck_out_channels.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ... import ops
from ...inputs import ImageInputs, ImageModel
from ...nn import BatchNorm, Conv2d, ConvTranspose2d, FoldedModule, Module
from ...typing import Array
from ...weights import NameMap, Weights
from ..hgnet_v2.model import HGNetV2
from .config import RANGES, SHAPES, PPOCRV5ServerDetConfig, check_kernels, pyramid_widths

NAME_MAP = NameMap(prefix="model", base=("backbone", "neck"), ignored=(r"\.num_batches_tracked$", r"^head\."))


class PPOCRDetModelOutput(NamedTuple):
    last_hidden_state: Array  # (B, y, x, N)


class PPOCRDetOutput(NamedTuple):
    last_hidden_state: Array  # (B, Y, X, 1), probabilities


class Cross(FoldedModule):
    """The sum of convolutions of a square, a column and a row of pixels: one convolution once it is folded."""

    def __init__(self, w: Weights, cfg: PPOCRV5ServerDetConfig, d: int, distance: str):
        names = [f"{shape}_{distance}" for shape in SHAPES]
        self.kernels = [cfg.block_kernel(name) for name in names]
        self.weights = [(w / name).get("weight", (d, d, *k)) for name, k in zip(names, self.kernels, strict=True)]
        self.biases = [(w / name).get("bias", (d,)) for name in names]
        self._folded = ops.merge_convs(self.weights, self.biases)

    def __call__(self, x: Array) -> Array:
        """x (B, Y, X, d) -> (B, Y, X, d)."""
        parts = list(zip(self.weights, self.biases, strict=True)) if self._folded is None else [self._folded]
        images = [ops.conv2d(x, a, b, 1, (a.shape[2] // 2, a.shape[3] // 2)) for a, b in parts]
        return sum(images[1:], images[0])


class IntraclassBlock(Module):
    """What belongs to one line of text comes together, over fewer and fewer pixels."""

    def __init__(self, w: Weights, cfg: PPOCRV5ServerDetConfig, D: int):
        d, first, last = D // cfg.reduce_factor, *map(cfg.block_kernel, ("reduce_channel", "return_channel"))
        self.reduce = Conv2d(w / "conv_reduce_channel", D, d, first, 1, (first[0] // 2, first[1] // 2))
        self.crosses = [Cross(w, cfg, d, distance) for distance in RANGES]
        end, norm, padding = w / "conv_final", BatchNorm(w / "conv_final.norm", D), (last[0] // 2, last[1] // 2)
        self.widen = Conv2d(end / "convolution", d, D, last, 1, padding, act="relu", norm=norm)

    def __call__(self, x: Array) -> Array:
        """x (B, Y, X, D) -> (B, Y, X, D)."""
        y = self.reduce(x)
        for cross in self.crosses:
            y = cross(y)
        return self.widen(y, residual=x)


class Neck(Module):
    def __init__(self, w: Weights, cfg: PPOCRV5ServerDetConfig, bias: bool = False):
        """bias: of the convolutions over 9 x 9 pixels."""
        N, d, levels = cfg.neck_out_channels, cfg.neck_out_channels // 4, range(4)
        self.mode = cfg.interpolate_mode
        widths, project, lateral = pyramid_widths(cfg.network), "input_feature_projection", "path_aggregation_lateral"
        adjust, head = w / "input_channel_adjustment_convolution", w / "path_aggregation_head_convolution"
        self.adjust = [Conv2d(adjust / i, widths[i], N, 1, bias=False) for i in levels]
        self.project = [Conv2d(w / f"{project}_convolution" / i, N, d, 9, 1, 4, bias=bias) for i in levels]
        self.reduce = [Conv2d(head / i, d, d, 3, 2, 1, bias=False) for i in range(3)]
        self.lateral = [Conv2d(w / f"{lateral}_convolution" / i, d, d, 9, 1, 4, bias=bias) for i in levels]
        self.blocks = [IntraclassBlock(w / "intraclass_blocks" / i, cfg, d) for i in levels]

    def __call__(self, features: list[Array]) -> Array:
        """features of the stages, the largest first -> (B, y, x, N)."""
        levels = [adjust(x) for adjust, x in zip(self.adjust, features, strict=True)]
        for i in (2, 1, 0):
            levels[i] = levels[i] + ops.interpolate(levels[i + 1], levels[i].shape[1:3], self.mode)
        levels = [project(x) for project, x in zip(self.project, levels, strict=True)]
        for i in (1, 2, 3):
            levels[i] = self.reduce[i - 1](levels[i - 1], residual=levels[i])
        levels = [block(lateral(x)) for block, lateral, x in zip(self.blocks, self.lateral, levels, strict=True)]
        size = levels[0].shape[1:3]
        levels = [levels[0], *(ops.interpolate(x, size, self.mode) for x in levels[1:])]
        return ops.cat(levels[::-1], 3)


class Head(Module):
    """Each pixel's probability of being within a line."""

    def __init__(self, w: Weights, cfg: Any):
        N, (first, second, third) = cfg.neck_out_channels, check_kernels(cfg.kernel_list)
        norms = [BatchNorm(w / name / "norm", N // 4) for name in ("conv_down", "conv_up")]
        down = w / "conv_down.convolution"
        self.down = Conv2d(down, N, N // 4, first, 1, first // 2, bias=False, act="relu", norm=norms[0])
        self.up = ConvTranspose2d(w / "conv_up.convolution", N // 4, N // 4, second, 2, "relu", norms[1])
        self.last = ConvTranspose2d(w / "conv_final", N // 4, 1, third, 2, "sigmoid")

    def __call__(self, x: Array) -> tuple[Array, Array]:
        """x (B, y, x, N) -> probabilities (B, Y, X, 1), features (B, Y / 2, X / 2, N / 4)."""
        x = self.up(self.down(x))
        return self.last(x), x


class PPOCRV5ServerDetPretrained(ImageModel):
    config_class: Any = PPOCRV5ServerDetConfig
    name_map = NAME_MAP
    any_size = True
    only_saved = (r"\.num_batches_tracked$",)  # a counter of training

    def nearest_size(self, size: tuple[int, int]) -> tuple[int, int]:
        """Multiples of a place of the last stage, so that each stage is twice as large as the next."""
        (Y, X), (y, x) = size, self.patch
        return max(round(Y / y), 1) * y, max(round(X / x), 1) * x


class PPOCRV5ServerDetModel(PPOCRV5ServerDetPretrained):
    is_base_model = True

    def __init__(self, w: Weights, cfg: Any):
        cfg.check_fields()
        self.config, self.net = cfg, self.make_net(w / "backbone", cfg)
        self.neck = self.make_neck(w, cfg)

    @staticmethod
    def make_net(w: Weights, cfg: Any) -> Any:
        """The backbone, from pixels to a list of its hidden states."""
        return HGNetV2(w, cfg.network)

    @staticmethod
    def make_neck(w: Weights, cfg: Any) -> Any:
        """From the backbone's hidden states to features (B, y, x, N)."""
        return Neck(w / "neck", cfg)

    @property
    def embeddings(self) -> Module:
        return self.net.embeddings

    @property
    def layers(self) -> list[Module]:
        return [*self.net.layers]

    def features(self, pixels: Array) -> Array:
        """pixels (B, Y, X, C) -> (B, y, x, N)."""
        return self.neck(self.net(pixels))

    def forward(self, p: ImageInputs) -> PPOCRDetModelOutput:
        return PPOCRDetModelOutput(self.features(p.pixel_values))


class PPOCRV5ServerDetForObjectDetection(PPOCRV5ServerDetPretrained):
    def __init__(self, w: Weights, cfg: PPOCRV5ServerDetConfig):
        self.config, self.base_model = cfg, PPOCRV5ServerDetModel(w / "model", cfg)
        self.head, d, w = Head(w / "head.binarize_head", cfg), cfg.neck_out_channels // 4, w / "head"
        self.mode, local, act = cfg.interpolate_mode, w / "local_refinement_module", cfg.hidden_act
        norm, conv = BatchNorm(local / "convolution_backbone.norm", d), local / "convolution_backbone.convolution"
        self.refine = Conv2d(conv, d + 1, d, 3, 1, 1, bias=False, act=act, norm=norm)
        self.last = Conv2d(local / "convolution_final", d, 1, 1, act="sigmoid")

    def forward(self, p: ImageInputs) -> PPOCRDetOutput:
        first, features = self.head(self.base_model.features(p.pixel_values))
        features = ops.interpolate(features, first.shape[1:3], self.mode)
        second = self.last(self.refine(ops.cat([first, features], 3)))
        return PPOCRDetOutput(0.5 * (first + second))
