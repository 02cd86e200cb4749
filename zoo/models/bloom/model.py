"""BLOOM (Workshop et al. 2022, https://arxiv.org/abs/2211.05100): a decoder without positions, whose attention falls
off with the distance of a token (ALiBi).

Shapes: B batch, T tokens, D hidden_size, H heads, K = D / H, V vocab_size.
"""

from __future__ import annotations

from ... import ops
from ...cache import LayerCache
from ...inputs import Context, TextInputs
from ...inputs.heads import CausalLM, LastTokenClassification
from ...nn import AlibiBias, Dropout, LayerNorm, Linear, Module
from ...typing import Array
from ...weights import NameMap, Weights
from ..gpt2 import model as gpt2
from .config import BloomConfig

NAME_MAP = NameMap(
    prefix="transformer",
    base=("word_embeddings", "word_embeddings_layernorm", "h", "ln_f"),
    ignored=(r"^lm_head\.", r"^score\.", r"^classifier\.", r"^qa_outputs\."),  # the heads of other classes
)
IDS = {"input_ids": "vocab_size"}
INPUTS = {**IDS, "inputs_embeds": "hidden_size"}
TIED_WEIGHTS = {"lm_head.weight": "transformer.word_embeddings.weight"}
MAX_POSITIONS = 1 << 15  # ALiBi has no last position: this is the longest text of which zoo keeps a table of distances


class Embeddings(Module):
    max_positions = MAX_POSITIONS

    def __init__(self, w: Weights, cfg: BloomConfig):
        self.word = w.embedding("word_embeddings.weight", cfg.vocab_size, cfg.hidden_size)
        self.norm = LayerNorm(w / "word_embeddings_layernorm", cfg.hidden_size, cfg.layer_norm_epsilon)

    def __call__(self, t: TextInputs) -> Array:
        """-> (B, T, D)."""
        return self.norm(ops.embedding(t.ids, self.word, "input_ids") if t.inputs_embeds is None else t.inputs_embeds)


class Layer(Module):
    def __init__(self, w: Weights, cfg: BloomConfig):
        D, eps, rate = cfg.hidden_size, cfg.layer_norm_epsilon, cfg.hidden_dropout
        self.heads, self.adds_normed = cfg.n_head, cfg.apply_residual_connection_post_layernorm
        self.attention_norm = LayerNorm(w / "input_layernorm", D, eps)
        self.qkv = Linear(w / "self_attention.query_key_value", D, 3 * D)
        self.dropout = Dropout(cfg.attention_dropout)
        self.out = Linear(w / "self_attention.dense", D, D, dropout=rate)
        self.mlp_norm = LayerNorm(w / "post_attention_layernorm", D, eps)
        self.up = Linear(w / "mlp.dense_h_to_4h", D, 4 * D, act="gelu_pytorch_tanh")
        self.down = Linear(w / "mlp.dense_4h_to_h", 4 * D, D, dropout=rate)

    def __call__(
        self, x: Array, c: Context, cache: LayerCache | None, bias: Array | None, distances: AlibiBias
    ) -> tuple[Array, Array]:
        """x (B, T, D), the bias of a layer before, if there is one -> (B, T, D), bias."""
        (B, T, D), H = x.shape, self.heads
        y, K = self.attention_norm(x), D // H
        split = self.qkv(y).reshape(B, T, H, 3 * K)  # head by head
        q, k, v = split[..., :K], split[..., K : 2 * K], split[..., 2 * K :]
        if cache is not None:
            k, v = cache.extend(k, v, masked=c.mask is not None)
        if bias is None:
            bias = distances(T, k, c.start, c.mask)
        a = ops.attention(q, k, v, start=c.start, mask=c.mask, bias=bias, dropout=self.dropout.rate)
        x = self.out(a.reshape(B, T, D), residual=y if self.adds_normed else x)
        y = self.mlp_norm(x)
        return self.down(self.up(y), residual=y if self.adds_normed else x), bias


class BloomPretrained(gpt2.GPT2Pretrained):
    config_class = BloomConfig
    name_map = NAME_MAP
    separates_texts = False
    inputs = INPUTS


class BloomModel(BloomPretrained):
    """The layers and a final norm."""

    is_base_model = True
    options = ("cache",)

    def __init__(self, w: Weights, cfg: BloomConfig):
        self.config = cfg
        self.embeddings = Embeddings(w, cfg)
        self.layers = [Layer(w / "h" / i, cfg) for i in range(cfg.n_layer)]
        self.norm = LayerNorm(w / "ln_f", cfg.hidden_size, cfg.layer_norm_epsilon)
        self.distances = AlibiBias(cfg.slopes, MAX_POSITIONS, self.norm.weight)

    def encode(self, t: TextInputs) -> Array:
        """-> (B, T, D) of every token."""
        x, bias = self.embeddings(t), None
        for layer, cache in t.with_cache(self.layers):
            x, bias = layer(x, t.context, cache, bias, self.distances)
        return self.norm(x)

    def forward(self, t: TextInputs) -> gpt2.GPT2ModelOutput:
        return gpt2.GPT2ModelOutput(self.encode(t))


class BloomHead(BloomPretrained):
    """The base of the classes with a head: the base model under its name in the checkpoint."""

    def __init__(self, w: Weights, cfg: BloomConfig):
        self.config = cfg
        self.base_model = BloomModel(w / "transformer", cfg)


class BloomForCausalLM(CausalLM, BloomHead):
    """The decoder: logits of the next token."""

    tied = TIED_WEIGHTS
    adds_bias = True

    def __init__(self, w: Weights, cfg: BloomConfig):
        super().__init__(w, cfg)
        self.head = Linear(w / "lm_head", cfg.hidden_size, cfg.vocab_size, bias=False, vocab=True)


class BloomForSequenceClassification(LastTokenClassification, BloomHead):
    inputs = IDS  # the ids show where rows end
