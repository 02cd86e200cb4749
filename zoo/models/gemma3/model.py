"""Gemma 3 (Gemma team 2025, https://arxiv.org/abs/2503.19786): Llama's layers between two norms each, most of which
attend within a window; norms of queries and keys; embeddings scaled by the root of their width.

Shapes: B batch, T tokens, D hidden_size, F intermediate_size, H heads, G heads of keys, K head_dim, V vocab_size.
"""

from __future__ import annotations

from typing import NamedTuple

from ... import ops
from ...cache import LayerCache
from ...inputs import TextInputs
from ...nn import Linear, Module
from ...typing import Array
from ...weights import Weights
from ..gemma.model import Embeddings, Norm
from ..gemma2.model import SoftCap
from ..llama3 import model as llama
from .config import Gemma3TextConfig


class RopeContext(NamedTuple):
    """The arguments of every layer besides its input."""

    everywhere: llama.RopeContext  # for the layers that see all tokens
    nearby: llama.RopeContext  # for those that see the last ones


class Attention(llama.Attention):
    def __init__(self, w: Weights, cfg: Gemma3TextConfig, layer: int):
        super().__init__(w, cfg, layer)
        self.q_norm, self.k_norm = (Norm(w / name, cfg.head_size, cfg.rms_norm_eps) for name in ("q_norm", "k_norm"))
        self.query_scale = (cfg.head_size / cfg.query_pre_attn_scalar) ** 0.5  # of what attention scales by K ** -0.5

    def project(self, x: Array) -> tuple[Array, Array, Array]:
        """x (B, T, D) -> queries (B, T, H, K), keys and values (B, T, G, K)."""
        q, k, v = super().project(x)
        q = self.q_norm(q)
        return q if self.query_scale == 1 else q * self.query_scale, self.k_norm(k), v


class Layer(Module):
    def __init__(self, w: Weights, cfg: Gemma3TextConfig, layer: int):
        D, F, eps = cfg.hidden_size, cfg.intermediate_size, cfg.rms_norm_eps
        self.slides, self.act = cfg.slides(layer), ops.activation(cfg.hidden_activation)
        self.input_norm = Norm(w / "input_layernorm", D, eps)
        self.attention = Attention(w / "self_attn", cfg, layer)
        self.post_attention_norm = Norm(w / "post_attention_layernorm", D, eps)
        self.pre_feedforward_norm = Norm(w / "pre_feedforward_layernorm", D, eps)
        self.gate_up = Linear.fuse(w / "mlp", ["gate_proj", "up_proj"], D, [F, F], bias=False)
        self.down = Linear(w / "mlp.down_proj", F, D, bias=False)
        self.post_feedforward_norm = Norm(w / "post_feedforward_layernorm", D, eps)

    def __call__(self, x: Array, c: RopeContext, cache: LayerCache | None) -> Array:
        """x (B, T, D) -> (B, T, D)."""
        own = c.nearby if self.slides else c.everywhere
        x = x + self.post_attention_norm(self.attention(self.input_norm(x), own, cache))
        y = ops.glu(self.gate_up(self.pre_feedforward_norm(x)), self.act)
        return x + self.post_feedforward_norm(self.down(y))


class Gemma3Pretrained(llama.LlamaPretrained):
    config_class = Gemma3TextConfig

    @property
    def is_causal(self) -> bool:  # EmbeddingGemma's tokens attend to those after them too
        return not self.config.use_bidirectional_attention


class Gemma3TextModel(Gemma3Pretrained, llama.LlamaModel):
    def __init__(self, w: Weights, cfg: Gemma3TextConfig):
        self.config = cfg
        self.embeddings = Embeddings(w / "embed_tokens", cfg)
        self.layers = [Layer(w / "layers" / i, cfg, i) for i in range(cfg.num_hidden_layers)]
        self.norm = Norm(w / "norm", cfg.hidden_size, cfg.rms_norm_eps)
        self.ropes = cfg.rope(), cfg.local_rope()

    def encode(self, t: TextInputs) -> Array:
        """-> (B, T, D) of every token."""
        x, start, at = self.embeddings(t), t.context.start, t.position_ids
        if at is None:
            at = ops.arange(x.shape[1], self.like)[None]
            at = at if start is None else start[:, None] + at
        bias = t.context.other_texts_bias(x)
        turns = (ops.rotary(at, rope.frequencies(t.length), rope.scale, self.like) for rope in self.ropes)
        c = RopeContext(*(llama.RopeContext(t.context.mask, start, cos_sin, bias, t.blocks) for cos_sin in turns))
        for layer, cache in t.with_cache(self.layers):
            x = layer(x, c, cache)
        return self.norm(x)


class Gemma3Head(Gemma3Pretrained, llama.LlamaHead):
    base_class = Gemma3TextModel


class Gemma3ForCausalLM(Gemma3Head, llama.LlamaForCausalLM):
    def __init__(self, w: Weights, cfg: Gemma3TextConfig):
        Gemma3Head.__init__(self, w, cfg)
        self.head = SoftCap(w / "lm_head", cfg)


class Gemma3TextForSequenceClassification(Gemma3Head, llama.LlamaForSequenceClassification): ...
