"""InternVL 3 (Zhu et al. 2025, https://arxiv.org/abs/2504.10479) and 3.5 (Wang et al. 2025,
https://arxiv.org/abs/2508.18265): InternViT over the tiles of an image, whose neighbouring patches become one vector
each, and a Qwen or Llama, which reads these vectors in the places of <IMG_CONTEXT> tokens.

Shapes: N tiles, h w patches of a tile, E width of the encoder, F its intermediate_size, r r patches of a token,
I = h w / (r r) tokens of a tile, B rows, T tokens, D width of the decoder.
"""

from __future__ import annotations

from ... import ops
from ...inputs import ImageInputs, ImageModel
from ...nn import Dropout, LayerNorm, Linear, Module, RMSNorm
from ...typing import Array
from ...weights import Weights
from ..llama3.model import LlamaModel
from ..llava.model import LlavaForConditionalGeneration, LlavaModel, LlavaPretrained
from ..qwen3.model import Qwen3Model
from ..vit.model import Embeddings
from .config import InternVLConfig, InternVLVisionConfig

NORMS: dict[str, type[LayerNorm | RMSNorm]] = {"layer_norm": LayerNorm, "rms_norm": RMSNorm}
DECODERS: dict[str, type[LlamaModel]] = {"qwen2": LlamaModel, "qwen3": Qwen3Model, "llama": LlamaModel}
QUERY_NORM_EPS, CONNECTOR_NORM_EPS = 1e-6, 1e-5


class Attention(Module):
    def __init__(self, w: Weights, cfg: InternVLVisionConfig):
        E, self.heads = cfg.hidden_size, cfg.num_attention_heads
        self.qkv = Linear.fuse(w, ["q_proj", "k_proj", "v_proj"], E, [E, E, E], bias=cfg.attention_bias)
        self.query_norm = RMSNorm(w / "q_norm", E, QUERY_NORM_EPS) if cfg.use_qk_norm else None
        self.key_norm = RMSNorm(w / "k_norm", E, QUERY_NORM_EPS) if cfg.use_qk_norm else None
        self.dropout = Dropout(cfg.attention_dropout)
        self.out = Linear(w / "projection_layer", E, E, dropout=cfg.projection_dropout)

    def __call__(self, x: Array) -> Array:
        """x (N, 1 + h w, E) -> (N, 1 + h w, E)."""
        q, k, v = ops.split_heads(self.qkv(x), self.heads)
        if self.query_norm is not None and self.key_norm is not None:  # of all heads together
            q = self.query_norm(q.reshape(x.shape)).reshape(q.shape)
            k = self.key_norm(k.reshape(x.shape)).reshape(k.shape)
        return self.out(ops.attention(q, k, v, dropout=self.dropout.rate).reshape(x.shape))


class VisionLayer(Module):
    def __init__(self, w: Weights, cfg: InternVLVisionConfig):
        E, F, norm = cfg.hidden_size, cfg.intermediate_size, NORMS[cfg.norm_type]
        self.attention_norm = norm(w / "layernorm_before", E, cfg.layer_norm_eps)
        self.attention = Attention(w / "attention", cfg)
        self.attention_scale = w.get("lambda_1", (E,))
        self.mlp_norm = norm(w / "layernorm_after", E, cfg.layer_norm_eps)
        self.up = Linear(w / "mlp.fc1", E, F, act=cfg.hidden_act)
        self.down = Linear(w / "mlp.fc2", F, E, dropout=cfg.hidden_dropout_prob)
        self.mlp_scale = w.get("lambda_2", (E,))

    def __call__(self, x: Array) -> Array:
        """x (N, 1 + h w, E) -> (N, 1 + h w, E)."""
        x = ops.add_scaled(x, self.attention(self.attention_norm(x)), self.attention_scale)
        return ops.add_scaled(x, self.down(self.up(self.mlp_norm(x))), self.mlp_scale)


class VisionTower(ImageModel):
    """InternViT, of which the decoder reads the patches."""

    config_class = InternVLVisionConfig

    def __init__(self, w: Weights, cfg: InternVLVisionConfig):
        self.config = cfg
        self.embeddings = Embeddings(
            w / "embeddings", cfg, cfg.use_mask_token, positions=cfg.use_absolute_position_embeddings
        )
        self.layers = [VisionLayer(w / "encoder.layer" / i, cfg) for i in range(cfg.num_hidden_layers)]
        self.norm = None if cfg.use_mean_pooling else LayerNorm(w / "layernorm", cfg.hidden_size, cfg.layer_norm_eps)

    def encode(self, p: ImageInputs) -> Array:
        """-> (N, h w, E)."""
        x = self.embeddings(p)
        for layer in self.layers:
            x = layer(x)
        return x[:, 1:] if self.norm is None else self.norm(x[:, 1:])


class Connector(Module):
    """r r neighbouring patches -> one vector of the decoder's width."""

    def __init__(self, w: Weights, cfg: InternVLConfig):
        self.factor, D = cfg.factor, cfg.text_config.hidden_size
        inner = cfg.vision_config.hidden_size * self.factor**2
        self.norm = LayerNorm(w / "layer_norm", inner, CONNECTOR_NORM_EPS)
        self.up = Linear(w / "linear_1", inner, D, act=cfg.projector_hidden_act)
        self.down = Linear(w / "linear_2", D, D)

    def __call__(self, x: Array, grid: tuple[int, int]) -> Array:
        """x (N, h w, E) -> (N, I, D)."""
        (N, count, E), r = x.shape, self.factor
        squares = ops.windows(x.reshape(N, *grid, E), r)
        return self.down(self.up(self.norm(squares.reshape(N, count // r**2, r * r * E))))


class InternVLPretrained(LlavaPretrained):
    config_class = InternVLConfig

    def image_length(self, grid: tuple[int, int]) -> int:
        return grid[0] * grid[1] // self.config.factor**2


class InternVLModel(InternVLPretrained, LlavaModel):
    """The encoder, the connector and the decoder's layers."""

    def __init__(self, w: Weights, cfg: InternVLConfig):
        self.config = cfg
        self.vision_model = VisionTower(w / "vision_tower", cfg.vision_config)
        self.connector = Connector(w / "multi_modal_projector", cfg)
        self.language_model = DECODERS[cfg.text_config.model_type](w / "language_model", cfg.text_config)


class InternVLForConditionalGeneration(InternVLPretrained, LlavaForConditionalGeneration):
    """Logits of the next token after images and text."""

    base_class = InternVLModel
