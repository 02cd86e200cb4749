"""GPT-J (Wang and Komatsuzaki 2021, https://github.com/kingoflolz/mesh-transformer-jax): a causal stack whose attention
and MLP read the same norm, with positions that turn neighbouring features of a part of each head.

Shapes: B batch, T tokens, D n_embd, F n_inner, H heads, K = D / H, V vocab_size.
"""

from __future__ import annotations

from typing import Any, ClassVar

from ... import ops
from ...cache import LayerCache
from ...inputs import TextInputs
from ...inputs.heads import CausalLM
from ...nn import Dropout, LayerNorm, Linear, Module
from ...typing import Array
from ...weights import NameMap, Weights
from ..llama3 import model as llama
from .config import GPTJConfig

NAME_MAP = NameMap(
    prefix="transformer",
    base=("wte", "h", "ln_f"),
    # Buffers of causal masks, and the heads of other classes.
    ignored=(r"\.attn\.((masked_|causal_)?bias|causal_mask)$", r"^lm_head\.", r"^score\.", r"^qa_outputs\."),
)
TIED_WEIGHTS = {"lm_head.weight": "transformer.wte.weight"}
# Argument -> the config's field that bounds its ids, or is the width of its vectors.
IDS = {"input_ids": "vocab_size", "position_ids": "n_positions"}
INPUTS = {**IDS, "inputs_embeds": "n_embd"}


class Embeddings(Module):
    def __init__(self, w: Weights, cfg: GPTJConfig):
        self.word = w.embedding("weight", cfg.vocab_size, cfg.n_embd)
        self.dropout, self.max_positions = Dropout(cfg.embd_pdrop), cfg.n_positions

    def __call__(self, t: TextInputs) -> Array:
        """-> (B, T, D)."""
        return self.dropout(
            ops.embedding(t.ids, self.word, "input_ids") if t.inputs_embeds is None else t.inputs_embeds
        )


class Attention(Module):
    def __init__(self, w: Weights, cfg: GPTJConfig):
        D = cfg.n_embd
        self.heads = cfg.n_head
        self.qkv = self.projection(w, D)
        self.dropout = Dropout(cfg.attn_pdrop)
        self.out = Linear(w / "out_proj", D, D, bias=False, dropout=cfg.resid_pdrop)

    def projection(self, w: Weights, d: int) -> Linear:
        """The projection to queries, keys and values."""
        return Linear.fuse(w, ["q_proj", "k_proj", "v_proj"], d, [d, d, d], bias=False)

    def project(self, x: Array) -> tuple[Array, Array, Array]:
        """x (B, T, D) -> queries, keys and values (B, T, H, K)."""
        return ops.split_heads(self.qkv(x), self.heads)

    def __call__(self, x: Array, c: llama.RopeContext, cache: LayerCache | None) -> Array:
        """x (B, T, D) -> (B, T, D)."""
        q, k, v = self.project(x)
        q, k = (ops.rope(y, *c.cos_sin, interleaved=True) for y in (q, k))
        if cache is not None:
            k, v = cache.extend(k, v, masked=c.mask is not None)
        return self.out(ops.attention(q, k, v, **c.visible, dropout=self.dropout.rate).reshape(x.shape))


class Layer(Module):
    attention_class: ClassVar[type[Attention]] = Attention

    def __init__(self, w: Weights, cfg: GPTJConfig):
        D, F = cfg.n_embd, cfg.n_inner or 4 * cfg.n_embd
        self.norm = LayerNorm(w / "ln_1", D, cfg.layer_norm_epsilon)
        self.attention = self.attention_class(w / "attn", cfg)
        self.up = Linear(w / "mlp.fc_in", D, F, act=cfg.activation_function)
        self.down = Linear(w / "mlp.fc_out", F, D, dropout=cfg.resid_pdrop)

    def __call__(self, x: Array, c: llama.RopeContext, cache: LayerCache | None) -> Array:
        """x (B, T, D) -> (B, T, D)."""
        y = self.norm(x)
        return self.down(self.up(y), x + self.attention(y, c, cache))


class GPTJPretrained(llama.LlamaPretrained):
    config_class = GPTJConfig
    name_map = NAME_MAP
    inputs = INPUTS


class GPTJModel(GPTJPretrained, llama.LlamaModel):
    layer_class: ClassVar[type[Any]] = Layer

    def __init__(self, w: Weights, cfg: GPTJConfig):
        self.config = cfg
        self.embeddings = Embeddings(w / "wte", cfg)
        self.layers = [self.layer_class(w / "h" / i, cfg) for i in range(cfg.n_layer)]
        self.norm = LayerNorm(w / "ln_f", cfg.n_embd, cfg.layer_norm_epsilon)
        self.rope = cfg.rope()


class GPTJForCausalLM(CausalLM, GPTJPretrained, llama.LlamaHead):
    """The decoder: logits of the next token."""

    tied = TIED_WEIGHTS
    base_class = GPTJModel

    def __init__(self, w: Weights, cfg: Any):
        super().__init__(w, cfg)
        self.head = Linear(w / "lm_head", cfg.n_embd, cfg.vocab_size, vocab=True)
