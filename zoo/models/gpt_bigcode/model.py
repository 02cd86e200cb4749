"""SantaCoder and StarCoder (Li et al. 2023, https://arxiv.org/abs/2305.06161): GPT-2 with one head of keys and values
for all heads of queries (Shazeer 2019, https://arxiv.org/abs/1911.02150), and matrices that are not transposed.

Shapes: B batch, T tokens, D n_embd, F n_inner, H heads, K = D / H.
"""

from __future__ import annotations

from ... import ops
from ...cache import LayerCache
from ...inputs import Context
from ...nn import Dropout, LayerNorm, Linear
from ...typing import Array
from ...weights import NameMap, Weights
from ..gpt2 import model as gpt2
from .config import GPTBigCodeConfig

NAME_MAP = NameMap(prefix="transformer", base=("wte", "wpe", "h", "ln_f"), ignored=gpt2.NAME_MAP.ignored)


class Layer(gpt2.Layer):
    def __init__(self, w: Weights, cfg: GPTBigCodeConfig, layer: int):
        D, F, eps = cfg.n_embd, cfg.n_inner or 4 * cfg.n_embd, cfg.layer_norm_epsilon
        self.heads, self.scale, self.is_shared = cfg.n_head, cfg.scale(layer), cfg.multi_query
        self.attention_norm = LayerNorm(w / "ln_1", D, eps)
        self.qkv = Linear(w / "attn.c_attn", D, D + 2 * (D // self.heads if self.is_shared else D))
        self.dropout = Dropout(cfg.attn_pdrop)
        self.out = Linear(w / "attn.c_proj", D, D, dropout=cfg.resid_pdrop)
        self.mlp_norm = LayerNorm(w / "ln_2", D, eps)
        self.up = Linear(w / "mlp.c_fc", D, F, act=cfg.activation_function)
        self.down = Linear(w / "mlp.c_proj", F, D, dropout=cfg.resid_pdrop)

    def project(self, x: Array) -> tuple[Array, Array, Array]:
        """x (B, T, D) -> queries (B, T, H, K), keys and values (B, T, 1 or H, K)."""
        y = self.qkv(x)
        if self.is_shared:
            return ops.split_heads(y, self.heads, 1)
        y = y.reshape(*x.shape[:2], self.heads, -1)  # head by head, unlike GPT-2's
        K = x.shape[2] // self.heads
        return y[..., :K], y[..., K : 2 * K], y[..., 2 * K :]

    def __call__(self, x: Array, c: Context, cache: LayerCache | None, bias: Array | None) -> Array:
        """x (B, T, D), bias (B, 1, T, T) -> (B, T, D)."""
        q, k, v = self.project(self.attention_norm(x))
        if cache is not None:
            k, v = cache.extend(k, v, masked=c.mask is not None)
        rate = self.dropout.rate
        a = ops.attention(q, k, v, start=c.start, mask=c.mask, bias=bias, scale=self.scale, dropout=rate)
        y, x = self.mlp_norm.add(self.out(a.reshape(x.shape)), x)
        return self.down(self.up(y), residual=x)


class GPTBigCodePretrained(gpt2.GPT2Pretrained):
    config_class = GPTBigCodeConfig
    name_map = NAME_MAP

    @property
    def cache_shape(self) -> tuple[int, int, int]:
        cfg = self.config
        return cfg.n_layer, 1 if cfg.multi_query else cfg.n_head, cfg.n_embd // cfg.n_head


class GPTBigCodeModel(GPTBigCodePretrained, gpt2.GPT2Model):
    layer_class = Layer


class GPTBigCodeHead(GPTBigCodePretrained, gpt2.GPT2Head):
    base_class = GPTBigCodeModel


class GPTBigCodeForCausalLM(GPTBigCodeHead, gpt2.GPT2LMHeadModel): ...


class GPTBigCodeForSequenceClassification(GPTBigCodeHead, gpt2.GPT2ForSequenceClassification): ...
