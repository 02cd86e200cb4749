"""GTE (Zhang et al. 2024, https://arxiv.org/abs/2407.19669): Nomic BERT's layers with biases and other names.

Shapes: B batch, T tokens, D hidden_size, F intermediate_size, V vocab_size.
"""

from __future__ import annotations

from ... import ops
from ...inputs.heads import MaskedLM, MaskedLMHead, TokenClassification
from ...nn import Dropout, LayerNorm, Linear
from ...typing import Array
from ...weights import NameMap, Weights
from ..bert.heads import BertForSequenceClassification
from ..bert.model import BertHead
from ..nomic_bert import model as nomic
from .config import GteConfig

NAME_MAP = NameMap(
    prefix="gte",
    base=("embeddings", "encoder", "pooler"),
    ignored=(r"inv_freq$", r"^(gte\.)?pooler\.", r"^lm_head\.", r"^classifier\."),
)
TIED_WEIGHTS = {"lm_head.decoder.weight": "gte.embeddings.word_embeddings.weight"}
INPUTS = {"input_ids": "vocab_size", "position_ids": "max_position_embeddings", "inputs_embeds": "hidden_size"}


class Embeddings(nomic.Embeddings):
    norm_name = "embeddings.LayerNorm"


class Layer(nomic.Layer):
    def read(self, w: Weights, D: int, F: int, eps: float, rate: float) -> None:
        self.qkv = Linear(w / "attention.qkv_proj", D, 3 * D)
        self.out = Linear(w / "attention.o_proj", D, D, dropout=rate)
        self.attention_norm = LayerNorm(w / "attn_ln", D, eps)
        self.up_gate = Linear(w / "mlp.up_gate_proj", D, 2 * F, bias=False)
        self.mlp_dropout = Dropout(rate)
        self.down = Linear(w / "mlp.down_proj", F, D, dropout=rate)
        self.norm = LayerNorm(w / "mlp_ln", D, eps)

    def glu(self, x: Array) -> Array:
        y = self.up_gate(x)
        F = y.shape[2] // 2
        return self.mlp_dropout(ops.activate(y[:, :, F:], self.act) * y[:, :, :F])


class GteModel(nomic.NomicBertModel):
    config_class, name_map, inputs = GteConfig, NAME_MAP, INPUTS
    embeddings_class, layer_class, layers_name = Embeddings, Layer, "encoder.layer"


class GteHead(BertHead):
    config_class, name_map, inputs = GteConfig, NAME_MAP, INPUTS
    base_class = GteModel


class Predictions(MaskedLMHead):
    """The masked language modelling head: a logit for each word of the vocabulary."""

    def __init__(self, w: Weights, cfg: GteConfig):
        D = cfg.hidden_size
        self.dense = Linear(w / "dense", D, D, act="gelu")
        self.norm = LayerNorm(w / "norm", D, cfg.layer_norm_eps)
        self.decoder = Linear(w / "decoder", D, cfg.vocab_size, vocab=True)


class GteForMaskedLM(MaskedLM, GteHead):
    tied = TIED_WEIGHTS

    def __init__(self, w: Weights, cfg: GteConfig):
        super().__init__(w, cfg)
        self.head = Predictions(w / "lm_head", cfg)


class GteForSequenceClassification(GteHead, BertForSequenceClassification): ...


class GteForTokenClassification(TokenClassification, GteHead): ...
