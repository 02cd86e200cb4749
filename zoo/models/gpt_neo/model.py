"""GPT-Neo (Black et al. 2021, https://doi.org/10.5281/zenodo.5297715): GPT-2, every second layer of which attends to a
window, with attention that is not scaled.

Shapes: B batch, T tokens, D hidden_size, F intermediate_size, H heads, K = D / H, V vocab_size.
"""

from __future__ import annotations

from typing import Any

from ... import ops
from ...cache import LayerCache
from ...inputs import Context, TextInputs
from ...inputs.heads import CausalLM
from ...nn import Dropout, LayerNorm, Linear, Module
from ...typing import Array
from ...weights import NameMap, Weights
from ..gpt2 import model as gpt2
from .config import GPTNeoConfig

NAME_MAP = NameMap(
    prefix="transformer",
    base=("wte", "wpe", "h", "ln_f"),
    # Buffers of causal masks, and the heads of other classes.
    ignored=(r"\.attn\.attention\.(masked_)?bias$", r"^lm_head\.", r"^score\.", r"^classifier\.", r"^qa_outputs\."),
)
# Argument -> the config's field that bounds its ids, or is the width of its vectors.
IDS = {"input_ids": "vocab_size", "position_ids": "max_position_embeddings"}
INPUTS = {**IDS, "inputs_embeds": "hidden_size"}


class Embeddings(Module):
    def __init__(self, w: Weights, cfg: GPTNeoConfig):
        self.word = w.embedding("wte.weight", cfg.vocab_size, cfg.hidden_size)
        self.position = w.get("wpe.weight", (cfg.max_position_embeddings, cfg.hidden_size))
        self.dropout = Dropout(cfg.embed_dropout)
        self.max_positions = cfg.max_position_embeddings

    def __call__(self, t: TextInputs) -> Array:
        """-> (B, T, D)."""
        x = ops.embedding(t.ids, self.word, "input_ids") if t.inputs_embeds is None else t.inputs_embeds
        at = ops.arange(t.shape[1], self.position) + t.past if t.position_ids is None else t.position_ids
        return self.dropout(x + ops.embedding(at, self.position, "position_ids"))


class Layer(Module):
    def __init__(self, w: Weights, cfg: GPTNeoConfig, layer: int):
        D, F, eps = cfg.hidden_size, cfg.intermediate_size or 4 * cfg.hidden_size, cfg.layer_norm_epsilon
        self.heads, self.window = cfg.num_heads, cfg.window(layer)
        self.attention_norm = LayerNorm(w / "ln_1", D, eps)
        self.qkv = Linear.fuse(w / "attn.attention", ["q_proj", "k_proj", "v_proj"], D, [D, D, D], bias=False)
        self.dropout = Dropout(cfg.attention_dropout)
        self.out = Linear(w / "attn.attention.out_proj", D, D, dropout=cfg.resid_dropout)
        self.mlp_norm = LayerNorm(w / "ln_2", D, eps)
        self.up = Linear(w / "mlp.c_fc", D, F, act=cfg.activation_function)
        self.down = Linear(w / "mlp.c_proj", F, D, dropout=cfg.resid_dropout)

    def __call__(self, x: Array, c: Context, cache: LayerCache | None, bias: Array | None) -> Array:
        """x (B, T, D), bias (B, 1, T, T) -> (B, T, D)."""
        q, k, v = ops.split_heads(self.qkv(self.attention_norm(x)), self.heads)
        visible: dict[str, Any] = {"start": c.start, "mask": c.mask, "bias": bias}
        if cache is not None:
            k, v = cache.extend(k, v, masked=c.mask is not None)
            visible = cache.attention_arguments(visible)
        a = ops.attention(q, k, v, **visible, window=self.window, scale=1.0, dropout=self.dropout.rate)
        y, x = self.mlp_norm.add(self.out(a.reshape(x.shape)), x)
        return self.down(self.up(y), residual=x)


class GPTNeoPretrained(gpt2.GPT2Pretrained):
    config_class = GPTNeoConfig
    name_map = NAME_MAP
    inputs = INPUTS

    @property
    def windows(self) -> list[int | None]:
        return [self.config.window(layer) for layer in range(self.config.num_layers)]


class GPTNeoModel(GPTNeoPretrained, gpt2.GPT2Model):
    def __init__(self, w: Weights, cfg: GPTNeoConfig):
        self.config = cfg
        self.embeddings = Embeddings(w, cfg)
        self.layers = [Layer(w / "h" / i, cfg, i) for i in range(cfg.num_layers)]
        self.norm = LayerNorm(w / "ln_f", cfg.hidden_size, cfg.layer_norm_epsilon)


class GPTNeoHead(GPTNeoPretrained, gpt2.GPT2Head):
    base_class = GPTNeoModel


class GPTNeoForCausalLM(CausalLM, GPTNeoHead):
    """The decoder: logits of the next token."""

    tied = gpt2.TIED_WEIGHTS

    def __init__(self, w: Weights, cfg: Any):
        super().__init__(w, cfg)
        self.head = Linear(w / "lm_head", cfg.hidden_size, cfg.vocab_size, bias=False, vocab=True)


class GPTNeoForSequenceClassification(GPTNeoHead, gpt2.GPT2ForSequenceClassification):
    inputs = IDS  # the ids show where rows end
