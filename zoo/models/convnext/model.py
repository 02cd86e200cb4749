"""ConvNeXt (Liu et al. 2022, https://arxiv.org/abs/2201.03545): a convolutional network in the shape of a Swin.

Images may have any size.  Channels come last.

Shapes: B batch, Y and X pixels, h and w rows and columns of a stage, D its width, L labels.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

from ... import ops
from ...inputs import ImageInputs, ImageModel
from ...nn import Conv2d, DepthwiseConv2d, Dropout, LayerNorm, Linear, Module
from ...typing import Array
from ...weights import NameMap, Weights
from ..vit.backbone import BackboneOutput, select_states
from .config import ConvNextConfig

NAME_MAP = NameMap(prefix="convnext", base=("embeddings", "encoder", "layernorm"), ignored=(r"^classifier\.",))
EPS = 1e-6  # every norm's but the last one's


class ConvNextModelOutput(NamedTuple):
    last_hidden_state: Array  # (B, h, w, D)
    pooler_output: Array  # (B, D)


class Embeddings(Module):
    prefix_tokens: tuple[Array, ...] = ()

    def __init__(self, w: Weights, cfg: ConvNextConfig):
        size, D = cfg.patch_size, cfg.hidden_sizes[0]
        self.projection = Conv2d(w / "patch_embeddings", cfg.num_channels, D, size, stride=size)
        self.norm = LayerNorm(w / "layernorm", D, EPS)

    def __call__(self, pixels: Array) -> Array:
        """pixels (B, Y, X, C) -> (B, h, w, D)."""
        return self.norm(self.projection(pixels))


class Layer(Module):
    """drop_path: the share of images for which training skips the layer."""

    def __init__(self, w: Weights, cfg: ConvNextConfig, D: int, drop_path: float):
        self.depthwise = DepthwiseConv2d(w / "dwconv", D, 7)
        self.norm = LayerNorm(w / "layernorm", D, EPS)
        self.up = Linear(w / "pwconv1", D, 4 * D, act=cfg.hidden_act)
        self.down = Linear(w / "pwconv2", 4 * D, D)
        self.scale = w.get("layer_scale_parameter", (D,)) if cfg.layer_scale_init_value > 0 else None
        self.drop_path = Dropout(drop_path, of_rows=True)

    def __call__(self, x: Array) -> Array:
        """x (B, h, w, D) -> (B, h, w, D)."""
        y = self.down(self.up(self.norm(self.depthwise(x))))
        return x + self.drop_path(y if self.scale is None else y * self.scale)


class Stage(Module):
    layer_class: ClassVar[type[Any]] = Layer  # made of weights, config, its width and the share of images

    def __init__(self, w: Weights, cfg: ConvNextConfig, i: int):
        D, before = cfg.hidden_sizes[i], sum(cfg.depths[:i])
        step = cfg.drop_path_rate / max(sum(cfg.depths) - 1, 1)
        halves, d = w / "downsampling_layer", cfg.hidden_sizes[i - 1]
        self.norm = LayerNorm(halves / 0, d, EPS) if i else None
        self.halve = Conv2d(halves / 1, d, D, 2, stride=2) if i else None
        self.layers = [self.layer_class(w / "layers" / j, cfg, D, step * (before + j)) for j in range(cfg.depths[i])]

    def __call__(self, x: Array) -> Array:
        """x (B, 2 h, 2 w, d), in the first stage (B, h, w, D) -> (B, h, w, D)."""
        if self.norm is not None and self.halve is not None:
            x = self.halve(self.norm(x))
        for layer in self.layers:
            x = layer(x)
        return x


class ConvNextPretrained(ImageModel):
    config_class = ConvNextConfig
    name_map = NAME_MAP
    any_size = True


class ConvNextModel(ConvNextPretrained):
    is_base_model = True
    stage_class: ClassVar[type[Stage]] = Stage

    def __init__(self, w: Weights, cfg: ConvNextConfig, pooled: bool = True):
        self.config = cfg
        self.embeddings = Embeddings(w / "embeddings", cfg)
        self.layers = [self.stage_class(w / "encoder.stages" / i, cfg, i) for i in range(cfg.num_stages)]
        self.norm = LayerNorm(w / "layernorm", cfg.hidden_size, cfg.layer_norm_eps) if pooled else None

    def hidden_states(self, p: ImageInputs) -> Iterator[Array]:
        """Yield the first stage's input, then the output of each stage, all (B, h, w, D)."""
        x = self.embeddings(p.pixel_values)
        yield x
        for stage in self.layers:
            x = stage(x)
            yield x

    def forward(self, p: ImageInputs) -> ConvNextModelOutput:
        (x,) = deque(self.hidden_states(p), maxlen=1)
        x_mean = ops.mean(x.reshape(x.shape[0], -1, x.shape[3]), 1)
        return ConvNextModelOutput(x, x_mean if self.norm is None else self.norm(x_mean))


class ConvNextForImageClassification(ConvNextPretrained):
    base_class: ClassVar[type[ConvNextModel]] = ConvNextModel

    def __init__(self, w: Weights, cfg: ConvNextConfig):
        self.config = cfg
        self.base_model = self.base_class(w / self.name_map.prefix, cfg)
        self.classifier = Linear(w / "classifier", cfg.hidden_size, cfg.num_labels)

    def forward(self, p: ImageInputs) -> Array:
        """-> logits (B, L)."""
        return self.classifier(self.base_model.forward(p).pooler_output)


class ConvNextBackbone(ConvNextPretrained):
    """The stages as other models use them: some of their hidden states, in order, each with a norm of its own."""

    is_base_model = True
    base_class: ClassVar[type[ConvNextModel]] = ConvNextModel

    def __init__(self, w: Weights, cfg: ConvNextConfig):
        self.config = cfg
        self.base_model = self.base_class(w, cfg, pooled=False)
        widths, norms = [cfg.hidden_sizes[0], *cfg.hidden_sizes], w / "hidden_states_norms"
        self.norms = [LayerNorm(norms / (f"stage{i}" if i else "stem"), widths[i], EPS) for i in cfg.outputs]

    def forward(self, p: ImageInputs) -> BackboneOutput:
        """-> the hidden states that the config names."""
        found = select_states(self.base_model.hidden_states(p), self.config.outputs)
        return BackboneOutput(tuple(norm(x) for norm, x in zip(self.norms, found, strict=True)))
