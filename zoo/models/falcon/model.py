"""Falcon (Almazrouei et al. 2023, https://arxiv.org/abs/2311.16867): a decoder over rotary positions whose attention
and MLP read the same states, with few heads of keys.

Shapes: B batch, T tokens, D hidden_size, F ffn_hidden_size, H heads, G heads of keys, K head size, V vocab_size.
"""

from __future__ import annotations

from ... import ops
from ...cache import LayerCache
from ...nn import Dropout, LayerNorm, Linear, Module
from ...typing import Array
from ...weights import NameMap, Weights
from ..llama3 import model as llama
from .config import FalconConfig

NAME_MAP = NameMap(
    prefix="transformer",
    base=("word_embeddings", "h", "ln_f"),
    # Rotary frequencies in files of 2023, and the heads of other classes.
    ignored=(r"(^|\.)rotary_emb\.inv_freq$", *(rf"^{head}\." for head in ("lm_head", "score", "classifier"))),
)
IDS = {"input_ids": "vocab_size"}  # the classifier's input: transformers ignores positions that it is given
TIED_WEIGHTS = {"lm_head.weight": "transformer.word_embeddings.weight"}


class Attention(Module):
    """Each group of the fused projection is its heads of queries, and one of keys and of values."""

    def __init__(self, w: Weights, cfg: FalconConfig):
        D, K = cfg.hidden_size, cfg.head_size
        self.heads, self.groups, self.size = cfg.num_attention_heads, cfg.key_heads, K
        self.qkv = Linear(w / "query_key_value", D, (self.heads + 2 * self.groups) * K, cfg.bias)
        self.out = Linear(w / "dense", D, D, cfg.bias)

    def __call__(self, x: Array, c: llama.RopeContext, cache: LayerCache | None) -> Array:
        """x (B, T, D) -> (B, T, D)."""
        (B, T, _), own = x.shape, self.heads // self.groups
        y = self.qkv(x).reshape(B, T, self.groups, own + 2, self.size)
        q = ops.rope(y[:, :, :, :own].reshape(B, T, self.heads, self.size), *c.cos_sin)
        k, v = ops.rope(y[:, :, :, own], *c.cos_sin), y[:, :, :, own + 1]
        if cache is not None:
            k, v = cache.extend(k, v, masked=c.mask is not None)
        return self.out(ops.attention(q, k, v, **c.visible).reshape(x.shape))  # without dropout, as in transformers


class Layer(Module):
    def __init__(self, w: Weights, cfg: FalconConfig, layer: int):
        D, F, eps = cfg.hidden_size, cfg.ffn_hidden_size or 4 * cfg.hidden_size, cfg.layer_norm_epsilon
        self.norm = LayerNorm(w / ("ln_attn" if cfg.has_two_norms else "input_layernorm"), D, eps)
        self.attention = Attention(w / "self_attention", cfg)
        self.mlp_norm = None
        if cfg.has_two_norms:
            self.mlp_norm = LayerNorm(w / "ln_mlp", D, eps)
        elif not cfg.parallel_attn:
            self.mlp_norm = LayerNorm(w / "post_attention_layernorm", D, eps)
        self.is_parallel = cfg.parallel_attn
        self.up = Linear(w / "mlp.dense_h_to_4h", D, F, cfg.bias, act=cfg.activation)
        self.down = Linear(w / "mlp.dense_4h_to_h", F, D, cfg.bias)
        self.dropout, self.attention_dropout = Dropout(cfg.hidden_dropout), Dropout(cfg.attention_dropout or 0.0)

    def __call__(self, x: Array, c: llama.RopeContext, cache: LayerCache | None) -> Array:
        """x (B, T, D) -> (B, T, D)."""
        y = self.norm(x)
        a = self.attention(y, c, cache)
        if not self.is_parallel:
            x = x + self.attention_dropout(a)
        y = y if self.mlp_norm is None else self.mlp_norm(x)
        return x + self.dropout(self.down(self.up(y), a) if self.is_parallel else self.down(self.up(y)))


class FalconPretrained(llama.LlamaPretrained):
    config_class = FalconConfig
    name_map = NAME_MAP
    separates_texts = False


class FalconModel(FalconPretrained, llama.LlamaModel):
    def __init__(self, w: Weights, cfg: FalconConfig):
        self.config = cfg
        self.embeddings = llama.Embeddings(w / "word_embeddings", cfg)
        self.layers = [Layer(w / "h" / i, cfg, i) for i in range(cfg.num_hidden_layers)]
        self.norm = LayerNorm(w / "ln_f", cfg.hidden_size, cfg.layer_norm_epsilon)
        self.rope = cfg.rope()


class FalconHead(FalconPretrained, llama.LlamaHead):
    base_class = FalconModel


class FalconForCausalLM(FalconHead, llama.LlamaForCausalLM):
    tied = TIED_WEIGHTS


class FalconForSequenceClassification(FalconHead, llama.LlamaForSequenceClassification):
    inputs = IDS
