"""CLIP (Radford et al. 2021, https://arxiv.org/abs/2103.00020): an encoder of texts and one of images, trained so that
a text and an image that belong together have vectors of the same direction.

Shapes: B texts, T tokens, C images, N = h w patches and the class token, D hidden_size, F intermediate_size,
P projection_dim, V vocab_size, L labels.  Images are (C, Y, X, channels).
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, NamedTuple

from ... import ops
from ...inputs import Context, ImageInputs, ImageModel, TextInputs, TextModel
from ...inputs.dual_encoder import DualEncoder, Logits, Vectors, unit_length
from ...nn import CacheLast, Conv2d, Dropout, LayerNorm, Linear, Module
from ...typing import Array
from ...weights import NameMap, Weights
from .config import CLIPConfig, CLIPTextConfig, CLIPVisionConfig

LEGACY_END = 2  # the eos_token_id of configs before 2023, whatever the token is

BUFFER = r"(^|\.)embeddings\.position_ids$"  # counts up from 0
NAME_MAP = NameMap(prefix="clip", base=(), ignored=(BUFFER,))
# Each encoder alone reads checkpoints of both, too.
_DUAL_ONLY = (r"^logit_(scale|bias)$", r"^(text|visual)_projection\.")
TEXT = NameMap(
    prefix="text_model",
    base=("embeddings", "encoder", "final_layer_norm"),
    ignored=(BUFFER, r"^vision_model\.", *_DUAL_ONLY),
)
VISION = NameMap(
    prefix="vision_model",
    base=("embeddings", "pre_layrnorm", "encoder", "post_layernorm"),
    ignored=(BUFFER, r"^text_model\.", *_DUAL_ONLY),
)


class CLIPEncoderOutput(NamedTuple):
    last_hidden_state: Array  # (B, T, D) or (C, N, D)
    pooler_output: Array  # (B, D) or (C, D)


class CLIPTextModelOutput(NamedTuple):
    text_embeds: Array  # (B, P)
    last_hidden_state: Array  # (B, T, D)


class CLIPVisionModelOutput(NamedTuple):
    image_embeds: Array  # (C, P)
    last_hidden_state: Array  # (C, N, D)


class Layer(Module):
    def __init__(self, w: Weights, cfg: CLIPTextConfig | CLIPVisionConfig):
        D, F, eps = cfg.hidden_size, cfg.intermediate_size, cfg.layer_norm_eps
        self.heads = cfg.num_attention_heads
        self.attention_norm, self.mlp_norm = LayerNorm(w / "layer_norm1", D, eps), LayerNorm(w / "layer_norm2", D, eps)
        self.qkv = Linear.fuse(w / "self_attn", ["q_proj", "k_proj", "v_proj"], D, [D, D, D])
        self.dropout = Dropout(cfg.attention_dropout)
        self.out = Linear(w / "self_attn.out_proj", D, D)
        self.up, self.down = Linear(w / "mlp.fc1", D, F, act=cfg.hidden_act), Linear(w / "mlp.fc2", F, D)

    def __call__(self, x: Array, c: Context) -> Array:
        """x (B, T, D) -> (B, T, D)."""
        q, k, v = ops.split_heads(self.qkv(self.attention_norm(x)), self.heads)
        a = ops.attention(q, k, v, mask=c.mask, start=c.start, dropout=self.dropout.rate)
        y, x = self.mlp_norm.add(self.out(a.reshape(x.shape)), x)
        return self.down(self.up(y), residual=x)


class TextEmbeddings(Module):
    def __init__(self, w: Weights, cfg: CLIPTextConfig):
        self.max_positions = cfg.max_position_embeddings
        self.word = w.embedding("token_embedding.weight", cfg.vocab_size, cfg.hidden_size)
        self.position = w.get("position_embedding.weight", (cfg.max_position_embeddings, cfg.hidden_size))

    def __call__(self, t: TextInputs) -> Array:
        """-> (B, T, D)."""
        return ops.embedding(t.ids, self.word, "input_ids") + self.position[: t.shape[1]]


class CLIPText(TextModel):
    config_class = CLIPTextConfig
    name_map = TEXT
    is_causal = True


class CLIPTextModel(CLIPText):
    """A causal stack, and of each text its state at the token that ends it."""

    is_base_model = True
    embeds = "pooler_output"

    def __init__(self, w: Weights, cfg: CLIPTextConfig):
        self.config = cfg
        self.embeddings = TextEmbeddings(w / "embeddings", cfg)
        self.layers = [Layer(w / "encoder.layers" / i, cfg) for i in range(cfg.num_hidden_layers)]
        self.norm = LayerNorm(w / "final_layer_norm", cfg.hidden_size, cfg.layer_norm_eps)

    def encode(self, t: TextInputs) -> Array:
        """-> (B, T, D) of every token."""
        x = self.embeddings(t)
        for layer in self.layers:
            x = layer(x, t.context)
        return self.norm(x)

    def eos_positions(self, ids: Array) -> Array:
        """ids (B, T) -> (B,): the first place of the token that ends a text, by a legacy config of the highest id."""
        if self.config.eos_token_id == LEGACY_END:
            is_end = ops.cumsum(ids[:, :, None] >= ids[:, None], 2)[:, :, -1] == ids.shape[1]
        else:
            is_end = ids == self.config.eos_token_id
        seen = ops.cumsum(is_end, 1)
        return ops.cumsum(seen < 1, 1)[:, -1] * (seen[:, -1] > 0)  # the first token if there is no end

    def forward(self, t: TextInputs) -> CLIPEncoderOutput:
        x = self.encode(t)
        B, T, D = x.shape
        at = ops.arange(B, x) * T + self.eos_positions(t.ids)
        return CLIPEncoderOutput(x, ops.embedding(at, x.reshape(B * T, D), "positions"))


class CLIPTextModelWithProjection(CLIPText):
    embeds = "text_embeds"
    base_class: ClassVar[type[CLIPTextModel]] = CLIPTextModel

    def __init__(self, w: Weights, cfg: CLIPTextConfig):
        self.config = cfg
        self.base_model = self.base_class(w / "text_model", cfg)
        self.projection = Linear(w / "text_projection", cfg.hidden_size, cfg.projection_dim, bias=False)

    def forward(self, t: TextInputs) -> CLIPTextModelOutput:
        found = self.base_model.forward(t)
        return CLIPTextModelOutput(self.projection(found.pooler_output), found.last_hidden_state)


class ImageEmbeddings(Module):
    """The prefix token, if the config has one, then the patches row by row, with positions added."""

    def __init__(self, w: Weights, cfg: CLIPVisionConfig, bias: bool = False):
        D, self.grid, self.mask = cfg.hidden_size, cfg.grid, None
        self.prefix_tokens = [w.get(name, (D,)) for name in cfg.prefix_tokens]
        self.projection = Conv2d(w / "patch_embedding", cfg.num_channels, D, cfg.patch, stride=cfg.patch, bias=bias)
        self.position = w.get("position_embedding.weight", (len(self.prefix_tokens) + cfg.grid[0] * cfg.grid[1], D))
        self._resized = CacheLast()

    def __call__(self, p: ImageInputs) -> Array:
        """-> (C, N, D)."""
        y = self.projection(p.pixel_values)
        y = y.reshape(y.shape[0], -1, y.shape[3]) + self._resized(p.grid, lambda: self._patches(p.grid))
        if not self.prefix_tokens:
            return y
        first = (self.prefix_tokens[0] + self.position[0]).reshape(1, 1, -1)
        return ops.cat([ops.cat([first] * y.shape[0], 0), y], 1)

    def _patches(self, grid: tuple[int, int]) -> Array:
        """The positions of a grid of patches, (1, h w, D)."""
        own = self.position[len(self.prefix_tokens) :].reshape(1, *self.grid, -1)
        return ops.interpolate(own, grid, "bicubic").reshape(1, grid[0] * grid[1], -1)


class CLIPVision(ImageModel):
    config_class = CLIPVisionConfig
    name_map = VISION
    inputs = ("interpolate_pos_encoding",)

    @property
    def like(self) -> Array:
        return self.base_model.embeddings.projection.weight


class CLIPVisionModel(CLIPVision):
    """The stack, and the norm of the class token."""

    is_base_model = True
    pre_norm_name: ClassVar[str] = "pre_layrnorm"

    def __init__(self, w: Weights, cfg: CLIPVisionConfig, norm: bool = True):
        self.config, D = cfg, cfg.hidden_size
        self.embeddings = ImageEmbeddings(w / "embeddings", cfg)
        self.pre_norm = LayerNorm(w / self.pre_norm_name, D, cfg.layer_norm_eps)
        self.layers = [Layer(w / "encoder.layers" / i, cfg) for i in range(cfg.num_hidden_layers)]
        self.norm = LayerNorm(w / "post_layernorm", D, cfg.layer_norm_eps) if norm else None

    def encode(self, p: ImageInputs) -> Array:
        """-> (C, N, D) of every token."""
        x = self.pre_norm(self.embeddings(p))
        for layer in self.layers:
            x = layer(x, Context())
        return x

    def forward(self, p: ImageInputs) -> CLIPEncoderOutput:
        x = self.encode(p)
        assert self.norm is not None
        return CLIPEncoderOutput(x, self.norm(x[:, 0]))


class CLIPVisionModelWithProjection(CLIPVision):
    def __init__(self, w: Weights, cfg: CLIPVisionConfig):
        self.config = cfg
        self.base_model = CLIPVisionModel(w / "vision_model", cfg)
        self.projection = Linear(w / "visual_projection", cfg.hidden_size, cfg.projection_dim, bias=False)

    def forward(self, p: ImageInputs) -> CLIPVisionModelOutput:
        found = self.base_model.forward(p)
        return CLIPVisionModelOutput(self.projection(found.pooler_output), found.last_hidden_state)


class CLIPForImageClassification(CLIPVision):
    """A linear layer on the mean of the patches."""

    config_class = CLIPConfig
    name_map = replace(NAME_MAP, ignored=(BUFFER, r"^text_model\.", r"^vision_model\.post_layernorm\.", *_DUAL_ONLY))

    def __init__(self, w: Weights, cfg: CLIPConfig):
        self.config = cfg
        self.base_model = CLIPVisionModel(w / "vision_model", cfg.vision_config)
        self.classifier = Linear(w / "classifier", cfg.vision_config.hidden_size, cfg.num_labels)

    def forward(self, p: ImageInputs) -> Array:
        """-> logits (C, L)."""
        return self.classifier(ops.mean(self.base_model.encode(p)[:, 1:], 1))


class CLIPModel(DualEncoder):
    """Both encoders, and the similarity of each image and each text."""

    config_class = CLIPConfig
    name_map = NAME_MAP
    text_class: ClassVar[type[CLIPTextModel]] = CLIPTextModel
    vision_class: ClassVar[type[CLIPVisionModel]] = CLIPVisionModel

    def __init__(self, w: Weights, cfg: CLIPConfig):
        self.config, P = cfg, cfg.projection_dim
        self.text_model = self.text_class(w / "text_model", cfg.text_config)
        self.vision_model = self.vision_class(w / "vision_model", cfg.vision_config)
        self.text_projection = Linear(w / "text_projection", cfg.text_config.hidden_size, P, bias=False)
        self.image_projection = Linear(w / "visual_projection", cfg.vision_config.hidden_size, P, bias=False)
        self.scale = w.get("logit_scale", ())

    def text_embeds(self, t: TextInputs) -> Array:
        return unit_length(self.text_projection(self.text_model.forward(t).pooler_output))

    def image_embeds(self, p: ImageInputs) -> Array:
        return unit_length(self.image_projection(self.vision_model.forward(p).pooler_output))

    def compare(self, v: Vectors) -> Logits:
        image, text, scale = *v, ops.exp(self.scale)
        return Logits(ops.linear(image, text) * scale, ops.linear(text, image) * scale)
