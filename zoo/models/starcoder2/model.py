"""StarCoder2 (Lozhkov et al. 2024, https://arxiv.org/abs/2402.19173): Llama's attention within a window, with GPT-2's
norms, MLP and biases.

Shapes: B batch, T tokens, D hidden_size, F intermediate_size, H heads, G heads of keys, K head size.
"""

from __future__ import annotations

from ...cache import LayerCache
from ...inputs import TextInputs
from ...nn import Dropout, LayerNorm, Linear, Module
from ...typing import Array
from ...weights import Weights
from ..llama3 import model as llama
from .config import Starcoder2Config


class Embeddings(llama.Embeddings):
    def __init__(self, w: Weights, cfg: Starcoder2Config):
        super().__init__(w, cfg)
        self.dropout = Dropout(cfg.embedding_dropout)

    def __call__(self, t: TextInputs) -> Array:
        """-> (B, T, D)."""
        return self.dropout(super().__call__(t))


class Attention(llama.Attention):
    def __init__(self, w: Weights, cfg: Starcoder2Config, layer: int):
        D, H, G, K = cfg.hidden_size, cfg.num_attention_heads, cfg.key_heads, cfg.head_size
        self.heads, self.groups = H, G
        self.qkv = Linear.fuse(w, ["q_proj", "k_proj", "v_proj"], D, [H * K, G * K, G * K], cfg.use_bias)
        self.dropout = Dropout(cfg.attention_dropout or 0.0)
        self.out = Linear(w / "o_proj", H * K, D, cfg.use_bias, dropout=cfg.residual_dropout)
        self.window, self.rotates = cfg.window(layer), True


class Layer(Module):
    def __init__(self, w: Weights, cfg: Starcoder2Config, layer: int):
        D, F, bias = cfg.hidden_size, cfg.intermediate_size, cfg.use_bias
        self.input_norm = LayerNorm(w / "input_layernorm", D, cfg.norm_epsilon)
        self.attention = Attention(w / "self_attn", cfg, layer)
        self.post_attention_norm = LayerNorm(w / "post_attention_layernorm", D, cfg.norm_epsilon)
        self.up = Linear(w / "mlp.c_fc", D, F, bias, act=cfg.hidden_act)
        self.down = Linear(w / "mlp.c_proj", F, D, bias, dropout=cfg.residual_dropout)

    def __call__(self, x: Array, c: llama.RopeContext, cache: LayerCache | None) -> Array:
        """x (B, T, D) -> (B, T, D)."""
        y, x = self.post_attention_norm.add(self.attention(self.input_norm(x), c, cache), x)
        return self.down(self.up(y), x)


class Starcoder2Model(llama.LlamaModel):
    config_class = Starcoder2Config

    def __init__(self, w: Weights, cfg: Starcoder2Config):
        self.config = cfg
        self.embeddings = Embeddings(w / "embed_tokens", cfg)
        self.layers = [Layer(w / "layers" / i, cfg, i) for i in range(cfg.num_hidden_layers)]
        self.norm = LayerNorm(w / "norm", cfg.hidden_size, cfg.norm_epsilon)
        self.rope = cfg.rope()


class Starcoder2Head(llama.LlamaHead):
    config_class = Starcoder2Config
    base_class = Starcoder2Model


class Starcoder2ForCausalLM(Starcoder2Head, llama.LlamaForCausalLM): ...


class Starcoder2ForSequenceClassification(Starcoder2Head, llama.LlamaForSequenceClassification): ...


class Starcoder2ForTokenClassification(Starcoder2Head, llama.LlamaForTokenClassification): ...
