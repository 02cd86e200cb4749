"""Nomic's BERT (Nussbaum et al. 2024, https://arxiv.org/abs/2402.01613): BERT's post-norm layers with rotary positions,
gated MLPs and no biases.

Shapes: B batch, T tokens, D hidden_size, F intermediate_size, H heads, K = D / H, V vocab_size.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

from ... import ops
from ...inputs import TextInputs
from ...inputs.heads import MaskedLM, MaskedLMHead, TokenClassification
from ...nn import Dropout, LayerNorm, Linear, Module
from ...typing import Array
from ...weights import NameMap, Weights
from ..bert.heads import BertForSequenceClassification
from ..bert.model import BertHead, BertModel
from .config import NomicBertConfig, RotaryBertConfig

NAME_MAP = NameMap(
    prefix="nomic_bert",
    base=("embeddings", "emb_ln", "encoder", "pooler"),
    renames={r"^bert\.": "nomic_bert."},  # files that were made for Nomic's own code
    ignored=(r"inv_freq$", r"^(nomic_bert\.)?pooler\.", r"^cls\.", r"^classifier\."),
)
TIED_WEIGHTS = {
    "cls.predictions.decoder.weight": "nomic_bert.embeddings.word_embeddings.weight",
    "cls.predictions.decoder.bias": "cls.predictions.bias",
}
# Argument -> the config's field that bounds its ids, or is the width of its vectors.
INPUTS = {"input_ids": "vocab_size", "token_type_ids": "type_vocab_size"}
INPUTS |= {"position_ids": "max_position_embeddings", "inputs_embeds": "hidden_size"}


class RopeContext(NamedTuple):
    """The arguments of every layer besides its input."""

    mask: Array | None  # (B, T)
    cos_sin: tuple[Array, Array]  # two of (B or 1, T, K / 2)


class Embeddings(Module):
    norm_name: ClassVar[str] = "emb_ln"

    def __init__(self, w: Weights, cfg: RotaryBertConfig):
        D = cfg.hidden_size
        self.padding, self.max_positions = cfg.pad_token_id, cfg.max_position_embeddings
        self.word = w.embedding("embeddings.word_embeddings.weight", cfg.vocab_size, D)
        rows = cfg.type_vocab_size
        self.token_type = w.get("embeddings.token_type_embeddings.weight", (rows, D)) if rows else None
        self.norm = LayerNorm(w / self.norm_name, D, cfg.layer_norm_eps)
        self.dropout = Dropout(cfg.hidden_dropout_prob)

    def __call__(self, t: TextInputs) -> Array:
        """-> (B, T, D)."""
        x = t.inputs_embeds
        if x is None:
            x = ops.embedding(t.ids, self.word, "input_ids", self.padding)
        if self.token_type is not None:
            types = t.token_type_ids
            x = x + (self.token_type[0] if types is None else ops.embedding(types, self.token_type, "token_type_ids"))
        return self.dropout(self.norm(x))


class Layer(Module):
    def __init__(self, w: Weights, cfg: RotaryBertConfig):
        D, eps, rate = cfg.hidden_size, cfg.layer_norm_eps, cfg.hidden_dropout_prob
        self.heads, self.act = cfg.num_attention_heads, ops.activation(cfg.hidden_act)
        self.dropout = Dropout(cfg.attention_probs_dropout_prob)
        self.read(w, D, cfg.intermediate_size, eps, rate)

    def read(self, w: Weights, D: int, F: int, eps: float, rate: float) -> None:
        """Read the weights, under this family's names."""
        self.qkv = Linear(w / "attn.Wqkv", D, 3 * D, bias=False)
        self.out = Linear(w / "attn.out_proj", D, D, bias=False, dropout=rate)
        self.attention_norm = LayerNorm(w / "norm1", D, eps)
        self.gate_up = Linear.fuse(w / "mlp", ["fc12", "fc11"], D, [F, F], bias=False)
        self.down = Linear(w / "mlp.fc2", F, D, bias=False, dropout=rate)
        self.norm = LayerNorm(w / "norm2", D, eps)

    def glu(self, x: Array) -> Array:
        """x (B, T, D) -> (B, T, F)."""
        return ops.glu(self.gate_up(x), self.act)

    def __call__(self, x: Array, c: RopeContext) -> Array:
        """x (B, T, D) -> (B, T, D)."""
        q, k, v = ops.split_heads(self.qkv(x), self.heads)
        q, k = ops.rope(q, *c.cos_sin), ops.rope(k, *c.cos_sin)
        a = ops.attention(q, k, v, mask=c.mask, dropout=self.dropout.rate)
        x = self.attention_norm(self.out(a.reshape(x.shape)), residual=x)
        return self.norm(self.down(self.glu(x)), residual=x)


class NomicBertModel(BertModel):
    config_class, name_map, inputs = NomicBertConfig, NAME_MAP, INPUTS
    options = ()
    embeddings_class: ClassVar[type] = Embeddings
    layer_class: ClassVar[type[Layer]] = Layer
    layers_name: ClassVar[str] = "encoder.layers"

    def __init__(self, w: Weights, cfg: RotaryBertConfig, pooler: bool | None = None):
        D = cfg.hidden_size
        self.config, self.rope = cfg, cfg.rope()
        self.embeddings = self.embeddings_class(w, cfg)
        self.layers = [self.layer_class(w / self.layers_name / i, cfg) for i in range(cfg.num_hidden_layers)]
        pooler = "pooler" in w if pooler is None else pooler
        self.pooler = Linear(w / "pooler.dense", D, D, act="tanh") if pooler else None

    def encode(self, t: TextInputs) -> Array:
        """-> (B, T, D) of every token."""
        x = self.embeddings(t)
        at = ops.arange(x.shape[1], x)[None] if t.position_ids is None else t.position_ids
        c = RopeContext(t.context.mask, ops.rotary(at, self.rope.frequencies(t.length), self.rope.scale, x))
        for layer in self.layers:
            x = layer(x, c)
        return x


class NomicBertHead(BertHead):
    config_class, name_map, inputs = NomicBertConfig, NAME_MAP, INPUTS
    base_class = NomicBertModel


class Predictions(MaskedLMHead):
    """The masked language modelling head: a logit for each word of the vocabulary."""

    def __init__(self, w: Weights, cfg: NomicBertConfig):
        D = cfg.hidden_size
        self.dense = Linear(w / "transform.dense", D, D, act=cfg.hidden_act)
        self.norm = LayerNorm(w / "transform.layer_norm", D, cfg.layer_norm_eps)
        self.decoder = Linear(w / "decoder", D, cfg.vocab_size, vocab=True)


class NomicBertForMaskedLM(MaskedLM, NomicBertHead):
    tied = TIED_WEIGHTS

    def __init__(self, w: Weights, cfg: NomicBertConfig):
        super().__init__(w, cfg)
        self.head = Predictions(w / "cls.predictions", cfg)


class NomicBertForSequenceClassification(NomicBertHead, BertForSequenceClassification): ...


class NomicBertForTokenClassification(TokenClassification, NomicBertHead): ...
