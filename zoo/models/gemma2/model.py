"""Gemma 2 (Gemma team 2024, https://arxiv.org/abs/2408.00118): Llama's layers between two norms each, every second of
which attends within a window; scores and logits are held within bounds by a tanh.

Shapes: B batch, T tokens, D hidden_size, F intermediate_size, H heads, G heads of keys, K head_dim, V vocab_size.
"""

from __future__ import annotations

from typing import Any

from ... import ops
from ...cache import LayerCache
from ...nn import Linear, Module
from ...typing import Array
from ...weights import Weights
from ..gemma.model import Embeddings, Norm
from ..llama3 import model as llama
from .config import Gemma2Config


class Attention(llama.Attention):
    def __init__(self, w: Weights, cfg: Gemma2Config, layer: int):
        super().__init__(w, cfg, layer)
        self.scale, self.softcap = cfg.query_pre_attn_scalar**-0.5, cfg.attn_logit_softcapping

    def __call__(self, x: Array, c: llama.RopeContext, cache: LayerCache | None) -> Array:
        """x (B, T, D) -> (B, T, D)."""
        q, k, v = self.project(x)
        if cache is None:
            q, k, visible = ops.rope(q, *c.cos_sin), ops.rope(k, *c.cos_sin), c.visible
        else:
            q, k, v = cache.rotate_and_extend(q, k, v, c.cos_sin, masked=c.mask is not None)
            visible = cache.attention_arguments(c.visible)
        more = {"window": self.window, "scale": self.scale, "softcap": self.softcap, "dropout": self.dropout.rate}
        return self.out(ops.attention(q, k, v, **visible, **more).reshape(*x.shape[:2], -1))


class Layer(Module):
    def __init__(self, w: Weights, cfg: Gemma2Config, layer: int):
        D, F, eps = cfg.hidden_size, cfg.intermediate_size, cfg.rms_norm_eps
        self.act = ops.activation(cfg.hidden_activation)
        self.input_norm = Norm(w / "input_layernorm", D, eps)
        self.attention = Attention(w / "self_attn", cfg, layer)
        self.post_attention_norm = Norm(w / "post_attention_layernorm", D, eps)
        self.pre_feedforward_norm = Norm(w / "pre_feedforward_layernorm", D, eps)
        self.gate_up = Linear.fuse(w / "mlp", ["gate_proj", "up_proj"], D, [F, F], bias=False)
        self.down = Linear(w / "mlp.down_proj", F, D, bias=False)
        self.post_feedforward_norm = Norm(w / "post_feedforward_layernorm", D, eps)

    def __call__(self, x: Array, c: llama.RopeContext, cache: LayerCache | None) -> Array:
        """x (B, T, D) -> (B, T, D)."""
        x = x + self.post_attention_norm(self.attention(self.input_norm(x), c, cache))
        y = ops.glu(self.gate_up(self.pre_feedforward_norm(x)), self.act)
        return x + self.post_feedforward_norm(self.down(y))


class Gemma2Model(llama.LlamaModel):
    config_class = Gemma2Config

    def __init__(self, w: Weights, cfg: Gemma2Config):
        self.config = cfg
        self.embeddings = Embeddings(w / "embed_tokens", cfg)
        self.layers = [Layer(w / "layers" / i, cfg, i) for i in range(cfg.num_hidden_layers)]
        self.norm = Norm(w / "norm", cfg.hidden_size, cfg.rms_norm_eps)
        self.rope = cfg.rope()


class Gemma2Head(llama.LlamaHead):
    config_class = Gemma2Config
    base_class = Gemma2Model


class SoftCap(Module):
    """Logits of a vocabulary, held within -cap ... cap by a tanh if there is a cap."""

    def __init__(self, w: Weights, cfg: Any):
        self.linear = Linear(w, cfg.hidden_size, cfg.vocab_size, bias=False, vocab=True)
        self.cap = cfg.final_logit_softcapping

    def __call__(self, x: Array) -> Array:
        """x (..., D) -> (..., V)."""
        y = self.linear(x)
        return y if self.cap is None else ops.activate(y / self.cap, "tanh") * self.cap


class Gemma2ForCausalLM(Gemma2Head, llama.LlamaForCausalLM):
    adds_bias = True

    def __init__(self, w: Weights, cfg: Gemma2Config):
        Gemma2Head.__init__(self, w, cfg)
        self.head = SoftCap(w / "lm_head", cfg)


class Gemma2ForSequenceClassification(Gemma2Head, llama.LlamaForSequenceClassification): ...
