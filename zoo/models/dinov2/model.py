"""DINOv2 (Oquab et al. 2023, https://arxiv.org/abs/2304.07193): ViT with scaled layers, for images of any size.

Shapes: B batch, N = h w patches, T = N + 1, D hidden_size, F the width between the MLP's matrices, L labels.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any, ClassVar

from ... import ops
from ...inputs import ImageInputs, ImageModel
from ...nn import Dropout, LayerNorm, Linear, Module
from ...typing import Array
from ...weights import NameMap, Weights
from ..vit import model as vit
from ..vit.backbone import BackboneOutput, select_states
from .config import Dinov2Config

NAME_MAP = NameMap(
    prefix="dinov2",
    base=("embeddings", "encoder", "layernorm"),
    renames={k: v for k, v in vit.LAYER_NAMES.items() if "mlp" not in k},
    ignored=(r"(^|\.)embeddings\.mask_token$", r"^classifier\."),
)


class Embeddings(vit.Embeddings):
    def __init__(self, w: Weights, cfg: Dinov2Config, mask_token: bool):
        super().__init__(w, cfg, mask_token=False)
        self.mask = w.get("mask_token", (1, cfg.hidden_size)) if mask_token else None


class Layer(Module):
    def __init__(self, w: Weights, cfg: Dinov2Config):
        D, eps, F = cfg.hidden_size, cfg.layer_norm_eps, cfg.mlp_width
        self.attention_norm, self.mlp_norm = LayerNorm(w / "norm1", D, eps), LayerNorm(w / "norm2", D, eps)
        like_vit: Any = cfg  # which has the fields that attention reads
        self.attention = vit.Attention(w / "attention", like_vit)
        self.is_gated = cfg.use_swiglu_ffn
        if self.is_gated:
            self.up, self.down = Linear(w / "mlp.weights_in", D, 2 * F), Linear(w / "mlp.weights_out", F, D)
        else:
            self.up, self.down = Linear(w / "mlp.fc1", D, F, act=cfg.hidden_act), Linear(w / "mlp.fc2", F, D)
        self.scale_1, self.scale_2 = (w.get(f"layer_scale{i}.lambda1", (D,)) for i in (1, 2))
        self.drop_path = Dropout(cfg.drop_path_rate, of_rows=True)

    def __call__(self, x: Array) -> Array:
        """x (B, T, D) -> (B, T, D)."""
        x = ops.add_scaled(x, self.drop_path(self.attention(self.attention_norm(x))), self.scale_1)
        y = self.up(self.mlp_norm(x))
        y = self.down(ops.glu(y, "silu") if self.is_gated else y)
        return ops.add_scaled(x, self.drop_path(y), self.scale_2)


class Dinov2Pretrained(ImageModel):
    config_class = Dinov2Config
    name_map = NAME_MAP
    only_saved = (r"(^|\.)embeddings\.mask_token$",)
    any_size = True

    @property
    def like(self) -> Array:
        return self.base_model.embeddings.projection.weight


class Dinov2Model(Dinov2Pretrained):
    is_base_model = True
    inputs = ("bool_masked_pos",)
    embeddings_class: ClassVar[type[Any]] = Embeddings  # made of weights, config and mask_token

    def __init__(self, w: Weights, cfg: Dinov2Config, mask_token: bool | None = None):
        self.config = cfg
        if mask_token is None:
            mask_token = "embeddings.mask_token" in w
        self.embeddings = self.embeddings_class(w / "embeddings", cfg, mask_token)
        self.layers = [Layer(w / "encoder.layer" / i, cfg) for i in range(cfg.num_hidden_layers)]
        self.norm = LayerNorm(w / "layernorm", cfg.hidden_size, cfg.layer_norm_eps)

    def hidden_states(self, p: ImageInputs) -> Iterator[Array]:
        """Yield the first layer's input, then the output of each layer, all (B, T, D)."""
        x = self.embeddings(p)
        yield x
        for layer in self.layers:
            x = layer(x)
            yield x

    def encode(self, p: ImageInputs) -> Array:
        """-> (B, T, D) of every token."""
        (x,) = deque(self.hidden_states(p), maxlen=1)
        return self.norm(x)

    def forward(self, p: ImageInputs) -> vit.ViTModelOutput:
        x = self.encode(p)
        return vit.ViTModelOutput(x, x[:, 0])


class Dinov2ForImageClassification(Dinov2Pretrained):
    """A linear layer on the class token and the mean of the patches."""

    base_class: ClassVar[type[Dinov2Model]] = Dinov2Model

    def __init__(self, w: Weights, cfg: Dinov2Config):
        self.config = cfg
        self.base_model = self.base_class(w / self.name_map.prefix, cfg, mask_token=False)
        self.classifier = Linear(w / "classifier", 2 * cfg.hidden_size, cfg.num_labels)

    def forward(self, p: ImageInputs) -> Array:
        """-> logits (B, L)."""
        x = self.base_model.encode(p)
        return self.classifier(ops.cat([x[:, 0], ops.mean(x[:, self.config.prefix :], 1)], 1))


class Dinov2Backbone(Dinov2Pretrained):
    """The layers as other models use them: some of their hidden states, in order."""

    is_base_model = True
    base_class: ClassVar[type[Dinov2Model]] = Dinov2Model

    def __init__(self, w: Weights, cfg: Dinov2Config):
        self.config = cfg
        self.base_model = self.base_class(w, cfg)

    def forward(self, p: ImageInputs) -> BackboneOutput:
        """-> the hidden states that the config names."""
        cfg, found = self.config, select_states(self.base_model.hidden_states(p), self.config.outputs)
        if cfg.apply_layernorm:
            found = [self.base_model.norm(x) for x in found]
        if cfg.reshape_hidden_states:
            found = [x[:, cfg.prefix :].reshape(x.shape[0], *p.grid, -1) for x in found]
        return BackboneOutput(tuple(found))
