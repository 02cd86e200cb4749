"""BLIP (Li et al. 2022, https://arxiv.org/abs/2201.12086): a ViT reads an image, and BERT's layers, which attend to it,
write a caption, or go on from the beginning of one.

Shapes: B rows, C images (B is a multiple: beams share one), T tokens, M states of the encoder, E their width,
D hidden_size, F intermediate_size, V vocab_size.  Images are (C, Y, X, channels).
"""

from __future__ import annotations

from typing import Any, NamedTuple, cast

from ... import ops
from ...inputs import ImageInputs, ImageModel, TextInputs
from ...inputs.encoder_decoder import ImageToText
from ...inputs.heads import CausalLM
from ...nn import Conv2d, Dropout, LayerNorm, Linear, Module
from ...typing import Array
from ...weights import NameMap, Weights
from ..bert import model as bert
from ..vit.model import Positions
from .config import BlipConfig, BlipTextConfig, BlipVisionConfig

NAME_MAP = NameMap(
    prefix="blip",
    base=(),
    ignored=(r"\.position_ids$", r"^text_decoder\.bert\.pooler\."),
)
TIED_WEIGHTS = {
    "text_decoder.cls.predictions.decoder.weight": "text_decoder.bert.embeddings.word_embeddings.weight",
    "text_decoder.cls.predictions.decoder.bias": "text_decoder.cls.predictions.bias",
}
INPUTS = {"input_ids": "vocab_size", "encoder_hidden_states": "encoder_hidden_size"}


class BlipOutput(NamedTuple):
    logits: Array  # (B, T, V)
    last_hidden_state: Array  # (C, M, E) of the image


class ImageEmbeddings(Module):
    """The class token, then the patches row by row, with positions added."""

    def __init__(self, w: Weights, cfg: BlipVisionConfig):
        D, like_vit = cfg.hidden_size, cast(Any, cfg)
        self.prefix_tokens = [w.get("class_embedding", (1, 1, D))]
        self.projection = Conv2d(w / "patch_embedding", 3, D, cfg.patch, stride=cfg.patch)
        self.positions = Positions(w, "position_embedding", like_vit, 1)

    def __call__(self, p: ImageInputs) -> Array:
        """-> (C, M, E)."""
        y = self.projection(p.pixel_values)
        y = y.reshape(y.shape[0], -1, y.shape[3])
        of_prefix, of_patches = self.positions(p.grid)
        prefix = self.prefix_tokens[0] + of_prefix
        return ops.cat([ops.cat([prefix] * y.shape[0], 0), y + of_patches], 1)


class ImageLayer(Module):
    def __init__(self, w: Weights, cfg: BlipVisionConfig):
        D, F, eps = cfg.hidden_size, cfg.intermediate_size, cfg.layer_norm_eps
        self.heads = cfg.num_attention_heads
        self.attention_norm, self.mlp_norm = LayerNorm(w / "layer_norm1", D, eps), LayerNorm(w / "layer_norm2", D, eps)
        self.qkv, self.out = Linear(w / "self_attn.qkv", D, 3 * D), Linear(w / "self_attn.projection", D, D)
        self.dropout = Dropout(cfg.attention_dropout)
        self.up, self.down = Linear(w / "mlp.fc1", D, F, act=cfg.hidden_act), Linear(w / "mlp.fc2", F, D)

    def __call__(self, x: Array) -> Array:
        """x (C, M, E) -> (C, M, E)."""
        q, k, v = ops.split_heads(self.qkv(self.attention_norm(x)), self.heads)
        a = ops.attention(q, k, v, dropout=self.dropout.rate)
        y, x = self.mlp_norm.add(self.out(a.reshape(x.shape)), x)
        return self.down(self.up(y), residual=x)


class BlipVision(ImageModel):
    config_class = BlipVisionConfig
    name_map = NAME_MAP
    inputs = ("interpolate_pos_encoding",)

    def __init__(self, w: Weights, cfg: BlipVisionConfig):
        self.config = cfg
        self.embeddings = ImageEmbeddings(w / "embeddings", cfg)
        self.layers = [ImageLayer(w / "encoder.layers" / i, cfg) for i in range(cfg.num_hidden_layers)]
        self.norm = LayerNorm(w / "post_layernorm", cfg.hidden_size, cfg.layer_norm_eps)

    def encode(self, p: ImageInputs) -> Array:
        """-> (C, M, E)."""
        x = self.embeddings(p)
        for layer in self.layers:
            x = layer(x)
        return self.norm(x)


class Embeddings(Module):
    """Words and positions; BERT's without segments."""

    def __init__(self, w: Weights, cfg: BlipTextConfig):
        D, self.max_positions, self.padding = cfg.hidden_size, cfg.max_position_embeddings, cfg.pad_token_id
        self.word = w.embedding("word_embeddings.weight", cfg.vocab_size, D)
        self.position = w.get("position_embeddings.weight", (self.max_positions, D))
        self.norm = LayerNorm(w / "LayerNorm", D, cfg.layer_norm_eps)
        self.dropout = Dropout(cfg.hidden_dropout_prob)

    def __call__(self, t: TextInputs) -> Array:
        """-> (B, T, D)."""
        x = ops.embedding(t.ids, self.word, "input_ids", self.padding)
        at = ops.arange(t.shape[1], self.word) + t.past
        return self.dropout(self.norm(x + ops.embedding(at, self.position, "positions")))


class CrossAttention(bert.CrossAttention):
    """BERT's, to states of another width."""

    def __init__(self, w: Weights, cfg: BlipTextConfig):
        D, E = cfg.hidden_size, cfg.encoder_hidden_size
        self.heads = cfg.num_attention_heads
        self.query = Linear(w / "self.query", D, D)
        self.key, self.value = Linear(w / "self.key", E, D), Linear(w / "self.value", E, D)
        self.dropout = Dropout(cfg.attention_probs_dropout_prob)
        self.out = Linear(w / "output.dense", D, D, dropout=cfg.hidden_dropout_prob)
        self.norm = LayerNorm(w / "output.LayerNorm", D, cfg.layer_norm_eps)


class Layer(bert.Layer):
    def __init__(self, w: Weights, cfg: BlipTextConfig):
        D, F, like_bert = cfg.hidden_size, cfg.intermediate_size, cast(Any, cfg)
        self.attention = bert.Attention(w / "attention", like_bert)
        self.cross = CrossAttention(w / "crossattention", cfg)
        self.up = Linear(w / "intermediate.dense", D, F, act=cfg.hidden_act)
        self.down = Linear(w / "output.dense", F, D, dropout=cfg.hidden_dropout_prob)
        self.norm = LayerNorm(w / "output.LayerNorm", D, cfg.layer_norm_eps)


class DecoderLayers(Module):
    """The decoder without its head."""

    def __init__(self, w: Weights, cfg: BlipTextConfig):
        self.embeddings = Embeddings(w / "embeddings", cfg)
        self.layers = [Layer(w / "encoder.layer" / i, cfg) for i in range(cfg.num_hidden_layers)]

    def encode(self, t: TextInputs) -> Array:
        """-> (B, T, D) of every token."""
        x = self.embeddings(t)
        for layer, cache in t.with_cache(self.layers):
            x = layer(x, t.context, cache)
        return x


class Decoder(CausalLM):
    """The decoder: logits of the next token."""

    config_class = BlipTextConfig
    inputs = INPUTS
    is_causal = True

    def __init__(self, w: Weights, cfg: BlipTextConfig):
        like_bert: Any = cfg
        self.config = cfg
        self.base_model = DecoderLayers(w / "bert", cfg)
        self.head = bert.Predictions(w / "cls.predictions", like_bert)


class BlipForConditionalGeneration(ImageToText):
    """An encoder of images, and the decoder that writes captions."""

    config_class = BlipConfig
    name_map = NAME_MAP
    tied = TIED_WEIGHTS

    def __init__(self, w: Weights, cfg: BlipConfig):
        self.config = cfg
        self.encoder = BlipVision(w / "vision_model", cfg.vision_config)
        self.decoder = Decoder(w / "text_decoder", cfg.text_config)

    def forward(self, x: ImageInputs, t: TextInputs) -> BlipOutput:  # type: ignore[override]
        return BlipOutput(*self.encode_and_decode(x, t))
