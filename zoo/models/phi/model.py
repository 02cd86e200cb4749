"""Phi-1.5 and 2 (Li et al. 2023, https://arxiv.org/abs/2309.05463): a decoder whose attention and MLP read the same
norm, with positions that rotate a part of each head's features.

Shapes: B batch, T tokens, D hidden_size, F intermediate_size, H heads, G heads of keys, K head size, V vocab_size.
"""

from __future__ import annotations

from ... import ops
from ...cache import LayerCache
from ...inputs import TextInputs
from ...inputs.heads import CausalLM
from ...nn import Dropout, LayerNorm, Linear, Module
from ...typing import Array
from ...weights import NameMap, Weights
from ..llama3 import model as llama
from .config import PhiConfig

NAME_MAP = NameMap(prefix="model", base=("embed_tokens", "layers", "final_layernorm"), ignored=llama.IGNORED_WEIGHTS)


class Embeddings(llama.Embeddings):
    def __init__(self, w: Weights, cfg: PhiConfig):
        super().__init__(w, cfg)
        self.dropout = Dropout(cfg.embd_pdrop)

    def __call__(self, t: TextInputs) -> Array:
        """-> (B, T, D)."""
        return self.dropout(super().__call__(t))


class Attention(Module):
    def __init__(self, w: Weights, cfg: PhiConfig):
        D, H, G, K = cfg.hidden_size, cfg.num_attention_heads, cfg.key_heads, cfg.head_size
        self.heads, self.groups = H, G
        self.qkv = Linear.fuse(w, ["q_proj", "k_proj", "v_proj"], D, [H * K, G * K, G * K])
        self.q_norm = LayerNorm(w / "q_layernorm", K, cfg.layer_norm_eps) if cfg.qk_layernorm else None
        self.k_norm = LayerNorm(w / "k_layernorm", K, cfg.layer_norm_eps) if cfg.qk_layernorm else None
        self.dropout = Dropout(cfg.attention_dropout or 0.0)
        self.out = Linear(w / "dense", H * K, D, dropout=cfg.resid_pdrop)

    def __call__(self, x: Array, c: llama.RopeContext, cache: LayerCache | None, residual: Array) -> Array:
        """x, residual (B, T, D) -> (B, T, D)."""
        q, k, v = ops.split_heads(self.qkv(x), self.heads, self.groups)
        if self.q_norm is not None and self.k_norm is not None:
            q, k = self.q_norm(q), self.k_norm(k)
        q, k = ops.rope(q, *c.cos_sin), ops.rope(k, *c.cos_sin)
        if cache is not None:
            k, v = cache.extend(k, v, masked=c.mask is not None)
        a = ops.attention(q, k, v, **c.visible, dropout=self.dropout.rate)
        return self.out(a.reshape(*x.shape[:2], -1), residual)


class Layer(Module):
    def __init__(self, w: Weights, cfg: PhiConfig, layer: int):
        D, F = cfg.hidden_size, cfg.intermediate_size
        self.norm = LayerNorm(w / "input_layernorm", D, cfg.layer_norm_eps)
        self.attention = Attention(w / "self_attn", cfg)
        self.up = Linear(w / "mlp.fc1", D, F, act=cfg.hidden_act)
        self.down = Linear(w / "mlp.fc2", F, D, dropout=cfg.resid_pdrop)

    def __call__(self, x: Array, c: llama.RopeContext, cache: LayerCache | None) -> Array:
        """x (B, T, D) -> (B, T, D)."""
        y = self.norm(x)
        return self.down(self.up(y), self.attention(y, c, cache, x))


class PhiModel(llama.LlamaModel):
    config_class = PhiConfig
    name_map = NAME_MAP

    def __init__(self, w: Weights, cfg: PhiConfig):
        self.config = cfg
        self.embeddings = Embeddings(w / "embed_tokens", cfg)
        self.layers = [Layer(w / "layers" / i, cfg, i) for i in range(cfg.num_hidden_layers)]
        self.norm = LayerNorm(w / "final_layernorm", cfg.hidden_size, cfg.layer_norm_eps)
        self.rope = cfg.rope()


class PhiHead(llama.LlamaHead):
    config_class = PhiConfig
    name_map = NAME_MAP
    base_class = PhiModel


class PhiForCausalLM(CausalLM, PhiHead):
    """The decoder: logits of the next token."""

    tied = llama.TIED_WEIGHTS

    def __init__(self, w: Weights, cfg: PhiConfig):
        super().__init__(w, cfg)
        self.head = Linear(w / "lm_head", cfg.hidden_size, cfg.vocab_size, vocab=True)


class PhiForSequenceClassification(PhiHead, llama.LlamaForSequenceClassification): ...


class PhiForTokenClassification(PhiHead, llama.LlamaForTokenClassification): ...
