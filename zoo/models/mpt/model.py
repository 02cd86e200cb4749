"""MPT (MosaicML 2023, https://www.databricks.com/blog/mpt-7b): a decoder without positions and biases, whose
attention falls off with the distance of a token (ALiBi).

Shapes: B batch, T tokens, D d_model, H heads, V vocab_size.
"""

from __future__ import annotations

from ... import ops
from ...cache import LayerCache
from ...inputs import Context, TextInputs
from ...inputs.heads import CausalLM, LastTokenClassification, QuestionAnswering, TokenClassification
from ...nn import AlibiBias, Dropout, LayerNorm, Linear, Module
from ...typing import Array
from ...weights import NameMap, Weights
from ..gpt2 import model as gpt2
from .config import MptConfig

NAME_MAP = NameMap(
    prefix="transformer",
    base=("wte", "blocks", "norm_f"),
    ignored=(r"^lm_head\.", r"^score\.", r"^classifier\.", r"^qa_outputs\."),  # the heads of other classes
)
IDS = {"input_ids": "vocab_size"}
INPUTS = {**IDS, "inputs_embeds": "d_model"}


class Embeddings(Module):
    def __init__(self, w: Weights, cfg: MptConfig):
        self.word = w.embedding("wte.weight", cfg.vocab_size, cfg.d_model)
        self.max_positions = cfg.max_seq_len

    def __call__(self, t: TextInputs) -> Array:
        """-> (B, T, D)."""
        return ops.embedding(t.ids, self.word, "input_ids") if t.inputs_embeds is None else t.inputs_embeds


class Layer(Module):
    def __init__(self, w: Weights, cfg: MptConfig):
        D, eps, rate = cfg.d_model, cfg.layer_norm_epsilon, cfg.attention_dropout
        self.heads, self.bound, self.scale = cfg.n_heads, cfg.largest_value, cfg.scale
        self.attention_norm = LayerNorm(w / "norm_1", D, eps, bias=False)
        self.qkv = Linear(w / "attn.Wqkv", D, 3 * D, bias=False)
        self.dropout = Dropout(rate)
        self.out = Linear(w / "attn.out_proj", D, D, bias=False, dropout=rate)
        self.mlp_norm = LayerNorm(w / "norm_2", D, eps, bias=False)
        self.up = Linear(w / "ffn.up_proj", D, 4 * D, bias=False, act="gelu")
        self.down = Linear(w / "ffn.down_proj", 4 * D, D, bias=False, dropout=rate)

    def __call__(
        self, x: Array, c: Context, cache: LayerCache | None, bias: Array | None, distances: AlibiBias
    ) -> tuple[Array, Array]:
        """x (B, T, D), the bias of a layer before, if there is one -> (B, T, D), bias."""
        qkv = self.qkv(self.attention_norm(x))
        qkv = qkv if self.bound is None else ops.clip(qkv, -self.bound, self.bound)
        q, k, v = ops.split_heads(qkv, self.heads)
        if cache is not None:
            k, v = cache.extend(k, v, masked=c.mask is not None)
        if bias is None:
            bias = distances(x.shape[1], k, c.start, None)
        rate = self.dropout.rate
        a = ops.attention(q, k, v, start=c.start, mask=c.mask, bias=bias, scale=self.scale, dropout=rate)
        y, x = self.mlp_norm.add(self.out(a.reshape(x.shape)), x)
        return self.down(self.up(y), residual=x), bias


class MptPretrained(gpt2.GPT2Pretrained):
    config_class = MptConfig
    name_map = NAME_MAP
    separates_texts = False
    inputs = INPUTS


class MptModel(MptPretrained):
    """The layers and a final norm."""

    is_base_model = True
    options = ("cache",)

    def __init__(self, w: Weights, cfg: MptConfig):
        self.config = cfg
        self.embeddings = Embeddings(w, cfg)
        self.layers = [Layer(w / "blocks" / i, cfg) for i in range(cfg.n_layers)]
        self.norm = LayerNorm(w / "norm_f", cfg.d_model, cfg.layer_norm_epsilon, bias=False)
        self.distances = AlibiBias(cfg.slopes, cfg.max_seq_len, self.norm.weight)

    def encode(self, t: TextInputs) -> Array:
        """-> (B, T, D) of every token."""
        x, bias = self.embeddings(t), None
        for layer, cache in t.with_cache(self.layers):
            x, bias = layer(x, t.context, cache, bias, self.distances)
        return self.norm(x)

    def forward(self, t: TextInputs) -> gpt2.GPT2ModelOutput:
        return gpt2.GPT2ModelOutput(self.encode(t))


class MptHead(MptPretrained):
    """The base of the classes with a head: the base model under its name in the checkpoint."""

    def __init__(self, w: Weights, cfg: MptConfig):
        self.config = cfg
        self.base_model = MptModel(w / "transformer", cfg)


class MptForCausalLM(CausalLM, MptHead):
    """The decoder: logits of the next token."""

    tied = gpt2.TIED_WEIGHTS
    adds_bias = True

    def __init__(self, w: Weights, cfg: MptConfig):
        super().__init__(w, cfg)
        self.head = Linear(w / "lm_head", cfg.d_model, cfg.vocab_size, bias=False, vocab=True)


class MptForSequenceClassification(LastTokenClassification, MptHead):
    inputs = IDS  # the ids show where rows end


class MptForTokenClassification(TokenClassification, MptHead): ...


class MptForQuestionAnswering(QuestionAnswering, MptHead): ...
