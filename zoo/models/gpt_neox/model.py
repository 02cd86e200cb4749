"""GPT-NeoX (Black et al. 2022, https://arxiv.org/abs/2204.06745), Pythia among them, and the heads trained on it: a
causal stack whose attention and MLP read the same input, with positions that rotate a part of each head's features.

Shapes: B batch, T tokens, D hidden_size, F intermediate_size, H heads, K head size, R rotated features, V vocab_size,
C labels.
"""

from __future__ import annotations

from ... import ops
from ...cache import LayerCache
from ...inputs import TextInputs
from ...inputs.heads import CausalLM, QuestionAnswering, TokenClassification
from ...nn import Dropout, LayerNorm, Linear, Module
from ...typing import Array
from ...weights import NameMap, Weights
from ..llama3 import model as llama
from .config import GPTNeoXConfig

NAME_MAP = NameMap(
    prefix="gpt_neox",
    base=("embed_in", "layers", "final_layer_norm"),
    renames={r"^lm_head\.": "embed_out."},  # transformers 5's name in memory
    # Buffers of files of 2023, and the heads of other classes.
    ignored=(
        r"\.attention\.(bias|masked_bias|rotary_emb\.inv_freq)$",
        *(rf"^{head}\." for head in ("embed_out", "score", "classifier", "qa_outputs")),
    ),
)


TIED_WEIGHTS = {"embed_out.weight": "gpt_neox.embed_in.weight"}


class Embeddings(llama.Embeddings):
    def __init__(self, w: Weights, cfg: GPTNeoXConfig):
        super().__init__(w, cfg)
        self.dropout = Dropout(cfg.hidden_dropout)

    def __call__(self, t: TextInputs) -> Array:
        """-> (B, T, D)."""
        return self.dropout(super().__call__(t))


class Attention(Module):
    def __init__(self, w: Weights, cfg: GPTNeoXConfig):
        D = cfg.hidden_size
        self.heads, self.size = cfg.num_attention_heads, cfg.head_size
        self.qkv = Linear(w / "query_key_value", D, 3 * D, cfg.attention_bias)
        self.dropout = Dropout(cfg.attention_dropout or 0.0)
        self.out = Linear(w / "dense", D, D, cfg.attention_bias, dropout=cfg.hidden_dropout)

    def __call__(self, x: Array, c: llama.RopeContext, cache: LayerCache | None, residual: Array) -> Array:
        """x, residual (B, T, D) -> (B, T, D)."""
        (B, T, _), K = x.shape, self.size
        y = self.qkv(x).reshape(B, T, self.heads, 3 * K)  # head by head, unlike a fused projection of Llama
        q, k, v = ops.rope(y[..., :K], *c.cos_sin), ops.rope(y[..., K : 2 * K], *c.cos_sin), y[..., 2 * K :]
        if cache is not None:
            k, v = cache.extend(k, v, masked=c.mask is not None)
        a = ops.attention(q, k, v, **c.visible, dropout=self.dropout.rate)
        return self.out(a.reshape(B, T, -1), residual)


class Layer(Module):
    def __init__(self, w: Weights, cfg: GPTNeoXConfig):
        D, F, eps = cfg.hidden_size, cfg.intermediate_size, cfg.layer_norm_eps
        self.input_norm = LayerNorm(w / "input_layernorm", D, eps)
        self.attention = Attention(w / "attention", cfg)
        self.post_attention_norm = LayerNorm(w / "post_attention_layernorm", D, eps)
        self.up = Linear(w / "mlp.dense_h_to_4h", D, F, act=cfg.hidden_act)
        self.down = Linear(w / "mlp.dense_4h_to_h", F, D, dropout=cfg.hidden_dropout)
        self.is_parallel = cfg.use_parallel_residual

    def __call__(self, x: Array, c: llama.RopeContext, cache: LayerCache | None) -> Array:
        """x (B, T, D) -> (B, T, D)."""
        y = self.attention(self.input_norm(x), c, cache, x)
        return self.down(self.up(self.post_attention_norm(x if self.is_parallel else y)), y)


class GPTNeoXModel(llama.LlamaModel):
    """The layers and a final norm."""

    config_class = GPTNeoXConfig
    name_map = NAME_MAP

    def __init__(self, w: Weights, cfg: GPTNeoXConfig):
        self.config = cfg
        self.embeddings = Embeddings(w / "embed_in", cfg)
        self.layers = [Layer(w / "layers" / i, cfg) for i in range(cfg.num_hidden_layers)]
        self.norm = LayerNorm(w / "final_layer_norm", cfg.hidden_size, cfg.layer_norm_eps)
        self.rope = cfg.rope()


class GPTNeoXHead(llama.LlamaHead):
    config_class = GPTNeoXConfig
    name_map = NAME_MAP
    base_class = GPTNeoXModel


class GPTNeoXForCausalLM(CausalLM, GPTNeoXHead):
    """The decoder: logits of the next token."""

    tied = TIED_WEIGHTS

    def __init__(self, w: Weights, cfg: GPTNeoXConfig):
        super().__init__(w, cfg)
        self.head = Linear(w / "embed_out", cfg.hidden_size, cfg.vocab_size, bias=False, vocab=True)


class GPTNeoXForSequenceClassification(GPTNeoXHead, llama.LlamaForSequenceClassification): ...


class GPTNeoXForTokenClassification(TokenClassification, GPTNeoXHead):
    def __init__(self, w: Weights, cfg: GPTNeoXConfig):
        GPTNeoXHead.__init__(self, w, cfg)
        self.dropout = Dropout(cfg.classifier_dropout or 0.0)
        self.classifier = Linear(w / "classifier", cfg.hidden_size, cfg.num_labels)


class GPTNeoXForQuestionAnswering(QuestionAnswering, GPTNeoXHead): ...
