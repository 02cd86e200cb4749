"""OLMo 3 (OLMo team 2025, https://arxiv.org/abs/2512.13961): OLMo 2's layers, three of four of which attend within a
window, with positions of their own.

Shapes: B batch, T tokens, D hidden_size.
"""

from __future__ import annotations

from ... import ops
from ...inputs import TextInputs
from ...nn import RMSNorm
from ...typing import Array
from ...weights import Weights
from ..llama3 import model as llama
from ..olmo2 import model as olmo2
from .config import Olmo3Config


class Olmo3Model(llama.LlamaModel):
    config_class = Olmo3Config

    def __init__(self, w: Weights, cfg: Olmo3Config):
        self.config = cfg
        self.embeddings = llama.Embeddings(w / "embed_tokens", cfg)
        self.layers = [olmo2.Layer(w / "layers" / i, cfg, i) for i in range(cfg.num_hidden_layers)]
        self.norm = RMSNorm(w / "norm", cfg.hidden_size, cfg.rms_norm_eps)
        self.ropes = cfg.rope(), cfg.local_rope()

    def encode(self, t: TextInputs) -> Array:
        """-> (B, T, D) of every token.  Positions count from a row's beginning, padding included."""
        x, start = self.embeddings(t), t.start
        at = start[:, None] + ops.arange(x.shape[1], self.like) if t.position_ids is None else t.position_ids
        bias = t.context.other_texts_bias(x)
        turns = [ops.rotary(at, rope.frequencies(t.length), rope.scale, self.like) for rope in self.ropes]
        everywhere, nearby = (llama.RopeContext(t.context.mask, start, cos_sin, bias) for cos_sin in turns)
        for i, (layer, cache) in enumerate(t.with_cache(self.layers)):
            x = layer(x, nearby if self.config.slides(i) else everywhere, cache)
        return self.norm(x)


class Olmo3Head(llama.LlamaHead):
    config_class = Olmo3Config
    base_class = Olmo3Model


class Olmo3ForCausalLM(Olmo3Head, llama.LlamaForCausalLM): ...


class Olmo3ForSequenceClassification(Olmo3Head, llama.LlamaForSequenceClassification): ...
